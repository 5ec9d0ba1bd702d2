/* Prefix caches as engines implement them, for evaluations and benches. Prompts are token ids. */

export type PrefixCache = Pick<SimulatedCache, "serve" | "heldTokens">;

export type CacheLimits = { readonly capacityTokens?: number | undefined };

export const BLOCK_TOKENS = 16;

interface UnitRun {
  /** Null only for the root. */
  parent: UnitRun | null;
  units: Int32Array;
  /** Offset of its end in a prompt, in units. */
  end: number;
  readonly children: Map<number, UnitRun>;
}

/**
 * A radix tree of prompts with LRU eviction, descendants before ancestors. Compares tokens, not hashes, so nothing collides. A hit excludes the
 * prompt's last token, which is computed for its logits. Throws a RangeError for a capacity that is not above 0.
 * - `blocks`: vLLM's. Evicts single blocks (`vllm/v1/core/kv_cache_manager.py`, `single_type_kv_cache_manager.py`).
 * - `radix`: SGLang's (`sglang/srt/mem_cache/radix_cache.py`, page size 1). Evicts whole leaves; using a part of one uses it all.
 */
export class SimulatedCache implements PrefixCache {
  readonly #root: UnitRun = { parent: null, units: new Int32Array(), end: 0, children: new Map() };
  /** Least recently used first: the oldest is always a leaf. */
  readonly #order = new Set<UnitRun>();
  readonly #unitTokens: number;
  readonly #capacity: number;
  readonly #blocks = new Map<string, number>();
  #held = 0;

  constructor(
    readonly kind: "blocks" | "radix",
    { capacityTokens = Number.POSITIVE_INFINITY }: CacheLimits = {},
    blockTokens = BLOCK_TOKENS,
  ) {
    if (!(capacityTokens > 0)) throw new RangeError(`capacityTokens is ${capacityTokens}, not above 0`);
    this.#unitTokens = kind === "blocks" ? blockTokens : 1;
    this.#capacity = Math.floor(capacityTokens / this.#unitTokens);
  }

  get heldTokens(): number {
    return this.#held * this.#unitTokens;
  }

  /** Looks a prompt up and inserts it; returns the tokens that need no prefill. */
  serve(tokens: readonly number[]): number {
    const reusable = Math.max(0, Math.floor((tokens.length - 1) / this.#unitTokens));
    return Math.min(this.admit(tokens, this.kind === "blocks" ? undefined : reusable), reusable * this.#unitTokens);
  }

  /** Inserts a prompt; returns how many of its first `most` tokens were held. */
  admit(tokens: readonly number[], most = tokens.length): number {
    const units = this.#unitsOf(tokens);
    const found = this.#use(units, Math.min(most, units.length));
    const end = Math.min(units.length, found.end + this.#makeRoom(units.length - found.end, found));
    const held = this.#use(units, end);
    if (held.end < end) this.#append(held, units.subarray(held.end, end));
    return found.end * this.#unitTokens;
  }

  /** Leading tokens of a prompt that are held; uses none of them. */
  heldOf(tokens: readonly number[]): number {
    const units = this.#unitsOf(tokens);
    const { run, same } = this.#find(units, units.length);
    return (run.end + same) * this.#unitTokens;
  }

  #unitsOf(tokens: readonly number[]): Int32Array {
    const size = this.#unitTokens;
    if (size === 1) return Int32Array.from(tokens);
    const units = new Int32Array(Math.floor(tokens.length / size));
    for (let at = 0; at < units.length; at++) {
      const block = tokens.slice(at * size, (at + 1) * size).join(",");
      const known = this.#blocks.get(block) ?? this.#blocks.size;
      this.#blocks.set(block, known);
      units[at] = known;
    }
    return units;
  }

  /** The last run that a prompt's first `end` units have whole, and how many units they share with `child` after it. */
  #find(units: Int32Array, end: number): { run: UnitRun; child: UnitRun | undefined; same: number } {
    for (let run = this.#root; ; ) {
      const child = run.end < end ? run.children.get(units[run.end] as number) : undefined;
      const same = child === undefined ? 0 : sameUnits(child, units, end);
      if (child === undefined || same < child.units.length) return { run, child, same };
      run = child;
    }
  }

  /** Marks the held part of a prompt's first `end` units as used; splits a run where they diverge. */
  #use(units: Int32Array, end: number): UnitRun {
    const { run, child, same } = this.#find(units, end);
    if (child === undefined) return this.#touch(run);
    const held = this.#split(child, same);
    if (this.kind === "radix") this.#touch(child);
    return this.#touch(held);
  }

  /** Marks a run and all before it as used. */
  #touch(last: UnitRun): UnitRun {
    for (let run = last; run.parent !== null; run = run.parent) {
      this.#order.delete(run);
      this.#order.add(run);
    }
    return last;
  }

  #split(child: UnitRun, same: number): UnitRun {
    const { parent, units, end } = child;
    const head: UnitRun = {
      parent,
      units: units.subarray(0, same),
      end: end - units.length + same,
      children: new Map([[units[same] as number, child]]),
    };
    parent?.children.set(units[0] as number, head);
    child.parent = head;
    child.units = units.subarray(same);
    return head;
  }

  #append(parent: UnitRun, units: Int32Array): void {
    const leaf = { parent, units: units.slice(), end: parent.end + units.length, children: new Map() };
    parent.children.set(units[0] as number, leaf);
    this.#held += units.length;
    this.#touch(leaf);
  }

  /** Evicts to make room; returns how many units there are. `firstInUse`: the least recently used run in use. */
  #makeRoom(units: number, firstInUse: UnitRun): number {
    for (const oldest of this.#order) {
      const missing = units - (this.#capacity - this.#held);
      if (oldest === firstInUse || missing <= 0) break;
      const { length } = oldest.units;
      const evicted = this.kind === "radix" ? length : Math.min(length, missing);
      this.#held -= evicted;
      oldest.end -= evicted;
      if (evicted === length) {
        this.#order.delete(oldest);
        oldest.parent?.children.delete(oldest.units[0] as number);
      } else oldest.units = oldest.units.subarray(0, length - evicted);
    }
    return this.#capacity - this.#held;
  }
}

function sameUnits({ units: run, end: runEnd }: UnitRun, units: Int32Array, end: number): number {
  const from = runEnd - run.length;
  const longest = Math.min(run.length, end - from);
  let same = 0;
  while (same < longest && run[same] === units[from + same]) same++;
  return same;
}
