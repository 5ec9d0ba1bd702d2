import { type CacheLimits, SimulatedCache } from "../src/core/cache/simulated-cache.js";
import type { ExecutedRequest } from "../src/eval/replay/replay-batch.js";

/**
 * Executes requests as SGLang's scheduler does by `lpm`: of those that wait, the one of which its radix cache holds most, the oldest of several.
 *
 * @param executed in the order in which they come
 * @param waiting how many wait at a time (SGLang itself falls back to first come, first served beyond 128)
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
