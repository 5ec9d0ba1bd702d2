/** How many times the length the longer text is; quadratic work on it is as many times more than in proportion. */
const TIMES = 8;
/** How much more than in proportion is noise. */
const NOISE = 3;
/** Other work on the machine slows some attempts: the quickest of them tell. */
const FEWEST_ATTEMPTS = 3;
const MOST_ATTEMPTS = 20;

/**
 * Whether work on a text of eight times the length takes no more than in proportion to work on one of `length`: the quickest of some
 * attempts at both. `prepare` makes the work for a length, and is not timed.
 */
export async function isInProportion(prepare: (length: number) => () => unknown, length: number): Promise<boolean> {
  const timeOf = async (of: number) => {
    const work = prepare(of);
    const since = performance.now();
    await work();
    return performance.now() - since;
  };
  let [short, long] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    short = Math.min(short, await timeOf(length));
    long = Math.min(long, await timeOf(TIMES * length));
    if (attempt >= FEWEST_ATTEMPTS && long <= NOISE * TIMES * short) return true;
  }
  return false;
}
