/**
 * `npm run bench:load`: composes of many users over HTTP on loopback, k = 20, from recorded real Mem0 searches. The service is a process of
 * its own. Throughput and waiting over time, memory, bytes on disk; then the same at a steady rate, up to twice what was sustained, and
 * users who come back when they are no longer in memory; then a start on the database that was made. In the environment: `USERS`,
 * `COMPOSES`, `ACTIVE`, `CONNECTIONS`, `K`; `SERVICES`, among which users are shared out; `SHARES` and `RETURNING` of what was sustained,
 * or of `SUSTAINED`, for `SECONDS` each, on at most `MOST_CONNECTIONS`; `NODE_FLAGS` in place of those of `npm start`. Takes
 * `--data FOLDER` (`recorded-data.ts`).
 *
 * Floor per compose: the body parsed, a plan, one transaction; the rows of a new user's memories written once.
 */
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { LoadConnection } from "./load-client.js";
import { loadRequests } from "./load-requests.js";
import { LoadServices } from "./load-services.js";
import { neededData } from "./recorded-data.js";

/** A service, and what its users ask. */
interface Lane {
  readonly port: number;
  readonly bodies: Generator<Buffer, never, undefined>;
}

const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const users = number("USERS", 100_000);
const composes = number("COMPOSES", 1_000_000);
const active = number("ACTIVE", 1_000);
const connections = number("CONNECTIONS", 16);
const k = number("K", 20);
const data = neededData();
const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
const services = new LoadServices(number("SERVICES", 1));
/** Users are shared out among services. */
const lanesOf = (questions: number): readonly Lane[] =>
  services.ports.map((port, part, { length: parts }) => ({
    port,
    bodies: loadRequests(traces, { each: questions, k, active, part, parts }),
  }));
const quantile = (values: readonly number[], q: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(q * (values.length - 1))] ?? Number.NaN;

await services.start();
const lanes = lanesOf(Math.max(1, Math.ceil(composes / users)));
let asked = 0;
const open = Array.from({ length: connections }, (_, at) => {
  const { port, bodies } = lanes[at % lanes.length] as Lane;
  return { bodies, connection: new LoadConnection(port, "/compose") };
});
console.log(
  `${composes} composes of ${users} users, ${active} at a time, ${connections} connections, k = ${k}, services: ${lanes.length}`,
);
console.log("| composes | per s | CPU ms each | p50, ms | p99, ms | RSS, MiB | database, MB |");
console.log("| --: | --: | --: | --: | --: | --: | --: |");
let done = 0;
let waits: number[] = [];
const statuses = new Map<number, number>();
const step = Math.ceil(composes / 10);
const rates: number[] = [];
let windowStart = performance.now();
let cpu = services.cpuMs;
await Promise.all(
  open.map(async ({ bodies, connection }) => {
    while (asked++ < composes) {
      const { status, ms } = await connection.send(bodies.next().value);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      waits.push(ms);
      if (++done % step !== 0 && done !== composes) continue;
      const rate = waits.length / ((performance.now() - windowStart) / 1_000);
      const each = (services.cpuMs - cpu) / waits.length;
      cpu = services.cpuMs;
      rates.push(rate);
      console.log(
        `| ${done} | ${rate.toFixed(0)} | ${each.toFixed(2)} | ${quantile(waits, 0.5).toFixed(1)} | ${quantile(waits, 0.99).toFixed(1)} | ${services.rssMiB.toFixed(0)} | ${services.databaseMB.toFixed(0)} |`,
      );
      waits = [];
      windowStart = performance.now();
    }
  }),
);
for (const { connection } of open) connection.close();
console.log(`answers: ${[...statuses].map(([status, times]) => `${status} × ${times}`).join(", ")}`);

/** Connections of those who send at a steady rate: what is due waits for one. */
const MOST_CONNECTIONS = number("MOST_CONNECTIONS", 2_000);

/** Sends at a steady rate, whatever comes back; waits count from when each was due. */
async function steadily(perSecond: number, seconds: number, lanes: readonly Lane[]) {
  const free = lanes.map((lane) => ({ ...lane, idle: [] as LoadConnection[] }));
  const under = new Set<Promise<void>>();
  const waiting: (() => void)[] = [];
  const accepted: number[] = [];
  let refused = 0;
  let cut = 0;
  let hasRetryAfter = true;
  const start = performance.now();
  const cpuBefore = services.cpuMs;
  for (let n = 0; n < perSecond * seconds; n++) {
    const due = start + (n / perSecond) * 1_000;
    while (performance.now() < due) await new Promise((resolve) => setTimeout(resolve, 1));
    const { port, bodies, idle } = free[n % free.length] as (typeof free)[0];
    const body = bodies.next().value;
    if (under.size >= MOST_CONNECTIONS) await new Promise<void>((resolve) => waiting.push(resolve));
    let connection = idle.pop();
    while (connection?.isStale) {
      connection.close();
      connection = idle.pop();
    }
    connection ??= new LoadConnection(port, "/compose");
    const used = connection;
    const sent = used.send(body).then(
      ({ status, retryAfter }) => {
        idle.push(used);
        if (status === 200) accepted.push(performance.now() - due);
        else {
          refused++;
          hasRetryAfter &&= status === 503 && retryAfter !== null;
        }
      },
      () => {
        cut++;
      },
    );
    under.add(sent);
    void sent.then(() => {
      under.delete(sent);
      waiting.shift()?.();
    });
  }
  await Promise.all(under);
  for (const connection of free.flatMap(({ idle }) => idle)) connection.close();
  const rate = accepted.length / ((performance.now() - start) / 1_000);
  const all = refused + cut + accepted.length;
  return [
    perSecond.toFixed(0),
    rate.toFixed(0),
    ((services.cpuMs - cpuBefore) / all).toFixed(2),
    `${((100 * refused) / all).toFixed(1)} %`,
    quantile(accepted, 0.5).toFixed(1),
    quantile(accepted, 0.99).toFixed(1),
    quantile(accepted, 0.999).toFixed(1),
    hasRetryAfter ? "yes" : "no",
    String(cut),
  ];
}

/** Of the second half: a service that has just started has its code still to compile. */
const sustained = number("SUSTAINED", quantile(rates.slice(5), 0.5));
console.log(
  "\n| | sent per s | served per s | CPU ms each | rejected | p50, ms | p99, ms | p99.9, ms | with 503 and Retry-After | connections lost |",
);
console.log("| -- | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
const SECONDS = number("SECONDS", 20);
for (const share of (process.env["SHARES"] ?? "0.5,0.9,2").split(",").map(Number)) {
  console.log(`| as before | ${(await steadily(sustained * share, SECONDS, lanes)).join(" | ")} |`);
}
// Those who asked first are no longer in memory.
const returning = lanesOf(1);
console.log(
  `| users from disk | ${(await steadily(sustained * number("RETURNING", 0.25), SECONDS, returning)).join(" | ")} |`,
);
await services.stop();
const readyMs = await services.start();
console.log(`started again on ${services.databaseMB.toFixed(0)} MB: ready after ${readyMs.toFixed(0)} ms`);
await services.stop();
services.remove();
