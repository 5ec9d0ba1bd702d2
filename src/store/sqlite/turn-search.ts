import type { KeyRow } from "./journal-rows.js";
import type { prepareReads } from "./journal-statements.js";

/**
 * The record that has a turn of a scope; null for none. `turn` never falls from one record to the next, so this halves the range of
 * numbers: some fifteen steps for a scope of 30,000 records, and no index of its own that every compose would write to.
 */
export function keyWithTurn(
  { bounds, from, keyOfNumber }: Pick<ReturnType<typeof prepareReads>, "bounds" | "from" | "keyOfNumber">,
  scopeId: number,
  turn: number,
): KeyRow | null {
  const { first = null, last = null } = bounds.get({ scopeId }) ?? {};
  if (first === null || last === null) return null;
  // The first record whose `turn` is at least the one looked for has a number in [low, high], or there is none.
  let low = first;
  let high = last;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const next = from.get({ scopeId, n: middle });
    if (next === undefined || next.turn >= turn) high = middle;
    else low = next.n + 1;
  }
  const found = from.get({ scopeId, n: low });
  if (found === undefined || found.turn < turn || found.turn - found.turns >= turn) return null;
  return keyOfNumber.get({ scopeId, n: found.n }) ?? null;
}
