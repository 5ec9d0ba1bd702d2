import { describe, expect, it } from "vitest";
import type { MemoryId } from "../../src/core/text/ids.js";
import { failureOf, scopeOf } from "./memory-source.suite.js";
import { recordedMemories } from "./recorded-memories.js";

const never = new AbortController().signal;
const ada = scopeOf("ada");

describe("recordedMemories", () => {
  const source = recordedMemories({
    tea: {
      results: [
        { id: 1, memory: "green" },
        { id: 2, memory: "black" },
      ],
    },
    dog: [{ id: "r", memory: "Rex" }],
    __proto: [],
  });

  it("replays what was recorded for the query, at most topK of it", async () => {
    expect(await source.search({ scope: ada, query: "tea", topK: 10 }, never)).toEqual([
      { id: "1", text: "green" },
      { id: "2", text: "black" },
    ]);
    expect(await source.search({ scope: ada, query: "tea", topK: 1 }, never)).toEqual([{ id: "1", text: "green" }]);
    expect(await source.search({ scope: ada, query: "dog", topK: 1 }, never)).toEqual([{ id: "r", text: "Rex" }]);
  });

  it.each(["cat", "Tea", "toString", "__proto__"])("finds nothing for %s, which was not recorded", async (query) => {
    expect(await source.search({ scope: ada, query, topK: 1 }, never)).toEqual([]);
  });

  it("takes nothing in", async () => {
    expect(await failureOf(source.add(ada, [{ text: "x" }], never))).toMatchObject({ kind: "unsupported" });
    expect(await failureOf(source.delete(ada, "1" as MemoryId, never))).toMatchObject({ kind: "unsupported" });
    expect(await failureOf(source.deleteUser(ada, never))).toMatchObject({ kind: "unsupported" });
  });

  it("says which recording is not one", () => {
    expect(() => recordedMemories({ tea: [{ id: 1 }] })).toThrow('"tea"[0].memory: must be a string');
  });
});
