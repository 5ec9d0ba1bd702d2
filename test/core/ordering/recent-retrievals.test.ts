import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RECENT_REQUESTS, RecentRetrievals } from "../../../src/core/ordering/ordering.js";
import type { TurnRow } from "../../../src/core/ordering/turn-rows.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import { anySequence, labels } from "../cache/served-sequences.js";

const turn = (n: number) => n as TurnId;
const setsOf = (recent: RecentRetrievals) => [...recent.sets()].map((set) => [...set]);

/** The last requests with a store under them that applies what each event drained. */
class Stored {
  readonly rows = new Map<TurnId, TurnRow>();
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
    const { low, high } = recent.requestersOf(block);
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
  it("are those of the last 64 requests less what was forgotten, come back from the store, and stand in the masks", () => {
    const anyEvent = fc.oneof(
      { weight: 9, arbitrary: anySequence.map((asked) => ({ kind: "take" as const, labels: asked })) },
      { weight: 1, arbitrary: anySequence.map((gone) => ({ kind: "forget" as const, labels: gone.slice(0, 2) })) },
    );
    const lives = fc.property(fc.array(anyEvent, { maxLength: 120, size: "max" }), (events) => {
      const stored = new Stored();
      let last: (readonly Label[])[] = [];
      for (const event of events) {
        if (event.kind === "take") {
          stored.take(event.labels);
          if (event.labels.length > 0) last = [...last, event.labels].slice(-64);
        } else {
          stored.forget(...event.labels);
          last = last.map((set) => set.filter((one) => !event.labels.includes(one))).filter(({ length }) => length > 0);
        }
      }
      expect(setsOf(stored.recent)).toEqual(last);
      expect(setsOf(stored.reloaded())).toEqual(last);
      expect(stored.reloaded().drain()).toEqual({ upserted: [], removed: [] });
      for (const recent of [stored.recent, stored.reloaded()]) expect(asMasksSay(recent)).toEqual(asSetsSay(recent));
    });
    fc.assert(lives);
  });
});
