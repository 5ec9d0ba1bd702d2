/** Capacities that evidence distinguishes: sixteen to an octave, from 1,024 tokens, as no engine holds less, to 67 million. */
const PER_OCTAVE = 16;
const LEAST_CAPACITY = 1_024;
const LEVELS = 16 * PER_OCTAVE;
/** Where nothing was found yet, the cache is taken to hold at least this share of what it is known not to hold. */
const LEAST_SHARE = 0.25;
/** What a hit leaves of the evidence that so much is not held, and a miss of the evidence that it is. */
const CONTRADICTED = 0.5;
/** Evidence below this is forgotten. */
const NEGLIGIBLE = 0.05;
/** Tokens that a report may lack, as a share of the prompt: another tokenizer's. */
const INACCURACY = 0.02;
/** Tokens that all prompts may share besides their instructions: those of a template. */
const TEMPLATE_TOKENS = 64;
/** Misses that can be taken back. */
const MOST_TAKEN_BACK = 1_024;

/** What reports say of how much an engine holds. */
export class CapacityEvidence {
  /** By level: that so much is held, and that it is not. */
  readonly #hits = new Float64Array(LEVELS);
  readonly #misses = new Float64Array(LEVELS);
  /** The newest misses. */
  #newest: { readonly at: number; readonly level: number }[] = [];
  /** Since the last report. */
  #found: { readonly told: number | null; readonly capacity: number } | null = null;

  /**
   * @param distance tokens used since `known` ones were, of which `cached` were still there, counted in steps of so many
   * @param head tokens that all prompts share
   * @param at when it was reported, in milliseconds since the epoch
   */
  take(
    { distance, known, head }: { readonly distance: number; readonly known: number; readonly head: number },
    cached: number,
    step: number,
    at: number,
  ): void {
    this.#found = null;
    const isOwn = cached > head + step + TEMPLATE_TOKENS;
    if (isOwn) this.#hit(levelOf(distance + Math.min(cached, known)));
    if (cached + step >= known * (1 - INACCURACY)) return;
    // Prompts are evicted from their ends; where nothing of its own was left, any of it may have been the last.
    this.#miss(levelOf(distance + (isOwn ? cached + step : known)) + (isOwn ? 1 : 0), at);
  }

  /** Takes misses back that were reported since a time: what an engine lost by a restart says nothing of how much it holds. */
  withdrawMisses(since: number): void {
    this.#found = null;
    for (const { at, level } of this.#newest)
      if (at >= since) this.#misses[level] = Math.max(0, (this.#misses[level] as number) - 1);
    this.#newest = this.#newest.filter(({ at }) => at < since);
  }

  #hit(level: number): void {
    const highest = Math.min(level, LEVELS - 1);
    if (highest < 0) return;
    for (let below = 0; below <= highest; below++) this.#misses[below] = lessened(this.#misses[below]);
    this.#hits[highest] = (this.#hits[highest] as number) + 1;
  }

  #miss(level: number, at: number): void {
    if (level < 0 || level >= LEVELS) return;
    this.#newest.push({ at, level });
    if (this.#newest.length > MOST_TAKEN_BACK) this.#newest.shift();
    for (let above = level; above < LEVELS; above++) this.#hits[above] = lessened(this.#hits[above]);
    this.#misses[level] = (this.#misses[level] as number) + 1;
  }

  /** The capacity that contradicts least of it; of several the reported one, else the middle one. */
  capacity(told: number | null): number {
    if (this.#found === null || this.#found.told !== told) this.#found = { told, capacity: this.#find(told) };
    return this.#found.capacity;
  }

  #find(told: number | null): number {
    const misses = this.#misses.reduce((sum, weight) => sum + weight, 0);
    if (misses === 0) return told ?? Number.POSITIVE_INFINITY;
    // A single one may be a restart's, after which the conversation's next prompts are too short to contradict it.
    if (told !== null && misses < 2) return told;
    // With a capacity between two levels, hits above it and misses below it are contradictions.
    let wrong = this.#hits.reduce((sum, weight) => sum + weight, 0);
    let least = wrong;
    let [from, to] = [0, 0];
    for (let level = 0; level < LEVELS; level++) {
      wrong += (this.#misses[level] as number) - (this.#hits[level] as number);
      if (wrong < least) [least, from, to] = [wrong, level + 1, level + 1];
      else if (wrong === least && to === level) to = level + 1;
    }
    // A level's evidence may be of anything in it.
    if (told !== null && told >= tokensAt(from - 2) && told <= tokensAt(to + 2)) return told;
    const high = tokensAt(to);
    return Math.sqrt(Math.max(tokensAt(from), high * LEAST_SHARE) * high);
  }
}

function lessened(weight = 0): number {
  const left = weight * CONTRADICTED;
  return left < NEGLIGIBLE ? 0 : left;
}

function levelOf(tokens: number): number {
  return Math.floor(PER_OCTAVE * Math.log2(Math.max(tokens, 1) / LEAST_CAPACITY));
}

function tokensAt(level: number): number {
  return LEAST_CAPACITY * 2 ** (level / PER_OCTAVE);
}
