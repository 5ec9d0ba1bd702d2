/**
 * `npm run bench -- load-pairs VARIANT VARIANT…`: what `npm run bench -- load` measures at full load, of several services in one run, in turn. All of them
 * run, and one at a time is sent composes, for some seconds; so a machine whose speed changes from minute to minute changes it for all.
 * A variant is `sqlite` or `postgres` (a server of its own), and `sqlite:FILE` or `postgres:FILE` with the `cli/main.js` of another build.
 * In the environment: `WARM_UP` composes first, `ROUNDS` of `COMPOSES` each, `ACTIVE`, `CONNECTIONS`, `K`, and `POSTGRES_FLAGS`.
 * Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * Ratios are medians of the rounds' own: each round against the first variant's of the same turn. Behind the one of composes per second stand
 * its quartiles; where machines are noisy they are far apart, and the median moves with the run by about their distance over the square root
 * of the rounds. Many short rounds tell more than a few long ones. `by CPU`: the first's CPU time for a compose, divided by the variant's,
 * with client and database server: the ratio of composes per second where all of it shares cores that are never idle. Where
 * neighbours slow the cores it is as noisy.
 */
import { setTimeout } from "node:timers/promises";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { LoadConnection } from "./load-client.js";
import { LoadDatabase } from "./load-database.js";
import { quantile } from "./load-figures.js";
import { loadRequests } from "./load-requests.js";
import { LoadServices } from "./load-services.js";
import { median } from "./median.js";
import { neededData } from "./recorded-data.js";

const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
/** V8 compiles what a service runs until it has composed some 12,000 times, on the cores that are measured. */
const warmUp = number("WARM_UP", 16_000);
const rounds = number("ROUNDS", 40);
const composes = number("COMPOSES", 1_000);
const active = number("ACTIVE", 300);
const connections = number("CONNECTIONS", 16);
const k = number("K", 20);
/** Composes of each user. */
const EACH = 10;
/** Milliseconds between two turns: what is recorded once a second is written meanwhile, and the next service is alone. */
const PAUSE_MS = 1_100;
/** Composes at the beginning of a turn that are not measured: memory that a service did not use meanwhile is read again. */
const LEAD = 60;
const data = neededData();
const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));

/** What one round of a variant gave. */
interface Round {
  readonly perSecond: number;
  readonly cpuMs: number;
  readonly databaseCpuMs: number;
  /** Of the service, its database server, and this client. */
  readonly allCpuMs: number;
  readonly p50: number;
  readonly p99: number;
}

/** A service under load, with its own users. */
class Variant {
  readonly rounds: Round[] = [];
  readonly #bodies = loadRequests(traces, { each: EACH, k, active, part: 0, parts: 1 });

  private constructor(
    readonly name: string,
    private readonly services: LoadServices,
  ) {}

  static async start(name: string): Promise<Variant> {
    const [, kind, file] = /^(sqlite|postgres)(?::(.+))?$/.exec(name) ?? [];
    if (kind === undefined) throw new Error(`${name}: begin with sqlite or postgres`);
    const flags = (process.env["POSTGRES_FLAGS"] ?? "").split(" ").filter(Boolean);
    const database = kind === "sqlite" ? null : await LoadDatabase.start(flags);
    const services = new LoadServices(1, database, file === undefined ? undefined : [file]);
    await services.start();
    return new Variant(name, services);
  }

  /** Sends so many composes, one at a time on each of new connections: idle ones are closed between turns. */
  async send(count: number): Promise<Round> {
    const [port] = this.services.ports as [number];
    const open = Array.from({ length: connections }, () => new LoadConnection(port, "/compose"));
    const { cpuMs, databaseCpuMs } = this.services;
    const client = process.cpuUsage();
    const started = performance.now();
    const waits: number[] = [];
    let asked = 0;
    await Promise.all(
      open.map(async (connection) => {
        while (asked++ < count) {
          const { status, ms } = await connection.send(this.#bodies.next().value);
          // An overloaded service rejects.
          if (status === 200) waits.push(ms);
        }
        connection.close();
      }),
    );
    const seconds = (performance.now() - started) / 1_000;
    const { user, system } = process.cpuUsage(client);
    const own = (this.services.cpuMs - cpuMs) / count;
    const databases = (this.services.databaseCpuMs - databaseCpuMs) / count;
    return {
      perSecond: waits.length / seconds,
      cpuMs: own,
      databaseCpuMs: databases,
      allCpuMs: own + databases + (user + system) / 1_000 / count,
      p50: quantile(waits, 0.5),
      p99: quantile(waits, 0.99),
    };
  }

  async stop(): Promise<void> {
    await this.services.stop();
    await this.services.remove();
  }
}

const names = process.argv.slice(2).filter((word, at, all) => word !== "--data" && all[at - 1] !== "--data");
if (names.length < 2) throw new Error("name two variants, such as: sqlite postgres");
const variants: Variant[] = [];
for (const name of names) variants.push(await Variant.start(name));
for (const variant of variants) await variant.send(warmUp);
for (let round = 0; round < rounds; round++) {
  // Whoever was first is last in the next turn.
  for (const variant of round % 2 === 0 ? variants : variants.toReversed()) {
    await setTimeout(PAUSE_MS);
    await variant.send(LEAD);
    variant.rounds.push(await variant.send(composes));
  }
}
const quartiles = (ratios: readonly number[]) =>
  [0.25, 0.75].map((share) => quantile(ratios, share).toFixed(2)).join(" – ");
const [first] = variants as [Variant, ...Variant[]];
console.log(`k = ${k}, ${connections} connections, ${rounds} rounds of ${composes} composes each, in turn`);
console.log(
  "| | composes per s | of the first | quartiles | by CPU | quartiles | CPU ms each | database server's | p50, ms | p99, ms | of the first |",
);
console.log("| -- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
for (const { name, rounds: own } of variants) {
  const of = (figure: keyof Round) => median(own.map((round) => round[figure]));
  const ratios = (figure: keyof Round) => own.map((round, at) => round[figure] / (first.rounds[at] as Round)[figure]);
  const speeds = ratios("perSecond");
  const byCpu = ratios("allCpuMs").map((ratio) => 1 / ratio);
  const cells = [
    name,
    of("perSecond").toFixed(0),
    median(speeds).toFixed(3),
    quartiles(speeds),
    median(byCpu).toFixed(3),
    quartiles(byCpu),
    of("cpuMs").toFixed(2),
    of("databaseCpuMs").toFixed(2),
    of("p50").toFixed(1),
    of("p99").toFixed(1),
    median(ratios("p99")).toFixed(2),
  ];
  console.log(`| ${cells.join(" | ")} |`);
}
for (const variant of variants) await variant.stop();
