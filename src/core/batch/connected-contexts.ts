import { groupBy } from "../text/lists.js";

/**
 * Connected components of contexts, by index: contexts in different components share no block, not even through other contexts. Components
 * in the order of their oldest contexts, contexts ascending. Near linear (union-find).
 */
export function contextComponents(contexts: readonly (readonly number[])[]): number[][] {
  /** Union-find parent: towards the oldest context of the component. */
  const older = Int32Array.from(contexts, (_, at) => at);
  const oldestOf = (context: number) => {
    let at = context;
    for (let next = older[at] as number; next !== at; next = older[at] as number) {
      older[at] = older[next] as number;
      at = next;
    }
    return at;
  };
  const holder = new Map<number, number>();
  for (const [at, context] of contexts.entries()) {
    for (const label of context) {
      const known = holder.get(label);
      if (known === undefined) {
        holder.set(label, at);
        continue;
      }
      const [one, other] = [oldestOf(known), oldestOf(at)];
      older[Math.max(one, other)] = Math.min(one, other);
    }
  }
  return [...groupBy(contexts.keys(), oldestOf).values()];
}

/**
 * Splits contexts, by index, into parts of at most `most`, keeping similar contexts together. Splits recursively by the most common block
 * that not all contexts contain: those with it, and those without. Contexts keep their order in each part; parts are in the order of their
 * oldest contexts. O(blocks × depth); computes no distances.
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
      // Contexts with the same blocks are split by index.
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

/** The block that most contexts of a group contain, but not all; the first found of several; null for none. */
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
