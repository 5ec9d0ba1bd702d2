/* An engine's cache in LRU order: runs of tokens, each after another, as prompts left them. Runs have no text. */

/** Milliseconds between two uses of one millisecond: four times the precision of such a number. */
const LATER_MS = 1 / 1_024;
/** Maximum sums by time. The oldest are merged. */
const MOST_PERIODS = 1_024;

const NEVER = Number.NEGATIVE_INFINITY;

/** Tokens of all users by their last use. Bounded work and memory per use. In columns, since each prompt reads them several times. */
class TokensByUse {
  /** Each period's end, ascending; it began with the end of the one before. Milliseconds since the epoch. */
  #ends: number[] = [];
  #tokens: number[] = [];
  /** Streams whose newest prompts end there. */
  #tips: number[] = [];
  #clearedAt = NEVER;

  /** What was used after a time (milliseconds since the epoch); infinite if the cache was cleared since. */
  above(at: number): { readonly tokens: number; readonly tips: number } {
    let [tokens, tips] = [at <= this.#clearedAt ? Number.POSITIVE_INFINITY : 0, 0];
    for (let n = this.#ends.length - 1; n >= 0 && (this.#ends[n] as number) > at; n--) {
      tokens += this.#tokens[n] as number;
      tips += this.#tips[n] as number;
    }
    return { tokens, tips };
  }

  /** The newest time before which everything is evicted from this capacity, and the streams after it. */
  within(capacity: number): { readonly since: number | null; readonly tips: number } {
    let [tokens, tips] = [0, 0];
    for (let n = this.#ends.length - 1; n >= 0; n--) {
      tokens += this.#tokens[n] as number;
      tips += this.#tips[n] as number;
      if (tokens > capacity) return { since: this.#ends[n] as number, tips };
    }
    return { since: this.#clearedAt === NEVER ? null : this.#clearedAt + 1, tips };
  }

  /** Everything last used by then is gone. */
  clear(at: number): void {
    const first = this.#firstAfter(at);
    for (const column of [this.#ends, this.#tokens, this.#tips]) column.splice(0, first);
    this.#clearedAt = at;
  }

  /** A time of use later than all before, so that equal times and a clock that was set back do not change the order. */
  timeOf(at: number): number {
    const last = Math.max(this.#ends.at(-1) ?? NEVER, this.#clearedAt);
    return at > last ? at : last + LATER_MS;
  }

  protected add(at: number, tokens: number, tips: number): void {
    if (at <= this.#clearedAt) return;
    const next = this.#firstAfter(at);
    // The period that ends then, else the one that it is within.
    const n = this.#ends[next - 1] === at ? next - 1 : next;
    if (n < this.#ends.length) {
      this.#tokens[n] = Math.max(0, (this.#tokens[n] as number) + tokens);
      this.#tips[n] = Math.max(0, (this.#tips[n] as number) + tips);
    } else if (tokens >= 0 && tips >= 0) {
      this.#ends.push(at);
      this.#tokens.push(tokens);
      this.#tips.push(tips);
      if (this.#ends.length > MOST_PERIODS) this.#merge();
    }
  }

  #firstAfter(at: number): number {
    let n = this.#ends.length;
    while (n > 0 && (this.#ends[n - 1] as number) > at) n--;
    return n;
  }

  /** Merges the older half in pairs; each keeps the newer time. */
  #merge(): void {
    const half = MOST_PERIODS / 2;
    for (const sums of [this.#tokens, this.#tips])
      for (let n = 1; n < half; n += 2) sums[n] = (sums[n] as number) + (sums[n - 1] as number);
    const kept = (column: readonly number[]) => column.filter((_, n) => n >= half || n % 2 === 1);
    [this.#ends, this.#tokens, this.#tips] = [kept(this.#ends), kept(this.#tokens), kept(this.#tips)];
  }
}

/** A run of tokens after another. A prompt with its last token has all before it. */
export interface CachedRun {
  /** Null: it begins a prompt. */
  readonly before: CachedRun | null;
  readonly from: number;
  readonly end: number;
  /** See {@link CachedRuns.timeOf}. */
  readonly usedAt: number;
}

interface Run extends CachedRun {
  before: Run | null;
  from: number;
  usedAt: number;
  /** Streams whose newest prompt ends with it. */
  tips: number;
  /** How many runs continue it. */
  continued: number;
  readonly isHead: boolean;
  /** The newest use that cannot be undone. */
  settledAt: number;
  /** Later uses, ascending. Each prompt may be released. */
  uses: number[];
}

/** One engine's cache for all tenants. A prompt's runs are the newest, and it is evicted from its end. */
export class CachedRuns extends TokensByUse {
  /** Tokens of clients that bypass memprefix. */
  addForeign(at: number, tokens: number): void {
    this.add(this.timeOf(at), tokens, 0);
  }

  /** A run for instructions, which is not cached before it is used. */
  head(tokens: number): CachedRun {
    return newRun(null, tokens, true);
  }

  /** The last run of a prompt that shares another's first `depth` tokens. */
  prompt(other: CachedRun, depth: number, total: number): CachedRun {
    const before = this.#endingAt(other as Run, depth);
    before.continued++;
    return newRun(before, total, false);
  }

  /** Marks this run and all before it as used. */
  use(leaf: CachedRun, at: number): void {
    for (const run of runsTo(leaf)) {
      run.uses.push(at);
      this.#reorder(run);
    }
  }

  /** Makes a use permanent, as of `to`, when its answer ended. Joins runs that every prompt uses together. */
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

  /** Undoes the use of a prompt that the engine never received. */
  release(leaf: CachedRun, at: number): void {
    for (const run of runsTo(leaf)) {
      run.uses = run.uses.filter((use) => use !== at);
      this.#reorder(run);
      if (run.usedAt === NEVER && run.before !== null) run.before.continued--;
    }
  }

  tip(leaf: CachedRun, by: 1 | -1): void {
    this.add(leaf.usedAt, 0, by);
    (leaf as Run).tips += by;
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
    this.add(run.usedAt, -tokens, -run.tips);
    this.add(usedAt, tokens, run.tips);
    run.usedAt = usedAt;
  }
}

function newRun(before: Run | null, end: number, isHead: boolean): Run {
  const from = before?.end ?? 0;
  return { before, from, end, usedAt: NEVER, tips: 0, continued: 0, isHead, settledAt: NEVER, uses: [] };
}

function* runsTo(leaf: CachedRun): Generator<Run, void, undefined> {
  for (let run = leaf as Run | null; run !== null; run = run.before) yield run;
}
