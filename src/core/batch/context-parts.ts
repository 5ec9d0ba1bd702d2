/**
 * Splits contexts, by index, into parts of at most `most`, so that those with much in common stay together: those that hold the block
 * which most of them hold, but not all, part from the others, and so on in both halves. Order of contexts is kept in each part, parts
 * stand in the order of their oldest contexts. O(blocks × depth); no distances.
 */
export function contextParts(
  contexts: readonly (readonly number[])[],
  members: readonly number[],
  most: number,
): number[][] {
  const parts: number[][] = [];
  const pending: (readonly number[])[] = [members];
  for (let group = pending.pop(); group !== undefined; group = pending.pop()) {
    const block = group.length <= most ? null : commonestSplitting(contexts, group);
    if (block === null) {
      // Contexts of the same blocks cannot be told apart.
      for (let from = 0; from < group.length; from += most) parts.push(group.slice(from, from + most));
      continue;
    }
    const holds = (at: number) => contexts[at]?.includes(block) === true;
    pending.push(
      group.filter((at) => !holds(at)),
      group.filter(holds),
    );
  }
  return parts.sort(([a = 0], [b = 0]) => a - b);
}

/** The block that most contexts of a group hold, but not all; the one met first of several. */
function commonestSplitting(contexts: readonly (readonly number[])[], group: readonly number[]): number | null {
  const holders = new Map<number, number>();
  for (const at of group) for (const label of contexts[at] ?? []) holders.set(label, (holders.get(label) ?? 0) + 1);
  let best: number | null = null;
  let count = 0;
  for (const [label, held] of holders) {
    if (held <= count || held === group.length) continue;
    best = label;
    count = held;
  }
  return best;
}
