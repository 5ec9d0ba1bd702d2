/**
 * `npm run bench -- load`: composes of many users over HTTP on loopback, k = 20, from recorded real Mem0 searches. The service is a process of
 * its own. Throughput and latency over time, memory, bytes written and on disk; then the same at a steady rate, up to twice what was sustained,
 * and users who come back when they are no longer in memory; then a start on the database that was made.
 *
 * Settings: `USERS`, `COMPOSES`, `ACTIVE`, `CONNECTIONS`, `K`; `SHARES` of what was sustained, for `SECONDS` each, on at most `MOST_CONNECTIONS`;
 * `NODE_FLAGS` in place of those of `npm start`. Takes `--data FOLDER` (`recorded-data.ts`). `OLD=folder`: only compares this build with another
 * one (its `dist`), in turns; ends with 1 where this one composes fewer per second.
 *
 * KB written: what the service handed to the kernel, less its answers. `at most`: what all cores could do at the CPU time measured.
 * Floor per compose: the body parsed, a plan, one transaction; the rows of a new user's memories written once.
 */
import { availableParallelism } from "node:os";
import { LoadConnection } from "./load-client.js";
import { loadRequests } from "./load-requests.js";
import { LoadService } from "./load-service.js";
import { compareInTurns } from "./load-turns.js";
import { neededTraces } from "./recorded-data.js";
import { quantile } from "./statistics.js";
import { STEADY_COLUMNS, sendSteadily } from "./steady-load.js";
import { printHead, printRow } from "./table.js";

const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const [users, composes, active] = [number("USERS", 100_000), number("COMPOSES", 1_000_000), number("ACTIVE", 1_000)];
const [connections, k] = [number("CONNECTIONS", 16), number("K", 20)];
const traces = neededTraces();
const requests = () => loadRequests(traces, { each: Math.max(1, Math.ceil(composes / users)), k, active });
const old = process.env["OLD"];
if (old !== undefined) {
  await compareInTurns(old, requests, { composes, connections });
  process.exit();
}
const service = new LoadService();
await service.start();

console.log(`${composes} composes of ${users} users, ${active} at a time, ${connections} connections, k = ${k}`);
const columns = ["composes", "per s", "CPU ms each", "the client's", "at most, per s", "KB written each"];
printHead([...columns, "p50, ms", "p99, ms", "RSS, MiB", "database, MB"]);
let answeredBytes = 0;
const used = () => {
  const { user, system } = process.cpuUsage();
  const { cpuMs, writtenBytes } = service;
  return {
    at: performance.now(),
    cpuMs,
    clientCpuMs: (user + system) / 1_000,
    fileBytes: writtenBytes - answeredBytes,
  };
};
let [started, done] = [0, 0];
let waits: number[] = [];
let last = used();
const statuses = new Map<number, number>();
const rates: number[] = [];

function printStep(): void {
  const [before, now, served] = [last, used(), waits];
  [last, waits] = [now, []];
  const each = (name: keyof typeof now) => (now[name] - before[name]) / served.length;
  const rate = 1_000 / each("at");
  rates.push(rate);
  const [cpu, clientCpu] = [each("cpuMs"), each("clientCpuMs")];
  printRow([
    done,
    rate.toFixed(0),
    cpu.toFixed(2),
    clientCpu.toFixed(2),
    ((1_000 * availableParallelism()) / (cpu + clientCpu)).toFixed(0),
    (each("fileBytes") / 1e3).toFixed(1),
    quantile(served, 0.5).toFixed(1),
    quantile(served, 0.99).toFixed(1),
    service.rssMiB.toFixed(0),
    service.databaseMB.toFixed(0),
  ]);
}

const bodies = requests();
await Promise.all(
  Array.from({ length: connections }, async () => {
    const connection = new LoadConnection(service.port, "/compose");
    while (started++ < composes) {
      const { status, ms, bytes } = await connection.send(bodies.next().value);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      waits.push(ms);
      answeredBytes += bytes;
      if (++done % Math.ceil(composes / 10) === 0 || done === composes) printStep();
    }
    connection.close();
  }),
);
console.log(`answers: ${[...statuses].map(([status, times]) => `${status} × ${times}`).join(", ")}\n`);

/** Of the second half: a service that has just started has its code still to compile. */
const sustained = quantile(rates.slice(5), 0.5);
const [seconds, COMPILED_AFTER_S, RETURNING] = [number("SECONDS", 20), 4, 0.25];
printHead(["", ...STEADY_COLUMNS]);
for (const share of (process.env["SHARES"] ?? "0.5,0.9,2").split(",").map(Number))
  printRow(["as before", ...(await sendSteadily(sustained * share, seconds, bodies, service))]);
// The first users are no longer in memory. Loading was never run until now: its code is compiled first.
const returning = loadRequests(traces, { each: 1, k, active });
await sendSteadily(sustained * RETURNING, COMPILED_AFTER_S, returning, service);
printRow(["users from disk", ...(await sendSteadily(sustained * RETURNING, seconds, returning, service))]);
await service.stop();
const readyMs = await service.start();
console.log(`started again on ${service.databaseMB.toFixed(0)} MB: ready after ${readyMs.toFixed(0)} ms`);
await service.stop();
service.remove();
