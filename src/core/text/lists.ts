import { keptIn } from "./maps.js";

/*
 * Operations on lists of unbounded length. `Math.max(...values)` and `list.push(...values)` pass every value on the stack and overflow it
 * from about 100,000 values; these do not.
 */

/** The maximum of some numbers and `least`. */
export function largest(values: Iterable<number>, least = Number.NEGATIVE_INFINITY): number {
  let most = least;
  for (const value of values) most = Math.max(most, value);
  return most;
}

/** The minimum of some numbers and `most`. */
export function smallest(values: Iterable<number>, most = Number.POSITIVE_INFINITY): number {
  let least = most;
  for (const value of values) least = Math.min(least, value);
  return least;
}

export function append<T>(list: T[], values: Iterable<T>): void {
  for (const value of values) list.push(value);
}

/** Groups items by `keyOf`, keys and items in order of first occurrence. (`Map.groupBy` needs Node 21.) */
export function groupBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    keptIn(groups, keyOf(item), () => []).push(item);
  }
  return groups;
}
