/**
 * `npm run bench -- load`: composes of many users over HTTP on loopback, k = 20, from recorded real Mem0 searches. The service is a process of
 * its own. Throughput and waiting over time, memory, bytes written and on disk; then the same at a steady rate, up to twice what was
 * sustained, and users who come back when they are no longer in memory; then a start on the database that was made. In the environment:
 * `USERS`, `COMPOSES`, `ACTIVE`, `CONNECTIONS`, `K`; `SERVICES`, among which users are shared out, each with a data directory of its own;
 * `DATABASE=postgres`, where they are instances on one database of a PostgreSQL server of the bench's own (`POSTGRES_FLAGS`, such as
 * `-c shared_buffers=1GB`), and with `AFFINITY=none` any of them is sent any request; `SHARES` and
 * `RETURNING` of what was sustained, or of `SUSTAINED`, for `SECONDS` each, on at most `MOST_CONNECTIONS`; `CONTROL=1` for the same beside
 * servers that only compute for `CONTROL_MS`, as far as those can; `NODE_FLAGS` in place of those of `npm start`, `MAIN` for another build's
 * `cli/main.js`. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * The most that all cores could do: with nothing else to do and nothing to wait for, at the CPU time measured.
 * KB written: what the processes that write files handed to the kernel, less the answers.
 * Floor per compose: the body parsed, a plan, one transaction; the rows of a new user's memories written once.
 */
import { availableParallelism } from "node:os";
import { LoadConnection } from "./load-client.js";
import { LoadDatabase } from "./load-database.js";
import { loadRequests } from "./load-requests.js";
import { controlProcesses, LoadServices } from "./load-services.js";
import { neededTraces } from "./recorded-data.js";
import { quantile } from "./statistics.js";
import { type Lane, STEADY_COLUMNS, sendSteadily } from "./steady-load.js";
import { printHead, printRow } from "./table.js";

const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const words = (name: string) => (process.env[name] ?? "").split(" ").filter(Boolean);
const users = number("USERS", 100_000);
const composes = number("COMPOSES", 1_000_000);
const active = number("ACTIVE", 1_000);
const connections = number("CONNECTIONS", 16);
const k = number("K", 20);
const hasAffinity = process.env["AFFINITY"] !== "none";
const traces = neededTraces();
const database = process.env["DATABASE"] === "postgres" ? await LoadDatabase.start(words("POSTGRES_FLAGS")) : null;
if (!hasAffinity && database === null)
  throw new Error("AFFINITY=none is for DATABASE=postgres: else each has its own file");
const services = new LoadServices(number("SERVICES", 1), database);
/** Users are shared out among processes, or all of them are everybody's. */
function lanesOf(ports: readonly number[], questions: number): readonly Lane[] {
  const shape = { each: questions, k, active };
  const parts = ports.length;
  if (hasAffinity)
    return ports.map((port, part) => ({ port, bodies: loadRequests(traces, { ...shape, part, parts }) }));
  const bodies = loadRequests(traces, { ...shape, part: 0, parts: 1 });
  return ports.map((port) => ({ port, bodies }));
}

await services.start();
const lanes = lanesOf(services.ports, Math.max(1, Math.ceil(composes / users)));
let asked = 0;
const open = Array.from({ length: connections }, (_, at) => {
  const { port, bodies } = lanes[at % lanes.length] as Lane;
  return { bodies, connection: new LoadConnection(port, "/compose") };
});
console.log(
  `${composes} composes of ${users} users, ${active} at a time, ${connections} connections, k = ${k}, services: ${lanes.length}, ${database === null ? "SQLite" : "PostgreSQL"}${hasAffinity ? "" : ", without affinity"}`,
);
const columns = ["composes", "per s", "CPU ms each", "database server's", "the client's", "all cores' at most, per s"];
printHead([...columns, "KB written each", "p50, ms", "p99, ms", "RSS, MiB", "database, MB"]);
let done = 0;
let waits: number[] = [];
const statuses = new Map<number, number>();
const step = Math.ceil(composes / 10);
const rates: number[] = [];
/** Answers are in what the services handed to the kernel, where those write the files. */
let answered = 0;
const used = () => {
  const { cpuMs, databaseCpuMs, writtenBytes } = services;
  const { user, system } = process.cpuUsage();
  return { at: performance.now(), cpuMs, databaseCpuMs, clientCpuMs: (user + system) / 1_000, writtenBytes, answered };
};
let last = used();
async function printStep(): Promise<void> {
  const now = used();
  const served = waits;
  waits = [];
  const before = last;
  last = now;
  const each = (amount: number) => amount / served.length;
  const rate = served.length / ((now.at - before.at) / 1_000);
  rates.push(rate);
  const answers = database === null ? now.answered - before.answered : 0;
  const handed = now.writtenBytes - before.writtenBytes - answers;
  const cpu = each(now.cpuMs - before.cpuMs);
  const databaseCpu = each(now.databaseCpuMs - before.databaseCpuMs);
  const clientCpu = each(now.clientCpuMs - before.clientCpuMs);
  const cells = [
    String(done),
    rate.toFixed(0),
    cpu.toFixed(2),
    database === null ? "–" : databaseCpu.toFixed(2),
    clientCpu.toFixed(2),
    ((1_000 * availableParallelism()) / (cpu + databaseCpu + clientCpu)).toFixed(0),
    each(handed / 1e3).toFixed(1),
    quantile(served, 0.5).toFixed(1),
    quantile(served, 0.99).toFixed(1),
    services.rssMiB.toFixed(0),
    (await services.databaseMB()).toFixed(0),
  ];
  printRow(cells);
}
await Promise.all(
  open.map(async ({ bodies, connection }) => {
    while (asked++ < composes) {
      const { status, ms, bytes } = await connection.send(bodies.next().value);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      waits.push(ms);
      answered += bytes;
      if (++done % step === 0 || done === composes) await printStep();
    }
  }),
);
for (const { connection } of open) connection.close();
console.log(`answers: ${[...statuses].map(([status, times]) => `${status} × ${times}`).join(", ")}`);

/** Of the second half: a service that has just started has its code still to compile. */
const sustained = number("SUSTAINED", quantile(rates.slice(5), 0.5));
console.log("");
printHead(["", ...STEADY_COLUMNS]);
const SECONDS = number("SECONDS", 20);
const COMPILED_AFTER_S = 4;
const control = process.env["CONTROL"] === undefined ? null : controlProcesses(lanes.length);
await control?.start();
/** Beyond it, a control that computes for a millisecond has a queue that grows. */
const MOST_OF_CONTROL = (0.9 * 1_000) / number("CONTROL_MS", 1);
for (const share of (process.env["SHARES"] ?? "0.5,0.9,2").split(",").map(Number)) {
  const rate = sustained * share;
  printRow(["as before", ...(await sendSteadily(rate, SECONDS, lanes, services))]);
  if (control === null || rate > MOST_OF_CONTROL * lanes.length) continue;
  printRow(["control", ...(await sendSteadily(rate, SECONDS, lanesOf(control.ports, 1), control))]);
}
// Those who asked first are no longer in memory. Loading was never run until now: its code is compiled first.
const returning = lanesOf(services.ports, 1);
const back = sustained * number("RETURNING", 0.25);
await sendSteadily(back, COMPILED_AFTER_S, returning, services);
printRow(["users from disk", ...(await sendSteadily(back, SECONDS, returning, services))]);
await control?.stop();
await services.stop();
const readyMs = await services.start();
console.log(`started again on ${(await services.databaseMB()).toFixed(0)} MB: ready after ${readyMs.toFixed(0)} ms`);
await services.stop();
await services.remove();
