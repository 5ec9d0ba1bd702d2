import { describe, expect, it } from "vitest";
import { breaks } from "../../src/memory/mem0-conditions.js";

const metadata = {
  ...{ topic: "food", year: 2025, day: "2025-06-01", price: "9", isOld: false, tags: ["a", "b"], note: "Green Tea" },
  nested: { city: "Lisbon" },
};

/** What certainly does not hold of it, in any of Mem0's stores. */
const BROKEN = [
  ...[{ topic: "trip" }, { topic: { eq: "trip" } }, { topic: null }, { topic: ["trip", 7] }, { missing: "food" }],
  ...[{ topic: { ne: "food" } }, { topic: { nin: ["food"] } }, { topic: { in: ["trip"] } }, { topic: { in: [] } }],
  ...[{ year: { gt: 2025 } }, { year: { gte: 2024, lt: 2025 } }, { missing: { lt: 1 } }, { isOld: true }],
  ...[{ day: { gt: "2025-06-01" } }, { day: { lte: "2025-05-31" } }, { price: { gt: "10", lt: "8" } }, { tags: "c" }],
  ...[{ note: { contains: "Coffee" } }, { note: { icontains: "COFFEE" } }, { missing: { contains: "" } }],
  ...[{ AND: [{ topic: "food" }, { topic: "trip" }] }, { OR: [{ topic: "trip" }, { year: 2026 }] }, { OR: [] }],
  ...[
    { NOT: [{ topic: "food" }] },
    { NOT: { topic: "food", year: { gte: 2025 } } },
    { NOT: { NOT: { topic: "trip" } } },
  ],
  ...[{ metadata: { topic: "trip" } }, { metadata: { NOT: [{ topic: "food" }] } }],
];

/** What holds, or may in one of them. */
const KEPT = [
  ...[{}, { topic: "food" }, { topic: ["food", 7] }, { topic: "*" }, { missing: "*" }, { missing: null }],
  ...[
    { missing: { ne: "food" } },
    { missing: { nin: ["food"] } },
    { NOT: [{ missing: "food" }] },
    { topic: { ne: "trip" } },
  ],
  ...[{ year: "2025" }, { year: { ne: "2025" } }, { year: { gt: "2030" } }, { price: 9 }, { price: { gt: 10 } }],
  ...[
    { day: { gte: "2025-06-01T00:00:00Z" } },
    { day: { gte: "2025-06-01" } },
    { price: { gt: "10" } },
    { isOld: "false" },
  ],
  ...[{ tags: "a" }, { tags: { ne: "a" } }, { tags: { contains: "a" } }, { note: { contains: "green" } }],
  ...[{ note: { icontains: "TEA" } }, { year: { contains: "20" } }, { "nested.city": "Porto" }, { year: { near: 1 } }],
  ...[{ created_at: { gt: "2030-01-01" } }, { categories: "trip" }, { state: "new" }, { AND: [] }, { NOT: [] }],
  ...[{ OR: [{ topic: "trip" }, { created_at: "2025-01-01" }] }, { NOT: { topic: "food", year: 2026 } }],
  ...[{ metadata: { topic: "food" } }, { NOT: { year: { gt: 2025 } } }, { NOT: { day: { lt: "2025-01-01" } } }],
];

describe("a found memory", () => {
  const item = { id: "m1", memory: "Tea.", metadata, state: "old" };
  it.each(BROKEN)("breaks %j", (filters) => expect(breaks(filters, item)).toBe(true));
  it.each(KEPT)("is not known to break %j", (filters) => expect(breaks(filters, item)).toBe(false));

  it("without metadata breaks what names some, one that shows none nothing", () => {
    expect([null, {}].map((metadata) => breaks({ topic: "food" }, { metadata }))).toEqual([true, true]);
    expect(breaks({ topic: "food" }, { id: "m1" })).toBe(false);
  });
});
