import { LoadConnection } from "./load-client.js";
import type { LoadProcesses } from "./load-services.js";
import { quantile } from "./statistics.js";

/** Bodies, and the process that is sent them. */
export interface Lane {
  readonly port: number;
  readonly bodies: Generator<Buffer, never, undefined>;
}

/** Connections of those who send at a steady rate: what is due waits for one. */
const MOST_CONNECTIONS = Number(process.env["MOST_CONNECTIONS"] ?? 2_000);

/** What {@link sendSteadily} gives, as a table's head. */
export const STEADY_COLUMNS = [
  "sent per s",
  "served per s",
  "CPU ms each",
  "rejected",
  "p50, ms",
  "p99, ms",
  "p99.9, ms",
  "event loop delay p99, ms",
  "with 503 and Retry-After",
  "connections lost",
];

/** Sends at a steady rate, whatever comes back; waits count from when each was due. */
export async function sendSteadily(
  perSecond: number,
  seconds: number,
  lanes: readonly Lane[],
  processes: LoadProcesses,
): Promise<string[]> {
  const free = lanes.map((lane) => ({ ...lane, idle: [] as LoadConnection[] }));
  const under = new Set<Promise<void>>();
  const waiting: (() => void)[] = [];
  const accepted: number[] = [];
  let refused = 0;
  let cut = 0;
  let hasRetryAfter = true;
  await processes.delayMs();
  const start = performance.now();
  const cpuBefore = processes.cpuMs;
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
  const cpu = (processes.cpuMs - cpuBefore) / all;
  return [
    perSecond.toFixed(0),
    rate.toFixed(0),
    cpu.toFixed(2),
    `${((100 * refused) / all).toFixed(1)} %`,
    quantile(accepted, 0.5).toFixed(1),
    quantile(accepted, 0.99).toFixed(1),
    quantile(accepted, 0.999).toFixed(1),
    (await processes.delayMs()).toFixed(1),
    hasRetryAfter ? "yes" : "no",
    String(cut),
  ];
}
