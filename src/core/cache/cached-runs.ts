/*
 * What an engine's cache holds, in the order of last use: runs of tokens, each after another, as prompts left them. No run has a text: which
 * prompts share it is known from what continues what.
 */

/** Milliseconds between two uses of one millisecond: four times what a number of that size distinguishes. */
const LATER_MS = 1 / 1_024;
/** Sums by time that are kept; the oldest ones are merged. */
const MOST_PERIODS = 1_024;

const NEVER = Number.NEGATIVE_INFINITY;

/** What was used after a time, or what lies within a capacity. */
export interface UsedTokens {
  readonly tokens: number;
  /** How many streams' newest prompts end there. */
  readonly tips: number;
}

/**
 * When an engine's tokens were used last, by time: sums of all users' prompts. Constant work and memory for each use.
 */
class TokensByUse {
  /** Ascending. */
  #at: number[] = [];
  #tokens: number[] = [];
  #tips: number[] = [];
  #clearedAt = NEVER;

  /** What was used after a time, in milliseconds since the epoch: without end where the cache was cleared since. */
  above(at: number): UsedTokens {
    let [tokens, tips] = [at <= this.#clearedAt ? Number.POSITIVE_INFINITY : 0, 0];
    for (let period = this.#at.length - 1; period >= 0 && (this.#at[period] as number) > at; period--) {
      tokens += this.#tokens[period] as number;
      tips += this.#tips[period] as number;
    }
    return { tokens, tips };
  }

  /** The newest time before which what was used is gone from a cache of this capacity, and the streams after it. */
  within(capacity: number): { readonly since: number | null; readonly tips: number } {
    let [tokens, tips] = [0, 0];
    for (let period = this.#at.length - 1; period >= 0; period--) {
      tokens += this.#tokens[period] as number;
      tips += this.#tips[period] as number;
      if (tokens > capacity) return { since: this.#at[period] as number, tips };
    }
    return { since: this.#clearedAt === NEVER ? null : this.#clearedAt + 1, tips };
  }

  /** Nothing that was last used by then is cached any more. */
  clear(at: number): void {
    const left = this.#at.findIndex((period) => period > at);
    const from = left < 0 ? this.#at.length : left;
    for (const sums of [this.#at, this.#tokens, this.#tips]) sums.splice(0, from);
    this.#clearedAt = at;
  }

  /** Adds tokens that were last used then, or takes so many (below 0) away as are there. Nothing from before the cache was cleared. */
  add(at: number, tokens: number, tips: number): void {
    if (at <= this.#clearedAt) return;
    const last = this.#at.at(-1) ?? NEVER;
    if (at > last) {
      if (tokens < 0 || tips < 0) return;
      this.#at.push(at);
      this.#tokens.push(tokens);
      this.#tips.push(tips);
      if (this.#at.length > MOST_PERIODS) this.#merge();
      return;
    }
    const period = this.#periodOf(at);
    this.#tokens[period] = Math.max(0, (this.#tokens[period] as number) + tokens);
    this.#tips[period] = Math.max(0, (this.#tips[period] as number) + tips);
  }

  /**
   * A time of use as it counts here: later than all before, so that prompts of one millisecond, a clock that was set back and a prompt that
   * others overtook do not change the order.
   */
  timeOf(at: number): number {
    const last = Math.max(this.#at.at(-1) ?? NEVER, this.#clearedAt);
    return at > last ? at : last + LATER_MS;
  }

  /** The first period that is not older. */
  #periodOf(at: number): number {
    let low = 0;
    let high = this.#at.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#at[middle] as number) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Merges the older half of the periods two by two; each is as new as its newer one. */
  #merge(): void {
    const half = MOST_PERIODS / 2;
    const [at, tokens, tips]: [number[], number[], number[]] = [[], [], []];
    for (let period = 0; period < half; period += 2) {
      at.push(this.#at[period + 1] as number);
      tokens.push((this.#tokens[period] as number) + (this.#tokens[period + 1] as number));
      tips.push((this.#tips[period] as number) + (this.#tips[period + 1] as number));
    }
    this.#at = [...at, ...this.#at.slice(half)];
    this.#tokens = [...tokens, ...this.#tokens.slice(half)];
    this.#tips = [...tips, ...this.#tips.slice(half)];
  }
}

/** A run of tokens after another one: every prompt that has its last token has all before it. */
export interface CachedRun {
  /** Null: it begins a prompt. */
  readonly before: CachedRun | null;
  /** Offsets in its prompts, in tokens. */
  readonly from: number;
  readonly end: number;
  /** As {@link CachedRuns.timeOf} has it. */
  readonly usedAt: number;
}

/** What {@link CachedRuns} keeps of a run. */
interface Run extends CachedRun {
  before: Run | null;
  from: number;
  usedAt: number;
  /** Streams whose newest prompt ends with it. */
  tips: number;
  /** Runs that continue it. */
  continued: number;
  readonly isHead: boolean;
  /** The newest use that stays. */
  settledAt: number;
  /** Later uses, ascending, each of a prompt that may be taken back. */
  uses: number[];
}

/** One engine's cache as all tenants' prompts leave it: a prompt's runs are the newest, and it is evicted from its end. */
export class CachedRuns {
  readonly #byUse = new TokensByUse();

  above(at: number): UsedTokens {
    return this.#byUse.above(at);
  }

  within(capacity: number): { readonly since: number | null; readonly tips: number } {
    return this.#byUse.within(capacity);
  }

  clear(at: number): void {
    this.#byUse.clear(at);
  }

  timeOf(at: number): number {
    return this.#byUse.timeOf(at);
  }

  /** Tokens of clients that are not known here. */
  addForeign(at: number, tokens: number): void {
    this.#byUse.add(this.timeOf(at), tokens, 0);
  }

  /** Instructions, which prompts begin with; not in the cache before they are used. */
  head(tokens: number): CachedRun {
    return newRun(null, tokens, true);
  }

  /** A prompt of so many tokens that has another one's up to a depth, and others after it: its last run. */
  prompt(other: CachedRun, depth: number, total: number): CachedRun {
    const before = this.#endingAt(other as Run, depth);
    before.continued++;
    return newRun(before, total, false);
  }

  /** A prompt that ends with this run uses it, and all before it. */
  use(leaf: CachedRun, at: number): void {
    for (const run of runsTo(leaf)) {
      run.uses.push(at);
      this.#reorder(run);
    }
  }

  /** A prompt's use stays, and counts as of `to`: its answer has ended. Runs that every prompt uses together become one. */
  settle(leaf: CachedRun, at: number, to = at): void {
    for (const run of runsTo(leaf)) {
      run.uses = run.uses.filter((use) => use !== at);
      run.settledAt = Math.max(run.settledAt, to);
      this.#reorder(run);
    }
    for (const run of runsTo(leaf)) {
      const { before } = run;
      if (before === null || before.isHead || before.tips > 0 || before.continued > 1) continue;
      if (before.settledAt !== run.settledAt || before.uses.length !== run.uses.length) continue;
      run.from = before.from;
      run.before = before.before;
    }
  }

  /** The engine never got a prompt: its runs are as old as they were without it. */
  release(leaf: CachedRun, at: number): void {
    for (const run of runsTo(leaf)) {
      run.uses = run.uses.filter((use) => use !== at);
      this.#reorder(run);
      if (run.usedAt === NEVER && run.before !== null) run.before.continued--;
    }
  }

  /** A stream's newest prompt ends with this run, or no longer does. */
  tip(leaf: CachedRun, by: 1 | -1): void {
    const run = leaf as Run;
    if (run.usedAt !== NEVER) this.#byUse.add(run.usedAt, 0, by);
    run.tips += by;
  }

  #endingAt(leaf: Run, depth: number): Run {
    let run = leaf;
    while (run.before !== null && run.from >= depth) run = run.before;
    if (run.end <= depth) return run;
    const head: Run = { ...run, end: depth, tips: 0, continued: 1, isHead: false, uses: [...run.uses] };
    run.before = head;
    run.from = depth;
    return head;
  }

  #reorder(run: Run): void {
    const usedAt = Math.max(run.settledAt, run.uses.at(-1) ?? NEVER);
    if (usedAt === run.usedAt) return;
    const tokens = run.end - run.from;
    if (run.usedAt !== NEVER) this.#byUse.add(run.usedAt, -tokens, -run.tips);
    if (usedAt !== NEVER) this.#byUse.add(usedAt, tokens, run.tips);
    run.usedAt = usedAt;
  }
}

function newRun(before: Run | null, end: number, isHead: boolean): Run {
  const from = before?.end ?? 0;
  return { before, from, end, usedAt: NEVER, tips: 0, continued: 0, isHead, settledAt: NEVER, uses: [] };
}

/** A run and all before it, the last one first. */
function* runsTo(leaf: CachedRun): Generator<Run, void, undefined> {
  for (let run = leaf as Run | null; run !== null; run = run.before) yield run;
}
