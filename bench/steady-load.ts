import { LoadConnection } from "./load-client.js";
import type { LoadService } from "./load-service.js";
import { quantile } from "./statistics.js";

/** Requests beyond it wait for a connection. */
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

/** Sends at a steady rate, whatever comes back. Latency counts from when each request was due. */
export async function sendSteadily(
  perSecond: number,
  seconds: number,
  bodies: Generator<Buffer, never, undefined>,
  service: LoadService,
): Promise<string[]> {
  const idle: LoadConnection[] = [];
  const pending = new Set<Promise<void>>();
  const waiting: (() => void)[] = [];
  const accepted: number[] = [];
  let [rejected, lost] = [0, 0];
  let hasRetryAfter = true;
  await service.delayMs();
  const [start, cpuBefore] = [performance.now(), service.cpuMs];
  for (let n = 0; n < perSecond * seconds; n++) {
    const due = start + (n / perSecond) * 1_000;
    while (performance.now() < due) await new Promise((resolve) => setTimeout(resolve, 1));
    if (pending.size >= MOST_CONNECTIONS) await new Promise<void>((resolve) => waiting.push(resolve));
    let connection = idle.pop();
    while (connection?.isStale) {
      connection.close();
      connection = idle.pop();
    }
    const used = connection ?? new LoadConnection(service.port, "/compose");
    const sent = used.send(bodies.next().value).then(
      ({ status, retryAfter }) => {
        idle.push(used);
        if (status === 200) accepted.push(performance.now() - due);
        else {
          rejected++;
          hasRetryAfter &&= status === 503 && retryAfter !== null;
        }
      },
      () => {
        lost++;
      },
    );
    pending.add(sent);
    void sent.then(() => {
      pending.delete(sent);
      waiting.shift()?.();
    });
  }
  await Promise.all(pending);
  for (const connection of idle) connection.close();
  const rate = accepted.length / ((performance.now() - start) / 1_000);
  const all = rejected + lost + accepted.length;
  return [
    perSecond.toFixed(0),
    rate.toFixed(0),
    ((service.cpuMs - cpuBefore) / all).toFixed(2),
    `${((100 * rejected) / all).toFixed(1)} %`,
    ...[0.5, 0.99, 0.999].map((share) => quantile(accepted, share).toFixed(1)),
    (await service.delayMs()).toFixed(1),
    hasRetryAfter ? "yes" : "no",
    String(lost),
  ];
}
