import { describe, expect, it } from "vitest";
import { rowCounts } from "../routes/stored-rows.js";
import { problemOf, servedApp } from "../server/served-app.js";

const SECRET = "Ada hides the key under the third flower pot";
const HALF = "\ud83d";
const memory = { id: "m-1", memory: SECRET };
const good = { user_id: "ada", query: "Where is the key?", memories: [memory] };
const { user_id: _user, ...nobody } = good;
const { query: _query, ...unasked } = good;
const asking = (...messages: readonly unknown[]) => ({ ...unasked, messages });
const question = { role: "user", content: "Where is the key?" };
const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

/** What is wrong, the body, and the fields that the problem has to name. */
const invalid: readonly (readonly [string, unknown, ...string[]])[] = [
  ["no user_id", nobody, "user_id"],
  ["neither query nor messages", unasked, "query"],
  ["no messages in messages", asking(), "messages"],
  ["an answer as the last message", asking(question, { role: "assistant", content: "Here." }), "messages"],
  ["a content part without a type", asking({ role: "user", content: [{ text: "a" }] }), "messages[0].content[0].type"],
  ["memories that are a text", { ...good, memories: SECRET }, "memories"],
  ["memories in an object without results", { ...good, memories: { items: [memory] } }, "memories"],
  ["results that are no array", { ...good, memories: { results: SECRET } }, "memories.results"],
  [
    "5,000 memories",
    { ...good, memories: Array.from({ length: 5_000 }, (_, id) => ({ id, memory: SECRET })) },
    "memories",
  ],
  ["half of a surrogate pair in the query", { ...good, query: HALF }, "query"],
  ["half of a surrogate pair in user_id", { ...good, user_id: `ada${HALF}` }, "user_id"],
  ["half of a surrogate pair in a message", asking({ role: "user", content: HALF }), "messages[0]"],
  ["NUL in the query", { ...good, query: "key\0" }, "query"],
  ["NUL in a message", asking({ role: "user", content: [{ type: "text", text: "\0" }] }), "messages[0]"],
  [
    "a message nested 101 levels deep",
    `{"user_id":"ada","messages":[{"role":"user","x":${nested(101)}}]}`,
    "messages[0]",
  ],
  [
    "a message nested 20,000 levels deep",
    `{"user_id":"ada","messages":[{"role":"user","x":${nested(20_000)}}]}`,
    "messages",
  ],
  ["an unknown field", { ...good, userId: "ada" }, "userId"],
  ["several mistakes at once", { ...good, user_id: "", top_k: 0, memories: 7 }, "user_id", "memories", "top_k"],
  ["a body that is null", null, "body"],
  ["a body that is a text", JSON.stringify("hello"), "body"],
];

const LIMIT = 32 * 1024 * 1024;
const encoder = new TextEncoder();

/** What is wrong, the body, its content type, the status, and the field that the problem has to name. */
const unreadable: readonly (readonly [string, unknown, string | null, number, string])[] = [
  ["malformed JSON", '{"user_id": "ada",', "application/json", 400, "body"],
  ["an empty body", "", "application/json", 400, "body"],
  ["no body", undefined, "application/json", 400, "body"],
  ["bytes that are no UTF-8", [0xed, 0xa0, 0x80], "application/json", 400, "body"],
  ["a wrong content type", good, "text/plain", 415, "content-type"],
  ["a form", "user_id=ada", "application/x-www-form-urlencoded", 415, "content-type"],
  ["no content type", good, null, 415, "content-type"],
  ["a body of 50 MB", { ...good, system: "x".repeat(50_000_000) }, "application/json", 413, "body"],
  ["a body of one byte too many", { ...good, system: "x".repeat(LIMIT) }, "application/json", 413, "body"],
];

describe("POST /compose refuses, names the field and writes nothing for", () => {
  const app = servedApp();

  it("a field that is missing, and says so", async () => {
    const { errors } = problemOf(await app.send("POST", "/compose", { query: "Whose?" }));
    expect(errors).toEqual([{ field: "user_id", message: "is missing" }]);
  });

  it.each(invalid)("%s", async (_what, body, ...fields) => {
    await app.compose({ ...good, memories: [], conversation_id: "before" });
    const before = rowCounts(app.database);
    const exchange = await app.send("POST", "/compose", body);
    const problem = problemOf(exchange);
    expect(problem.status).toBe(422);
    expect([...new Set(problem.errors?.map(({ field }) => field))].toSorted()).toEqual(fields.toSorted());
    expect(problem.errors?.every(({ message }) => message.length > 0 && message !== "Invalid input")).toBe(true);
    expect(exchange.text).not.toContain(SECRET);
    expect(exchange.text.length).toBeLessThan(2_000);
    expect(rowCounts(app.database)).toEqual(before);
    expect(app.faults).toEqual([]);
  });

  it.each(unreadable)("%s", async (_what, body, contentType, status, field) => {
    const before = rowCounts(app.database);
    const bytes = Array.isArray(body)
      ? Buffer.concat([encoder.encode('{"user_id":"ada","query":"'), Buffer.from(body), encoder.encode('"}')])
      : body;
    const exchange = await app.send("POST", "/compose", bytes, contentType);
    const problem = problemOf(exchange);
    expect(problem.status).toBe(status);
    expect(problem.errors?.map((error) => error.field)).toEqual([field]);
    expect(exchange.text).not.toContain(SECRET);
    expect(rowCounts(app.database)).toEqual(before);
    expect(app.faults).toEqual([]);
  });

  it("a body that is too large, though it does not say how large it is", async () => {
    const before = rowCounts(app.database);
    // Over the limit by its last chunk only: a client that still writes much when the answer comes may lose it with the connection.
    const chunks = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < 8; at++) controller.enqueue(new Uint8Array(4_200_000).fill(32));
        controller.close();
      },
    });
    const problem = problemOf(await app.send("POST", "/compose", chunks));
    expect(problem).toMatchObject({ status: 413, errors: [{ field: "body" }] });
    expect(rowCounts(app.database)).toEqual(before);
  });
});

describe("POST /compose takes", () => {
  const app = servedApp();

  it.each([
    ["1,000 memories", { ...good, memories: Array.from({ length: 1_000 }, (_, id) => ({ id, memory: `fact ${id}` })) }],
    ["a pair of surrogates", { ...good, query: "👩‍👩‍👧" }],
    ["a memory id that is a number", { ...good, memories: [{ id: 7, memory: SECRET }] }],
    [
      "fields of a message and of a memory that it does not know",
      { ...asking({ ...question, name: "Ada" }), memories: [{ ...memory, x: [[[1]]] }] },
    ],
    [
      "a message nested 50 levels deep",
      `{"user_id":"ada","messages":[{"role":"user","content":"a","x":${nested(50)}}]}`,
    ],
  ])("%s", async (_what, body) => {
    expect(await app.send("POST", "/compose", body)).toMatchObject({ status: 200 });
  });

  it.each(["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.memprefix+json"])(
    "the content type %s",
    async (contentType) => {
      expect(await app.send("POST", "/compose", good, contentType)).toMatchObject({ status: 200 });
    },
  );
});
