/**
 * The range of a chart's value axis: 0, the values with a margin, and at least `most`. Losses are below 0.
 *
 * @param least the least and the largest value of all series; null for none
 */
export function valueRange(least: number | null, largest: number | null, most = 0): [number, number] {
  const room = 1.08;
  const from = Math.min(0, (least ?? 0) * room);
  const to = Math.max(0, most, (largest ?? 0) * room);
  return [from, from === to ? 1 : to];
}
