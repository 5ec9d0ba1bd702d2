import { describe, expect, it } from "vitest";
import { createMemstem } from "../../src/index.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { composedOf, servedApp } from "../http/server/served-app.js";

/*
 * One bad memory costs that memory and a warning, at every door: what a search leaves out does not fail a request that gives it.
 */

const SECRET = "her diagnosis";
const GOOD = [
  { id: "g-1", memory: "Ada drinks green tea" },
  { id: "g-2", memory: "Ada lives in Paris" },
];
const TEXTS = GOOD.map(({ memory }) => memory);
const HALF = "\ud800";

/** An item that is no memory, and the field that the warning has to name. */
const BAD: readonly (readonly [string, unknown, string])[] = [
  ["half of a surrogate pair in the text", { id: "b", memory: SECRET + HALF }, ".memory"],
  ["half of a surrogate pair in the id", { id: HALF, memory: SECRET }, ".id"],
  ["NUL in the text", { id: "b", memory: `${SECRET}\0` }, ".memory"],
  ["NUL in the id", { id: "b\0", memory: SECRET }, ".id"],
  ["an empty text", { id: "b", memory: "" }, ".memory"],
  ["a blank text", { id: "b", memory: " \n\u3000" }, ".memory"],
  ["no text", { id: "b" }, ".memory"],
  ["a null text", { id: "b", memory: null }, ".memory"],
  ["a text that is a number", { id: "b", memory: 7 }, ".memory"],
  ["a text that is an object", { id: "b", memory: { text: SECRET } }, ".memory"],
  ["no id", { memory: SECRET }, ".id"],
  ["a null id", { id: null, memory: SECRET }, ".id"],
  ["an empty id", { id: "", memory: SECRET }, ".id"],
  ["a fraction for an id", { id: 1.5, memory: SECRET }, ".id"],
  ["an id of 1,001 characters", { id: "b".repeat(1_001), memory: SECRET }, ".id"],
  ["null", null, ""],
  ["an empty text for an item", "", ""],
  ["a text for an item", SECRET, ""],
  ["a number for an item", 7, ""],
  ["a list for an item", [GOOD[0]], ""],
  ["nothing", {}, ".id"],
];

/** Items that are memories in spite of what else they say. */
const ODD: readonly (readonly [string, object])[] = [
  ["metadata that is a text", { metadata: "none" }],
  ["metadata that is a list", { metadata: [1] }],
  ["metadata with half of a surrogate pair", { metadata: { mood: HALF, [HALF]: 1 } }],
  ["a score that is a text", { score: "high" }],
  ["a score that is none", { score: null, rerank_score: "9" }],
  ["a date that is none", { created_at: "yesterday", updatedAt: {}, expiration_date: "2026-02-30" }],
  ["categories that are numbers", { categories: [1, 2] }],
  ["a hash that is null", { hash: null, user_id: 7 }],
];

const withBad = (item: unknown) => [GOOD[0], item, GOOD[1]];
const QUESTION = "Which tea?";

describe("a bad memory among good ones", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });

  const expectTold = (warnings: readonly { code: string; message: string }[], field: string, what: string) => {
    expect(warnings, what).toMatchObject([{ code: "memory_unusable" }]);
    expect(warnings[0]?.message, what).toContain(`memories[1]${field} must`);
    expect(warnings[0]?.message, what).not.toContain(SECRET);
  };
  const expectGood = (prompt: unknown, what: string) => {
    const text = JSON.stringify(prompt);
    for (const good of TEXTS) expect(text, what).toContain(good);
    expect(text, what).not.toContain(SECRET);
  };

  it.each([
    ["as most requests are", {}],
    ["with further fields", { top_k: 3, prompt: true }],
  ])("is left out of a prompt, and named: %s", async (_how, more) => {
    for (const [what, item, field] of BAD) {
      const answer = await app.compose({ user_id: "ada", query: QUESTION, memories: withBad(item), ...more });
      expectGood(answer.messages, what);
      expectTold(answer.warnings, field, what);
    }
    const page = { count: 3, next: null, previous: null, results: withBad(null) };
    const { warnings } = await app.compose({ user_id: "ada", query: QUESTION, memories: page, ...more });
    expect(warnings[0]?.message).toContain("memories.results[1] must");
  });

  it("is counted where there are many: the warning stays short, and names the first ones", async () => {
    const memories = [...GOOD, ...Array.from({ length: 900 }, () => ({ memory: SECRET }))];
    const { messages, warnings } = await app.compose({ user_id: "ada", query: QUESTION, memories });
    expectGood(messages, "900");
    expect(warnings[0]?.message).toMatch(/^900 of the given memories .*memories\[2\]\.id must/);
    expect(warnings[0]?.message.length).toBeLessThan(4_000);
    const none = await app.compose({ user_id: "ada", query: QUESTION, memories: [null] });
    expect(none.messages).toEqual([{ role: "user", content: QUESTION }]);
  });

  it("is a memory if only what stands beside its text is wrong", async () => {
    for (const [what, more] of ODD) {
      const item = { id: "odd", memory: "Ada has a dog", ...more };
      const ask = { user_id: "ada", query: QUESTION, memories: withBad(item) };
      for (const template of [{}, { block_template: "[{date}: ]{memory}[ ({metadata.mood})][ ({categories})]" }]) {
        const answer = await app.compose({ ...ask, ...template });
        expect(answer.warnings, what).toEqual([]);
        expect(JSON.stringify(answer.messages), what).toContain("Ada has a dog");
      }
    }
  });

  it("costs no request of a batch, in either form", async () => {
    const requests = BAD.map(([, item]) => ({ user_id: "ada", query: QUESTION, memories: withBad(item) }));
    const lines = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
    const json = await app.send("POST", "/compose/batch", { requests });
    const ndjson = await app.send("POST", "/compose/batch", lines, "application/x-ndjson");
    const answers: { index: number; answer: object }[][] = [
      JSON.parse(json.text).answers,
      ndjson.text
        .trim()
        .split("\n")
        .flatMap((line) => ("answer" in JSON.parse(line) ? [JSON.parse(line)] : [])),
    ];
    for (const answered of answers) {
      expect(answered).toHaveLength(BAD.length);
      for (const { index, answer } of answered) {
        const [what = "", , field = ""] = BAD[index] ?? [];
        const { messages, warnings } = composedOf({ status: 200, contentType: null, text: JSON.stringify(answer) });
        expectGood(messages, what);
        expectTold(warnings, field, what);
      }
    }
  });

  it.each([
    ["chat completions", "/v1/chat/completions", { messages: [{ role: "user", content: QUESTION }] }],
    ["Messages", "/v1/messages", { max_tokens: 9, messages: [{ role: "user", content: QUESTION }] }],
    ["Responses", "/v1/responses", { input: QUESTION }],
  ])("fails no chat: %s", async (_door, path, body) => {
    for (const [what, item] of BAD) {
      const before = engine.requests.length;
      const response = await fetch(app.base + path, {
        method: "POST",
        headers: { connection: "close", "content-type": "application/json", "x-memstem-user": "ada" },
        body: JSON.stringify({ model: "m", ...body, memstem: { memories: withBad(item) } }),
      });
      await response.text();
      expect(response.status, what).toBe(200);
      expect(response.headers.get("x-memstem-warnings"), what).toBe("memory_unusable");
      expectGood(
        engine.requests.slice(before).map(({ body: sent }) => sent),
        what,
      );
    }
  });

  it("costs the library no more", async () => {
    const memstem = createMemstem({ dataDir: `${app.dataDir}/library`, source: { kind: "none" } });
    for (const [what, item, field] of [...BAD, ["undefined", undefined, ""], ["a big number", 1n, ""]] as typeof BAD) {
      const answer = await memstem.compose({ userId: "ada", query: QUESTION, memories: withBad(item) });
      expectGood(answer.messages, what);
      expectTold(answer.warnings, field, what);
    }
    await memstem.close();
  });

  it("is an error still where there is no list at all, or one that is too long", async () => {
    for (const memories of [7, "text", true, {}, { results: 7 }, Array.from({ length: 1_001 }, () => GOOD[0])]) {
      const { status, text } = await app.send("POST", "/compose", { user_id: "ada", query: QUESTION, memories });
      expect([status, JSON.parse(text).errors[0].field]).toEqual([422, expect.stringMatching(/^memories/)]);
    }
  });
});
