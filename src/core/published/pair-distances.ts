import type { Label } from "../text/ids.js";
import { DEFAULT_ALPHA } from "./context-distance.js";

/**
 * Steps per unit of distance. Distances are whole steps, so that sums are exact and independent of the merge order: about 2^32 steps for
 * 2,000 contexts, 2^27 for 12,000. Distances that differ by less than a step are equal.
 */
export function distanceSteps(contexts: number, longest: number): number {
  const pairs = Math.max(1, (contexts * contexts) / 4);
  const farthest = 1 + DEFAULT_ALPHA * longest;
  return 2 ** Math.min(40, Math.floor(53 - Math.log2(pairs * farthest)));
}

/**
 * The rows of the table of pairs are stored in bands of this many, each band column by column: eight sums fill a cache line, so columns are
 * read as fast as rows. (Row by row took a quarter longer overall.)
 */
export const BAND = 8;

/** The pair `i < j` of `n` is at `rowStart(n, i) + BAND * j`; within a band `rowStart(n, i + 1)` is one more. */
export function rowStart(n: number, i: number): number {
  const lane = i % BAND;
  const above = i - lane;
  return above * n - (above * (above - BAND)) / 2 - above * BAND + lane;
}

/** Size of the table for `n` contexts, including unused entries. */
const tableSize = (n: number) => rowStart(n, Math.ceil(n / BAND) * BAND) + BAND * Math.ceil(n / BAND) * BAND;

export interface PairDistances {
  /** By pair, see {@link rowStart}. */
  readonly distances: Float64Array;
  /** Each context's nearest other; -1 if none is nearer than a context that shares nothing. */
  readonly nearest: Int32Array;
}

/** Eq. 1 for all pairs, in steps. Visits only pairs that share a block, through the block's contexts. */
export function pairDistances(contexts: readonly (readonly Label[])[], steps: number): PairDistances {
  const n = contexts.length;
  const distances = new Float64Array(tableSize(n)).fill(steps);
  const nearest = new Int32Array(n).fill(-1);
  // Half a step below the distance of contexts that share nothing, so that those are never the nearest.
  const least = new Float64Array(n).fill(steps - 0.5);
  const lengths = Int32Array.from(contexts, ({ length }) => length);
  const holders = new BlockHolders(contexts);
  const shared = new Int32Array(n);
  const shift = new Int32Array(n);
  const touched = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    const length = lengths[i] as number;
    let count = 0;
    for (let position = 0; position < length; position++) {
      const { from, to } = holders.behind(i, position);
      for (let at = from; at < to; at++) {
        const j = holders.contexts[at] as number;
        const both = shared[j] as number;
        if (both === 0) touched[count++] = j;
        shared[j] = both + 1;
        shift[j] = (shift[j] as number) + Math.abs((holders.positions[at] as number) - position);
      }
    }
    const start = rowStart(n, i);
    for (let at = 0; at < count; at++) {
      const j = touched[at] as number;
      const [both, moved] = [shared[j] as number, shift[j] as number];
      const longer = Math.max(length, lengths[j] as number);
      const distance = Math.round((1 - both / longer + (DEFAULT_ALPHA * moved) / both) * steps);
      distances[start + BAND * j] = distance;
      shared[j] = 0;
      shift[j] = 0;
      if (distance <= (least[i] as number) && (distance < (least[i] as number) || j < (nearest[i] as number))) {
        least[i] = distance;
        nearest[i] = j;
      }
      // Contexts older than `i` were compared with `j` before.
      if (distance < (least[j] as number)) {
        least[j] = distance;
        nearest[j] = i;
      }
    }
  }
  return { distances, nearest };
}

/** The contexts that contain each block, with positions: for each block a run of entries, contexts ascending. */
class BlockHolders {
  readonly contexts: Int32Array;
  readonly positions: Int32Array;
  /** The entries of each context's blocks, context by context. */
  readonly #entries: Int32Array;
  /** Offset of each context's first entry in `#entries`. */
  readonly #firsts: Int32Array;
  /** The end of each entry's run. */
  readonly #ends: Int32Array;

  constructor(contexts: readonly (readonly Label[])[]) {
    const holding = new Map<Label, number>();
    for (const context of contexts) for (const label of context) holding.set(label, (holding.get(label) ?? 0) + 1);
    let size = 0;
    const runs = new Map<Label, { next: number; readonly end: number }>();
    for (const [label, held] of holding) {
      runs.set(label, { next: size, end: size + held });
      size += held;
    }
    this.contexts = new Int32Array(size);
    this.positions = new Int32Array(size);
    this.#entries = new Int32Array(size);
    this.#ends = new Int32Array(size);
    this.#firsts = new Int32Array(contexts.length);
    let first = 0;
    for (const [at, context] of contexts.entries()) {
      this.#firsts[at] = first;
      for (const [position, label] of context.entries()) {
        const run = runs.get(label);
        if (run === undefined) continue;
        this.contexts[run.next] = at;
        this.positions[run.next] = position;
        this.#ends[run.next] = run.end;
        this.#entries[first + position] = run.next++;
      }
      first += context.length;
    }
  }

  /** Entries of later contexts that contain the block at this position. */
  behind(context: number, position: number): { readonly from: number; readonly to: number } {
    const own = this.#entries[(this.#firsts[context] as number) + position] as number;
    return { from: own + 1, to: this.#ends[own] as number };
  }
}
