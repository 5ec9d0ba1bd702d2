import type { Label } from "../text/ids.js";
import { BAND, distanceSteps, pairDistances, rowStart } from "./pair-distances.js";

/** Two clusters merge into one. A cluster is named by the index of its oldest context, so the merged one keeps the older name, `first`. */
export interface Merge {
  readonly first: number;
  readonly second: number;
  /** Mean context distance (eq. 1) between the contexts of the two clusters. */
  readonly distance: number;
}

/** Whether `sum / weight` is less than `otherSum / otherWeight`, for whole numbers below 2^53; exact, unlike rounded divisions. */
function isSmaller(sum: number, weight: number, otherSum: number, otherWeight: number): boolean {
  const [left, right] = [sum * otherWeight, otherSum * weight];
  if (left <= Number.MAX_SAFE_INTEGER && right <= Number.MAX_SAFE_INTEGER) return left < right;
  return BigInt(sum) * BigInt(otherWeight) < BigInt(otherSum) * BigInt(weight);
}

/**
 * Average-linkage clustering of contexts by eq. 1 (Alg. 4) down to one cluster: the same tree as always merging the nearest pair. Of
 * equally near pairs the one with the oldest context merges first, then the one whose other context is older.
 *
 * Uses a nearest-neighbour chain: average linkage is reducible, so two clusters that are each other's nearest merge eventually, whatever
 * else merges, and may merge at once. Exact sums keep that true for ties. Merges are ordered children before parents, not nearest first.
 * O(N²) time, 4·N² bytes (N² / 2 sums), which shrink as clusters merge.
 */
export function averageLinkage(contexts: readonly (readonly Label[])[]): Merge[] {
  const steps = distanceSteps(
    contexts.length,
    contexts.reduce((longest, { length }) => Math.max(longest, length), 0),
  );
  const { distances, nearest } = pairDistances(contexts, steps);
  return new NearestNeighbourChain(distances, nearest, steps).merges();
}

/** Rounded products within this relative distance are compared exactly. */
const ROUNDING = 1 + 2 ** -50;

/** The nearest of a series of clusters; the first of equally near ones. */
class Nearest {
  place = -1;
  #sum = 0;
  #weight = 1;
  /** Upper bound of the minimum mean distance. */
  limit = Number.POSITIVE_INFINITY;

  /** `mean` is `sum / weight` up to rounding, and not above the limit. */
  take(place: number, sum: number, weight: number, mean: number): void {
    if (this.place >= 0 && !isSmaller(sum, weight, this.#sum, this.#weight)) return;
    this.place = place;
    this.#sum = sum;
    this.#weight = weight;
    this.limit = mean * ROUNDING;
  }
}

class NearestNeighbourChain {
  /** The remaining clusters, ascending, each by its name. A cluster's place in this array is its index in `sums`. */
  #names: Int32Array;
  /** Number of contexts, by place; 0 for a merged cluster. */
  #weights: Float64Array;
  /** 1 / weight, by place; NaN for a merged cluster, so that no comparison finds it near. */
  #shares: Float64Array;
  #nearest: Int32Array;
  #places: number;
  #left: number;
  /** Places of the chain's clusters. */
  readonly #chain: number[] = [];

  constructor(
    /** Sums of the distances between all contexts of two clusters, by pair of places. */
    readonly sums: Float64Array,
    /** The nearest cluster's place, by place; -1 if unknown. Merges elsewhere do not change it: the merged cluster is no nearer. */
    nearest: Int32Array,
    readonly steps: number,
  ) {
    const contexts = nearest.length;
    this.#names = Int32Array.from({ length: contexts }, (_, i) => i);
    this.#weights = new Float64Array(contexts).fill(1);
    this.#shares = new Float64Array(contexts).fill(1);
    this.#nearest = nearest;
    this.#places = contexts;
    this.#left = contexts;
  }

  merges(): Merge[] {
    const merges: Merge[] = [];
    const chain = this.#chain;
    while (this.#left > 1) {
      if (chain.length === 0) chain.push(this.#weights.findIndex((weight) => weight > 0));
      const last = chain.at(-1) as number;
      if (this.#nearest[last] === -1) this.#nearest[last] = this.#findNearest(last);
      const nearest = this.#nearest[last] as number;
      if (nearest !== chain.at(-2)) {
        chain.push(nearest);
        continue;
      }
      chain.length -= 2;
      merges.push(this.#merge(Math.min(last, nearest), Math.max(last, nearest)));
      if (this.#left * 4 < this.#places * 3) this.#closeGaps();
    }
    return merges;
  }

  #findNearest(of: number): number {
    const [sums, weights, shares, places] = [this.sums, this.#weights, this.#shares, this.#places];
    const nearest = new Nearest();
    for (let other = 0, at = 0; other < of; other++, at++) {
      if (other % BAND === 0) at = rowStart(places, other) + BAND * of;
      const mean = (sums[at] as number) * (shares[other] as number);
      if (mean <= nearest.limit) nearest.take(other, sums[at] as number, weights[other] as number, mean);
    }
    for (let other = of + 1, at = rowStart(places, of) + BAND * other; other < places; other++, at += BAND) {
      const mean = (sums[at] as number) * (shares[other] as number);
      if (mean <= nearest.limit) nearest.take(other, sums[at] as number, weights[other] as number, mean);
    }
    return nearest.place;
  }

  #merge(a: number, b: number): Merge {
    const [sums, weights, shares, places] = [this.sums, this.#weights, this.#shares, this.#places];
    const [first, second] = [weights[a] as number, weights[b] as number];
    const [rowA, rowB] = [rowStart(places, a), rowStart(places, b)];
    const distance = (sums[rowA + BAND * b] as number) / (first * second) / this.steps;
    weights[b] = 0;
    shares[b] = Number.NaN;
    const nearest = new Nearest();
    const add = (other: number, at: number, second: number) => {
      const sum = (sums[at] as number) + (sums[second] as number);
      sums[at] = sum;
      const mean = sum * (shares[other] as number);
      if (mean <= nearest.limit) nearest.take(other, sum, weights[other] as number, mean);
    };
    for (let other = 0, row = 0; other < b; other++, row++) {
      if (other % BAND === 0) row = rowStart(places, other);
      if (other !== a) add(other, other < a ? row + BAND * a : rowA + BAND * other, row + BAND * b);
    }
    for (let other = b + 1; other < places; other++) add(other, rowA + BAND * other, rowB + BAND * other);
    for (let other = 0; other < places; other++) {
      if (this.#nearest[other] === a || this.#nearest[other] === b) this.#nearest[other] = -1;
    }
    this.#nearest[a] = nearest.place;
    weights[a] = first + second;
    shares[a] = 1 / (first + second);
    this.#left--;
    return { first: this.#names[a] as number, second: this.#names[b] as number, distance };
  }

  /** Compacts the remaining clusters, so that passes are dense and touch fewer pages. */
  #closeGaps(): void {
    const [sums, places] = [this.sums, this.#places];
    const kept = new Int32Array(this.#left);
    const newPlace = new Int32Array(places).fill(-1);
    for (let place = 0, next = 0; place < places; place++) {
      if (this.#weights[place] === 0) continue;
      kept[next] = place;
      newPlace[place] = next++;
    }
    // Ascending new places: every pair moves to the front, so none is overwritten before it has moved.
    for (let band = 0; band < kept.length; band += BAND) {
      const rows = kept.slice(band, band + BAND);
      const from = rows.map((place) => rowStart(places, place));
      const to = rowStart(kept.length, band);
      for (let j = band + 1; j < kept.length; j++) {
        const column = BAND * (kept[j] as number);
        for (let lane = 0; lane < rows.length && band + lane < j; lane++) {
          sums[to + BAND * j + lane] = sums[(from[lane] as number) + column] as number;
        }
      }
    }
    this.#names = kept.map((place) => this.#names[place] as number);
    this.#nearest = kept.map((place) => newPlace[this.#nearest[place] as number] ?? -1);
    this.#weights = Float64Array.from(kept, (place) => this.#weights[place] as number);
    this.#shares = this.#weights.map((weight) => 1 / weight);
    this.#places = kept.length;
    for (const [at, place] of this.#chain.entries()) this.#chain[at] = newPlace[place] as number;
  }
}
