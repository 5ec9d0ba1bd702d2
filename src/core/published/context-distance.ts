import type { Label } from "../text/ids.js";

/** Weight of the position term of eq. 1; the paper's range is 0.001 to 0.01. */
export const DEFAULT_ALPHA = 0.001;

/** Position of each block in a context, from 0; its size is the context's length. */
export type Positions = ReadonlyMap<Label, number>;

/** Throws if a context lists a block twice, which makes positions and distances meaningless. */
export function positionsOf(context: readonly Label[]): Positions {
  const positions = new Map<Label, number>();
  for (const [position, label] of context.entries()) positions.set(label, position);
  if (positions.size !== context.length) throw new Error("a context lists a block twice");
  return positions;
}

/**
 * Context distance (ContextPilot eq. 1): the share of the longer context's blocks that are not shared, plus `alpha` times the mean shift of
 * the shared ones. 1 if no block is shared; large shifts can exceed 1. O(|a| + |b|).
 */
export function contextDistance(a: readonly Label[], b: readonly Label[], alpha = DEFAULT_ALPHA): number {
  return distanceWhereShared(positionsOf(a), b, alpha) ?? 1;
}

/** {@link contextDistance} from a context whose positions are known; null if no block is shared. O(|b|). */
export function distanceWhereShared(a: Positions, b: readonly Label[], alpha = DEFAULT_ALPHA): number | null {
  let shared = 0;
  let shift = 0;
  for (let position = 0; position < b.length; position++) {
    const other = a.get(b[position] as Label);
    if (other === undefined) continue;
    shared++;
    shift += Math.abs(other - position);
  }
  return shared === 0 ? null : 1 - shared / Math.max(a.size, b.length) + (alpha * shift) / shared;
}
