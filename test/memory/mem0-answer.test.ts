import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readMem0Answer } from "../../src/memory/mem0-answer.js";
import { readMem0Added } from "../../src/memory/mem0-results.js";

const FIXTURES = join(import.meta.dirname, "fixtures");

function fixture(name: string): unknown {
  return JSON.parse(readFileSync(join(FIXTURES, name), "utf8"));
}

function textsOf(value: unknown): readonly string[] {
  const read = readMem0Answer(value);
  if (!read.ok) throw new Error(JSON.stringify(read.issues));
  return read.memories.map(({ text }) => text);
}

function issuesOf(value: unknown, root = "memories"): readonly { path: string; message: string }[] {
  return readMem0Answer(value, { root }).issues;
}

describe("readMem0Answer, shapes", () => {
  const hiking = "2025-01-02T03:04:06.000000+00:00";
  const cricket = "2024-07-26T10:29:36.630547-07:00";
  const platform = ["Likes to play cricket", "Finished the Q1 product"];
  const rest = ["Name is Alex", "Loves hiking"];

  it.each([
    ["oss-search.json", ["Ada drinks green tea", "Ada lives in London", "Ada has a dog"], "2026-11-21T10:39:31.698Z"],
    ["platform-search.json", platform, cricket],
    ["platform-search-sdk.json", platform, cricket],
    ["platform-page.json", platform, cricket],
    ["rest-search.json", rest, hiking],
    ["rest-search-relations.json", rest, hiking],
    ["bare-array.json", rest, hiking],
    ["reranked.json", ["Loves hiking", "Name is Alex", "Lives in Oslo"], hiking],
  ])("reads %s, its texts and times", (file, starts, createdAt) => {
    const read = readMem0Answer(fixture(file));
    const memories = read.ok ? read.memories : [];
    expect(memories).toHaveLength(starts.length);
    for (const [at, start] of starts.entries()) expect(memories[at]?.text).toMatch(new RegExp(`^${start}`));
    expect(memories.map((memory) => memory.createdAt)).toContainEqual(createdAt);
  });

  it("reads every recorded search, and leaves none of its items out", () => {
    for (const file of readdirSync(FIXTURES).filter((name) => !name.includes("-add") && !name.includes("-get"))) {
      expect(readMem0Answer(fixture(file)), file).toMatchObject({ ok: true, skipped: 0 });
    }
  });

  it("takes an empty list for an answer", () => {
    expect(readMem0Answer([])).toEqual({ ok: true, memories: [], skipped: 0, issues: [] });
    expect(readMem0Answer({ results: [], count: 0, next: null, previous: null })).toMatchObject({
      ok: true,
      memories: [],
    });
  });

  it.each([null, undefined, 7, "text", true, {}, { memories: [] }, { result: [] }])("refuses %j", (value) => {
    expect(issuesOf(value)).toEqual([{ path: "memories", message: "must be an array, or an object with results" }]);
  });

  it.each([null, {}, "x", { results: [] }])("refuses results that are %j", (results) => {
    expect(issuesOf({ results })).toEqual([{ path: "memories.results", message: "must be an array" }]);
  });
});

describe("readMem0Answer, fields", () => {
  it("are missing where they are of another type, and never make an item bad", () => {
    const item = { id: "a", memory: "x" };
    const odd = { created_at: {}, metadata: { nested: { deep: 1 }, none: null } };
    const read = readMem0Answer([
      { ...item, ...odd },
      { ...item, created_at: new Date(0) },
    ]);
    expect(read.ok && read.memories.map(({ createdAt }) => createdAt)).toEqual([undefined, 0]);
    const anyFields = fc.record({ created_at: fc.anything(), categories: fc.anything(), metadata: fc.anything() });
    fc.assert(
      fc.property(anyFields, (any) => {
        expect(readMem0Answer([{ ...item, ...any }])).toMatchObject({ ok: true, memories: [{ id: "a", text: "x" }] });
      }),
    );
  });
});

describe("readMem0Answer, items", () => {
  it("makes a number id a string", () => {
    expect(readMem0Answer([{ id: 42, memory: "x" }])).toMatchObject({ memories: [{ id: "42", text: "x" }] });
  });

  it("keeps the text as it is", () => {
    expect(textsOf([{ id: "a", memory: "  e\u0301 👩‍👩‍👧\r\n " }])).toEqual(["  e\u0301 👩‍👩‍👧\r\n "]);
  });

  it.each([
    ["no id", { memory: "x" }, "id"],
    ["an empty id", { id: "", memory: "x" }, "id"],
    ["a null id", { id: null, memory: "x" }, "id"],
    ["an integer that has lost digits", { id: 2 ** 53, memory: "x" }, "id"],
    ["a fraction for an id", { id: 1.5, memory: "x" }, "id"],
    ["an id with NUL", { id: "a\0b", memory: "x" }, "id"],
    ["half a surrogate pair in the id", { id: "\ud83d", memory: "x" }, "id"],
    ["no memory", { id: "a" }, "memory"],
    ["a null memory", { id: "a", memory: null }, "memory"],
    ["a memory that is an object", { id: "a", memory: { text: "x" } }, "memory"],
    ["an empty memory", { id: "a", memory: "" }, "memory"],
    ["a memory of white space", { id: "a", memory: " \n\u00a0\u3000" }, "memory"],
    ["a memory with NUL", { id: "a", memory: "x\0" }, "memory"],
    ["half a surrogate pair", { id: "a", memory: "x\udc00" }, "memory"],
  ])("leaves out %s, and says where", (_what, bad, field) => {
    const good = { id: "g", memory: "good" };
    expect(issuesOf([good, bad]).map(({ path }) => path)).toEqual([`memories[1].${field}`]);
    expect(issuesOf({ results: [good, good, bad] }, "body.memories").map(({ path }) => path)).toEqual([
      `body.memories.results[2].${field}`,
    ]);
    expect(readMem0Answer([good, bad, good])).toMatchObject({
      ok: true,
      memories: [{ id: "g" }, { id: "g" }],
      skipped: 1,
    });
  });

  it.each([null, 7, "x", [[]]])("leaves out an item that is %j", (bad) => {
    expect(issuesOf([bad])).toEqual([{ path: "memories[0]", message: "must be an object with id and memory" }]);
  });

  it("takes a text of any length: one that is too long for a prompt is cut there", () => {
    expect(readMem0Answer([{ id: "a", memory: "x".repeat(1_000_000) }])).toMatchObject({ ok: true });
  });

  it("never quotes what it leaves out", () => {
    const secret = "her diagnosis";
    const bad = [{ id: 1.5, memory: `${secret}\0` }, secret, { id: "a", memory: [secret] }, { memory: secret }];
    expect(JSON.stringify(issuesOf(bad))).not.toContain(secret);
  });

  it("names no more than 20 issues", () => {
    expect(issuesOf(Array.from({ length: 1_000 }, () => ({})))).toHaveLength(20);
  });
});

describe("readMem0Answer, order", () => {
  const items = (scores: readonly unknown[]) =>
    scores.map((score, index) => ({
      id: `${index}`,
      memory: `m${index}`,
      ...(score === undefined ? {} : { rerankScore: score }),
    }));

  it("leaves the order alone without rerank scores, whatever the scores say", () => {
    expect(
      textsOf([
        { id: 1, memory: "a", score: 0.1 },
        { id: 2, memory: "b", score: 0.9 },
      ]),
    ).toEqual(["a", "b"]);
  });

  it("puts higher rerank scores first, keeps the order of equals, and puts items without one last", () => {
    expect(textsOf(items([0.2, undefined, 0.9, 0.2, null, -1]))).toEqual(["m2", "m0", "m3", "m5", "m1", "m4"]);
  });

  it("takes both spellings, and nothing but finite numbers", () => {
    const mixed = [
      { id: 1, memory: "a", rerank_score: "0.99" },
      { id: 2, memory: "b", rerank_score: 0.1 },
      { id: 3, memory: "c", rerankScore: 0.5 },
    ];
    expect(textsOf(mixed)).toEqual(["c", "b", "a"]);
  });
});

describe("readMem0Answer, for anything", () => {
  const jsonLike = fc.jsonValue({ maxDepth: 4 });
  const nearMiss = fc.record(
    {
      results: fc.oneof(
        jsonLike,
        fc.array(
          fc.record(
            {
              id: fc.oneof(jsonLike, fc.string()),
              memory: fc.oneof(jsonLike, fc.string({ unit: "binary" })),
              rerankScore: jsonLike,
            },
            { requiredKeys: [] },
          ),
        ),
      ),
      relations: jsonLike,
    },
    { requiredKeys: [] },
  );

  it("never throws; what it gives is sound, and what it leaves out has a reason", () => {
    fc.assert(
      fc.property(fc.oneof(jsonLike, nearMiss), (value) => {
        const read = readMem0Answer(value);
        expect(read.issues.every(({ path }) => path.startsWith("memories"))).toBe(true);
        if (!read.ok || read.skipped > 0) expect(read.issues.length).toBeGreaterThan(0);
        for (const { id, text } of read.ok ? read.memories : []) {
          expect(id).not.toBe("");
          expect(text.trim()).not.toBe("");
          // What is stored as UTF-8 comes back the same.
          expect(Buffer.from(`${id}${text}`).toString()).toBe(`${id}${text}`);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("readMem0Added", () => {
  it.each([
    ["oss-add.json", "52c113cc-ab71-4082-a5ac-06241609a517", "Ada drinks green tea in the morning"],
    ["rest-add.json", "5e0a4d0e-2f0a-4a7c-8f5a-6b1f2a3c4d5e", "Name is Alex"],
  ])("reads %s", (file, id, text) => {
    expect(readMem0Added(fixture(file), "sent")).toEqual([{ id, text }]);
  });

  it("knows no id where the platform only queued", () => {
    expect(readMem0Added(fixture("platform-add-pending.json"), "sent")).toEqual([]);
    expect(readMem0Added({ results: [fixture("platform-add-pending.json")] }, "sent")).toEqual([]);
  });

  it("takes the text that was sent where only the id comes back", () => {
    expect(readMem0Added({ results: [{ id: "a", event: "ADD" }] }, "sent")).toEqual([{ id: "a", text: "sent" }]);
  });

  it("leaves out what extraction removed or left alone", () => {
    const results = [
      { id: "a", memory: "x", event: "DELETE" },
      { id: "b", memory: "y", event: "NONE" },
      { id: "c", memory: "z", event: "UPDATE" },
    ];
    expect(readMem0Added({ results }, "sent")).toEqual([{ id: "c", text: "z" }]);
  });

  it("never throws", () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => void readMem0Added(value, "sent")));
  });
});
