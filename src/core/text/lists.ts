/*
 * Lists of any length. `Math.max(...values)` and `list.push(...values)` put every value on the stack, which ends at some hundred thousand. These have no end.
 */

/** The largest of some numbers, and at least this one. */
export function largest(values: Iterable<number>, least = Number.NEGATIVE_INFINITY): number {
  let most = least;
  for (const value of values) most = Math.max(most, value);
  return most;
}

/** The smallest of some numbers, and at most this one. */
export function smallest(values: Iterable<number>, most = Number.POSITIVE_INFINITY): number {
  let least = most;
  for (const value of values) least = Math.min(least, value);
  return least;
}

/** Appends values to a list. */
export function append<T>(list: T[], values: Iterable<T>): void {
  for (const value of values) list.push(value);
}

/** The items by what `keyOf` gives for them, keys and items in the order in which they first came. (`Map.groupBy` needs Node 21.) */
export function groupBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
