import { seeded } from "../src/eval/measures/bootstrap.js";

export { seeded };

/** So many of each list that are wanted, drawn at random, one of each list in turn. */
export function drawnInTurn<T>(
  lists: readonly (readonly T[])[],
  limit: number,
  isWanted: (one: T) => boolean,
): readonly T[] {
  const drawn = lists.map((list, at) => {
    const random = seeded(at + 1);
    return list
      .map((one) => ({ one, order: random() }))
      .filter(({ one }) => isWanted(one))
      .sort((a, b) => a.order - b.order);
  });
  return Array.from({ length: limit }, (_, n) =>
    drawn.flatMap((of) => of.slice(n, n + 1).map(({ one }) => one)),
  ).flat();
}
