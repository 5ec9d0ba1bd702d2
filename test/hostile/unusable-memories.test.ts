import { describe, expect, it } from "vitest";
import { createMemprefix } from "../../src/index.js";
import { sendWith } from "../http/guards/callers.js";
import { type OpenAiEngine, openAiEngine } from "../http/routes/openai-engine.js";
import { composedOf, type ServedApp, servedApp } from "../http/server/served-app.js";
import { user } from "../messages.js";
import { doorsOf } from "./api-forms.js";

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

/** An item that is no memory, and the field that the warning has to name; `test/memory/mem0-answer.test.ts` has more of them. */
const BAD: readonly (readonly [string, unknown, string])[] = [
  ["half of a surrogate pair in the text", { id: "b", memory: SECRET + HALF }, ".memory"],
  ["NUL in the id", { id: "b\0", memory: SECRET }, ".id"],
  ["no text", { id: "b" }, ".memory"],
  ["no id", { memory: SECRET }, ".id"],
  ["an id of 1,001 characters", { id: "b".repeat(1_001), memory: SECRET }, ".id"],
  ["null", null, ""],
];

/** Items that are memories in spite of what else they say. */
const ODD: readonly (readonly [string, object])[] = [
  ["metadata with half of a surrogate pair", { metadata: { mood: HALF, [HALF]: 1 } }],
  ["fields of other types", { metadata: "none", score: "high", hash: null, user_id: 7, updatedAt: {} }],
  ["a date that is none", { created_at: "yesterday", expiration_date: "2026-02-30" }],
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

  it.each([
    ["as most requests are", {}],
    ["with further fields", { top_k: 3, system: "Be brief." }],
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
      for (const more of [{}, { dates: true }]) {
        const answer = await app.compose({ ...ask, ...more });
        expect(answer.warnings, what).toEqual([]);
        expect(JSON.stringify(answer.messages), what).toContain("Ada has a dog");
      }
    }
  });

  it("costs no request of a batch", async () => {
    const requests = BAD.map(([, item]) => ({ user_id: "ada", query: QUESTION, memories: withBad(item) }));
    const json = await app.send("POST", "/compose/batch", { requests });
    const { answers } = JSON.parse(json.text) as { answers: { index: number; answer: object }[] };
    expect(answers).toHaveLength(BAD.length);
    for (const { index, answer } of answers) {
      const [what = "", , field = ""] = BAD[index] ?? [];
      const { messages, warnings } = composedOf({ status: 200, contentType: null, text: JSON.stringify(answer) });
      expectGood(messages, what);
      expectTold(warnings, field, what);
    }
  });

  it("fails no chat, of any API", async () => {
    const among = BAD.map(([what, item]) => [what, JSON.stringify(withBad(item))] as const);
    await failNoChat(app, engine, among);
  });

  it("costs the library no more", async () => {
    const memprefix = createMemprefix({ dataDir: `${app.dataDir}/library`, source: { kind: "none" } });
    for (const [what, item, field] of [...BAD, ["undefined", undefined, ""], ["a big number", 1n, ""]] as typeof BAD) {
      const answer = await memprefix.compose({ userId: "ada", query: QUESTION, memories: withBad(item) });
      expectGood(answer.messages, what);
      expectTold(answer.warnings, field, what);
    }
    await memprefix.close();
  });

  it("is an error still where there is no list at all, or one that is too long", async () => {
    for (const memories of [7, "text", true, {}, { results: 7 }, Array.from({ length: 1_001 }, () => GOOD[0])]) {
      const { status, text } = await app.send("POST", "/compose", { user_id: "ada", query: QUESTION, memories });
      expect([status, JSON.parse(text).errors[0].field]).toEqual([422, expect.stringMatching(/^memories/)]);
    }
  });
});

/** Chats of every API with these memories: none fails, each has the good ones alone and a warning. */
async function failNoChat(
  app: Pick<ServedApp, "base">,
  engine: OpenAiEngine,
  among: readonly (readonly [what: string, memories: string])[],
): Promise<void> {
  for (const [path, body] of doorsOf([user(QUESTION)]))
    for (const [what, memories] of among) {
      const json = `${JSON.stringify(body).slice(0, -1)},"memprefix":{"memories":${memories}}}`;
      const { status, headers } = await sendWith(app, { "x-memprefix-user": "ada" }, "POST", path, json);
      expect([path, what, status]).toEqual([path, what, 200]);
      expect(headers.get("x-memprefix-warnings"), what).toBe("memory_unusable");
      expectGood(engine.requests.at(-1)?.body, what);
      engine.requests.length = 0;
    }
}

function expectGood(prompt: unknown, what: string): void {
  const text = JSON.stringify(prompt);
  for (const good of TEXTS) expect(text, what).toContain(good);
  expect(text, what).not.toContain(SECRET);
}

const nested = (levels: number) => `${"[".repeat(levels)}1${"]".repeat(levels)}`;
const DEEP = "must not be nested more than 128 levels deep";
const NAMED = "must not have a field named __proto__";

/** Items as JSON that is not safe to parse, and what the warning has to say. */
const UNSAFE: readonly (readonly [string, string, string])[] = [
  ["nested too deep", `{"id":"b","memory":"${SECRET}","metadata":${nested(200)}}`, DEEP],
  ["nested too deep in the body, not by itself", `{"id":"b","memory":"${SECRET}","metadata":${nested(126)}}`, DEEP],
  ["nested far too deep", `{"id":"b","memory":"${SECRET}","metadata":${nested(200_000)}}`, DEEP],
  ["a list nested too deep", nested(200), DEEP],
  ["a field named __proto__", `{"id":"b","memory":"${SECRET}","__proto__":{"id":"a"}}`, NAMED],
  ["that in its metadata", `{"id":"b","memory":"${SECRET}","metadata":{ "__proto__" : "x"}}`, NAMED],
  ["that among brackets in texts", `{"id":"]}","memory":"\\"]}${SECRET}","__proto__":null}`, NAMED],
];

describe("a memory that is not safe to parse", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });
  const [first, last] = GOOD.map((memory) => JSON.stringify(memory));
  const among = (item: string) => `[${first}, ${item} ,${last}]`;
  const post = (path: string, body: string, type = "application/json") =>
    app.send("POST", path, new TextEncoder().encode(body), type);

  it("costs a request of memprefix's own routes, and a batch", async () => {
    for (const [what, item, problem] of UNSAFE) {
      const body = `{"user_id":"ada","query":"${QUESTION}","memories":${among(item)}}`;
      const call = `"method":"tools/call","params":{"name":"compose_prompt","arguments":${body}}`;
      for (const [path, whole] of [
        ["/compose", body],
        ["/compose/batch", `{"requests":[${body}]}`],
        ["/mcp", `{"jsonrpc":"2.0","id":1,${call}}`],
      ] as const) {
        const { status, text } = await post(path, whole);
        expect([what, path, status]).toEqual([what, path, 422]);
        expect(text).not.toContain(SECRET);
        expect(text).toContain(problem === DEEP ? DEEP : "__proto__");
      }
    }
    expect(app.faults).toEqual([]);
  });

  it("fails no chat, of any API", async () => {
    await failNoChat(
      app,
      engine,
      UNSAFE.map(([what, item]) => [what, among(item)] as const),
    );
  });

  it("is an error still where something else is not safe either, or the body is no JSON", async () => {
    for (const [, item] of UNSAFE) {
      const memories = `"memories":${among(item)}`;
      const deep = await post("/compose", `{"user_id":"ada","messages":${nested(200)},${memories}}`);
      expect([deep.status, JSON.parse(deep.text).errors]).toEqual([422, [{ field: "messages", message: DEEP }]]);
      const begun = `{"user_id":"ada","query":"?",${memories}`;
      for (const cut of [begun, `{${memories}]`, `{"memories":[${item}`, `{"memories":{${item}]}`])
        expect([400, 422]).toContain((await post("/compose", cut)).status);
    }
    expect(app.faults).toEqual([]);
  });
});
