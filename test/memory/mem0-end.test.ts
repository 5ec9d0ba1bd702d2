import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ENDED } from "../../src/core/index.js";
import { mem0End } from "../../src/memory/mem0-answer.js";

const at = (time: string) => ({ until: Date.parse(time) });

describe("mem0End", () => {
  it.each([
    ["a state, in the platform's spelling", { lifecycle_state: "superseded" }, { until: ENDED }],
    ["in its SDK's", { lifecycleState: "ARCHIVED" }, { until: ENDED }],
    ["in metadata", { metadata: { lifecycle_state: "deleted" } }, { until: ENDED }],
    ["what took its place", { replaced_by: "b" }, { until: ENDED, replacedBy: "b" }],
    ["the last of several", { replacedBy: ["b", "c"] }, { until: ENDED, replacedBy: "c" }],
    ["an object", { replaced_by: { id: "b" } }, { until: ENDED }],
    ["a deletion", { event: "DELETE" }, { until: ENDED }],
    ["SQLite's truth", { is_deleted: 1 }, { until: ENDED }],
    ["OpenMemory's state", { state: "paused" }, { until: ENDED }],
    ["a newer version", { is_latest: false }, { until: ENDED }],
    ["a newer version by its id", { superseded_by: "b" }, { until: ENDED, replacedBy: "b" }],
    ["the last day, over in UTC", { expiration_date: "2026-03-01" }, at("2026-03-02T00:00:00Z")],
    ["beside a time, too", { expirationDate: "2026-03-01T12:00:00+02:00" }, at("2026-03-02T00:00:00Z")],
    ["as mem0ai/oss gives it", { metadata: { expiration_date: "2026-03-01" } }, at("2026-03-02T00:00:00Z")],
    ["the earliest", { expiration_date: "2026-03-01", expirationDate: "2026-02-01" }, at("2026-02-02T00:00:00Z")],
    ["a last day in short", { expiration_date: "20260301" }, at("2026-03-02T00:00:00Z")],
    ["a day before 1970", { expiration_date: "1969-01-01" }, { until: 1 }],
  ])("reads %s", (_what, item, end) => {
    expect(mem0End(item)).toEqual(end);
  });

  it.each([
    {},
    { lifecycle_state: "active", event: "ADD", is_deleted: 0, replaced_by: null, replacedBy: "" },
    { replaced_by: [], expiration_date: null },
    { expiration_date: "soon", expirationDate: "2026-02-30", is_deleted: "no" },
    { metadata: { state: "archived", event: "DELETE", valid_until: "2001-01-01" } },
    { metadata: "deleted" },
    { id: "a", replaced_by: "a", replacedBy: {} },
  ])("says nothing of %j", (item) => {
    expect(mem0End(item)).toBeUndefined();
  });

  it("never throws", () => {
    const names = ["lifecycle_state", "replaced_by", "expiration_date", "is_deleted", "metadata", "event"];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.jsonValue()), (item) => {
        const end = mem0End(item);
        if (end !== undefined) expect(Number.isFinite(end.until)).toBe(true);
      }),
    );
  });
});
