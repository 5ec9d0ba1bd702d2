import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RECENT_REQUESTS, type RecentRetrieval, RecentRetrievals } from "../../../src/core/ordering/ordering.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import { anySequence, label, labels } from "../cache/served-sequences.js";

const turn = (n: number) => n as TurnId;
const setsOf = (recent: RecentRetrievals) => [...recent.sets()].map((set) => [...set]);

/** The last requests with a store under them that applies what each event drained. */
class Stored {
  readonly rows = new Map<TurnId, RecentRetrieval>();
  recent = new RecentRetrievals([]);
  #turns = 0;

  take(asked: readonly Label[]): void {
    this.recent.take(asked, turn(++this.#turns));
    this.#store();
  }

  forget(...gone: readonly Label[]): void {
    this.recent.forget(new Set(gone));
    this.#store();
  }

  /** Read back in an order that says nothing. */
  reloaded(): RecentRetrievals {
    return new RecentRetrievals(structuredClone([...this.rows.values()]).reverse());
  }

  #store(): void {
    const { upserted, removed } = structuredClone(this.recent.drain());
    for (const row of upserted) this.rows.set(row.turn, row);
    for (const gone of removed) this.rows.delete(gone);
  }
}

const MENTIONED = labels(1, 2, 3, 4, 5, 6, 7, 8);

/** The block sets of the requests that have a bit in any mask, as text, sorted: bits have no order. */
function asMasksSay(recent: RecentRetrievals): string[] {
  const asked = new Map<number, Label[]>();
  for (const block of MENTIONED) {
    const { low, high } = recent.askedBy(block);
    for (let bit = 0; bit < RECENT_REQUESTS; bit++) {
      if ((((bit < 32 ? low : high) >>> (bit % 32)) & 1) === 1) asked.set(bit, [...(asked.get(bit) ?? []), block]);
    }
  }
  return [...asked.values()].map(String).sort();
}

function asSetsSay(recent: RecentRetrievals): string[] {
  return setsOf(recent)
    .map((set) => String(set.sort((a, b) => a - b)))
    .sort();
}

describe("recent retrievals", () => {
  it("keep what the last requests asked for, oldest first", () => {
    const stored = new Stored();
    stored.take(labels(3, 1));
    stored.take(labels(2));
    expect(setsOf(stored.recent)).toEqual([[3, 1], [2]]);
    expect([...stored.rows.values()]).toEqual([
      { turn: 1, labels: [3, 1] },
      { turn: 2, labels: [2] },
    ]);
  });

  it("hold 64 requests and drop the oldest past that, stored ones too", () => {
    expect(RECENT_REQUESTS).toBe(64);
    const stored = new Stored();
    for (let n = 1; n <= 200; n++) {
      stored.take(labels(n));
      expect(stored.recent.size).toBe(Math.min(n, 64));
    }
    const last = Array.from({ length: 64 }, (_, at) => [137 + at]);
    expect(setsOf(stored.recent)).toEqual(last);
    expect([...stored.rows.values()].map((row) => row.labels)).toEqual(last);
  });

  it("forget blocks, and requests that asked for nothing else", () => {
    const stored = new Stored();
    stored.take(labels(1, 2, 3));
    stored.take(labels(2));
    stored.take(labels(4, 1));
    stored.forget(label(2));
    expect(setsOf(stored.recent)).toEqual([
      [1, 3],
      [4, 1],
    ]);
    expect([...stored.rows.keys()]).toEqual([1, 3]);
    stored.recent.forget(new Set(labels(2, 9)));
    expect(stored.recent.drain()).toEqual({ upserted: [], removed: [] });
  });

  it("come back from the store as they were", () => {
    const anyEvent = fc.oneof(
      { weight: 9, arbitrary: anySequence.map((asked) => ({ kind: "take" as const, labels: asked })) },
      { weight: 1, arbitrary: anySequence.map((gone) => ({ kind: "forget" as const, labels: gone.slice(0, 2) })) },
    );
    const reloads = fc.property(fc.array(anyEvent, { maxLength: 120, size: "max" }), (events) => {
      const stored = new Stored();
      for (const event of events) {
        if (event.kind === "take") stored.take(event.labels);
        else stored.forget(...event.labels);
      }
      expect(setsOf(stored.reloaded())).toEqual(setsOf(stored.recent));
      expect(stored.reloaded().drain()).toEqual({ upserted: [], removed: [] });
      expect(stored.recent.size).toBeLessThanOrEqual(RECENT_REQUESTS);
      for (const recent of [stored.recent, stored.reloaded()]) expect(asMasksSay(recent)).toEqual(asSetsSay(recent));
    });
    fc.assert(reloads);
  });
});
