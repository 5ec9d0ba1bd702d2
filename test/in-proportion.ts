/** How much more than in proportion is noise. Quadratic work on eight times the length is eight times more. */
const NOISE = 3;
/** Other work on the machine slows some attempts; none of so many succeeds where the work is not in proportion. */
const ATTEMPTS = 20;

/**
 * Whether work on a text of `times` × `length` takes, in one of a few attempts, no more than in proportion to work on one of `length`.
 * `prepare` makes the work for a length, and is not timed. `times` is 8 at least, to tell it from quadratic work.
 */
export async function isInProportion(
  prepare: (length: number) => () => unknown,
  length: number,
  times = 8,
): Promise<boolean> {
  const timeOf = async (of: number) => {
    const work = prepare(of);
    const since = performance.now();
    await work();
    return performance.now() - since;
  };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const [short, long] = [await timeOf(length), await timeOf(times * length)];
    if (long <= NOISE * times * short) return true;
  }
  return false;
}
