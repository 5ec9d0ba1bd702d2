/**
 * P-values adjusted for how many there are (Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
 * Statistics 6, 1979): below 0.05 where a family of comparisons is wrong of any with 5 % at most. Nulls are not counted and stay.
 */
export function holm(values: readonly (number | null)[]): (number | null)[] {
  const order = [...values.entries()].flatMap(([at, p]) => (p === null ? [] : [{ at, p }])).sort((a, b) => a.p - b.p);
  const adjusted = values.map((): number | null => null);
  let least = 0;
  for (const [rank, { at, p }] of order.entries()) {
    least = Math.min(1, Math.max(least, (order.length - rank) * p));
    adjusted[at] = least;
  }
  return adjusted;
}
