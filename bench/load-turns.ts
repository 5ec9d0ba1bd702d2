import { LoadConnection } from "./load-client.js";
import { LoadService } from "./load-service.js";
import { median } from "./statistics.js";
import { printHead, printRow } from "./table.js";

/** Each build's turns. The first ones are not counted: code is still being compiled. */
const TURNS = 40;
const UNCOUNTED = 10;
/** Least composes per second, as a share of the old build's. Equal builds differ by less. */
const LEAST = 0.95;

/** One build's service, and what its turns took. */
class Build {
  readonly #service: LoadService;
  #connections: LoadConnection[] = [];
  readonly rates: number[] = [];
  readonly cpuMs: number[] = [];
  rejected = 0;

  constructor(
    readonly name: string,
    private readonly bodies: Generator<Buffer, never, undefined>,
    dist?: string,
  ) {
    this.#service = new LoadService(dist);
  }

  async start(connections: number): Promise<void> {
    await this.#service.start();
    this.#connections = Array.from({ length: connections }, () => this.#connection());
  }

  async take(composes: number): Promise<void> {
    this.#connections = this.#connections.map((one) => (one.isStale ? this.#connection() : one));
    const [startedAt, cpuMs] = [performance.now(), this.#service.cpuMs];
    let started = 0;
    const send = async (connection: LoadConnection) => {
      while (started++ < composes) {
        const { status } = await connection.send(this.bodies.next().value);
        if (status !== 200) this.rejected++;
      }
    };
    await Promise.all(this.#connections.map(send));
    this.rates.push((1_000 * composes) / (performance.now() - startedAt));
    this.cpuMs.push((this.#service.cpuMs - cpuMs) / composes);
  }

  async end(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.#service.stop();
    this.#service.remove();
  }

  #connection(): LoadConnection {
    return new LoadConnection(this.#service.port, "/compose");
  }
}

/** Loads an old build (its `dist`) and this one in turns, since a machine's speed changes more from run to run than builds differ. */
export async function compareInTurns(
  dist: string,
  requests: () => Generator<Buffer, never, undefined>,
  { composes, connections }: { readonly composes: number; readonly connections: number },
): Promise<void> {
  const [old, own] = [new Build("old", requests(), dist), new Build("this", requests())];
  const builds = [old, own];
  for (const build of builds) await build.start(connections);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const build of turn % 2 === 0 ? builds : builds.toReversed()) await build.take(Math.ceil(composes / TURNS));
  }
  const ratioOf = (name: "cpuMs" | "rates") =>
    median(own[name].map((figure, turn) => figure / (old[name][turn] ?? Number.NaN)).slice(UNCOUNTED));
  printHead(["build", "per s", "CPU ms each", "rejected"]);
  for (const { name, rates, cpuMs, rejected } of builds) {
    const [rate, cpu] = [rates, cpuMs].map((turns) => median(turns.slice(UNCOUNTED)));
    printRow([name, rate?.toFixed(0), cpu?.toFixed(2), rejected]);
  }
  printRow(["this / old", ratioOf("rates").toFixed(2), ratioOf("cpuMs").toFixed(2), ""]);
  for (const build of builds) await build.end();
  if (!(ratioOf("rates") >= LEAST)) process.exitCode = 1;
}
