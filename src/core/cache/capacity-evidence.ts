/** Capacities on a logarithmic scale, 16 levels per octave, from 1,024 tokens to 67 million. */
const PER_OCTAVE = 16;
const LEAST_CAPACITY = 1_024;
const LEVELS = 16 * PER_OCTAVE;
/** Before any hit, the cache is assumed to hold at least this share of what it is known not to hold. */
const LEAST_SHARE = 0.25;
const CONTRADICTED = 0.5;
const NEGLIGIBLE = 0.05;
/** Tokens that a report may lack because of another tokenizer, as a share of the prompt. */
const INACCURACY = 0.02;
/** Tokens of a template, which all prompts may share. */
const TEMPLATE_TOKENS = 64;
const MOST_TAKEN_BACK = 1_024;

export class CapacityEvidence {
  /** By level: evidence that so much is held, and that it is not. */
  readonly #hits = new Float64Array(LEVELS);
  readonly #misses = new Float64Array(LEVELS);
  #newest: { readonly at: number; readonly level: number }[] = [];
  #found: { readonly told: number | null; readonly capacity: number } | null = null;

  /** `distance`: tokens used since the `known` ones, of which `cached` were left, counted in steps. `head`: tokens that all prompts share. */
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
    // Prompts are evicted from their ends. If nothing of its own was left, any part may have been evicted last.
    this.#miss(levelOf(distance + (isOwn ? cached + step : known)) + (isOwn ? 1 : 0), at);
  }

  /** Withdraws misses since a time: those after a restart say nothing about capacity. */
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

  /** The capacity that contradicts the least evidence; of several the reported one, else the middle one. */
  capacity(told: number | null): number {
    if (this.#found === null || this.#found.told !== told) this.#found = { told, capacity: this.#find(told) };
    return this.#found.capacity;
  }

  #find(told: number | null): number {
    const misses = this.#misses.reduce((sum, weight) => sum + weight, 0);
    if (misses === 0) return told ?? Number.POSITIVE_INFINITY;
    // A single miss may be a restart's; the conversation's next prompts are too short to contradict it.
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
