import { type CacheLimits, SimulatedCache } from "../src/core/cache/simulated-cache.js";
import type { ExecutedRequest } from "./recorded-batch.js";

/**
 * Schedules requests by SGLang's longest prefix match (`lpm`). The next request is the one with the most tokens in the radix cache; ties go to the
 * oldest request.
 *
 * @param executed in order of arrival
 * @param waiting number of requests in the queue (SGLang itself serves first come, first served if more than 128 wait)
 */
export function longestMatchFirst(
  executed: readonly ExecutedRequest[],
  promptOf: (request: ExecutedRequest) => readonly number[],
  limits: CacheLimits,
  waiting: number,
): readonly ExecutedRequest[] {
  const cache = new SimulatedCache("radix", limits, 1);
  const coming = executed.map((request) => ({ request, tokens: promptOf(request) }));
  const queue = coming.splice(0, waiting);
  const sequence: ExecutedRequest[] = [];
  while (queue.length > 0) {
    let [best, most] = [0, -1];
    for (const [at, { tokens }] of queue.entries()) {
      const held = cache.heldOf(tokens);
      if (held > most) [best, most] = [at, held];
    }
    const [next] = queue.splice(best, 1);
    if (next === undefined) break;
    cache.serve(next.tokens);
    sequence.push(next.request);
    queue.push(...coming.splice(0, 1));
  }
  return sequence;
}
