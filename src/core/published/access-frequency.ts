import type { EvictedPath } from "../cache/context-index.js";
import { type TurnRow, TurnRows } from "../ordering/turn-rows.js";
import type { Label, TurnId } from "../text/ids.js";

/** CRAFT's sliding window. */
export const WINDOW_REQUESTS = 1_000;
/** Minimum requests in the window to promote a block into the prefix tree. */
const PROMOTION_THRESHOLD = 2;

export interface Access extends TurnRow {
  /** How many leading blocks it promoted. */
  readonly promoted: number;
}

/** CRAFT's state as rows of its window: access counts (the CA-Table) and prefixes of frequently accessed blocks (the CP-Tree). */
export class AccessWindow extends TurnRows<Access> {
  readonly #counts = new Map<Label, number>();

  constructor(rows: readonly Access[]) {
    super(WINDOW_REQUESTS);
    this.load(rows);
  }

  countOf(label: Label): number {
    return this.#counts.get(label) ?? 0;
  }

  byFrequency(labels: readonly Label[]): Label[] {
    return [...labels].sort((a, b) => this.countOf(b) - this.countOf(a));
  }

  /** First along the promoted prefixes, to the block with the highest count at each step. */
  alongPrefixes(labels: readonly Label[]): Label[] {
    const hottest = this.byFrequency(labels);
    const front: Label[] = [];
    for (let along: readonly Access[] = this.stored(); ; ) {
      const at = front.length;
      along = along.filter(({ promoted }) => promoted > at);
      const nexts = new Set(along.map((row) => row.labels[at]));
      const next = hottest.find((label) => nexts.has(label));
      if (next === undefined) return [...front, ...hottest.filter((label) => !front.includes(label))];
      front.push(next);
      along = along.filter((row) => row.labels[at] === next);
    }
  }

  /** Counts a served request. Promotes its leading blocks while their counts reach the threshold. A turn counted again replaces its row. */
  take(labels: readonly Label[], turn: TurnId): void {
    this.remove(turn);
    if (labels.length === 0) return;
    const rare = labels.findIndex((label) => this.countOf(label) + 1 < PROMOTION_THRESHOLD);
    this.put({ turn, labels: [...labels], promoted: rare < 0 ? labels.length : rare });
  }

  /** Ends promoted prefixes where an evicted path is not held any more. Counts stay. */
  evicted({ labels: path, held }: EvictedPath): void {
    for (const row of this.stored()) {
      if (row.promoted <= held || row.labels.some((label, at) => at <= held && label !== path[at])) continue;
      this.put({ ...row, promoted: held });
    }
  }

  protected override entered({ labels }: Access): void {
    for (const label of labels) this.#counts.set(label, this.countOf(label) + 1);
  }

  protected override left({ labels }: Access): void {
    for (const label of labels) {
      const count = this.countOf(label) - 1;
      if (count === 0) this.#counts.delete(label);
      else this.#counts.set(label, count);
    }
  }

  /** A promoted prefix ends before the first block that is gone. */
  protected override shortened(row: Access, labels: readonly Label[]): Access {
    const cut = row.labels.findIndex((label, at) => label !== labels[at]);
    return { ...row, labels, promoted: Math.min(row.promoted, cut) };
  }
}
