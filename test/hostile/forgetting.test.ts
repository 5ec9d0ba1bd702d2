/*
 * Attacked: the promise that a forgotten memory is in no byte that memprefix stores, and that a conversation keeps the prefix before it.
 * Tried: a long conversation; word-for-word quotes in every place of a message, of memories that are cut, that changed, or that only the source
 * has; guesses at digests; the same messages said again. `test/store/sqlite/erased-text.test.ts` has another program that reads the file.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type ChatMessage, digestOf, type UserId } from "../../src/core/index.js";
import { openEmbeddedMem0 } from "../../src/memory/embedded-mem0.js";
import type { MemorySource } from "../../src/memory/memory-source.js";
import { type Composed, servedApp } from "../http/server/served-app.js";
import { calls, part, result, says, user } from "../messages.js";
import { checkDatabase } from "../store/checked-database.js";

const SECRET = 'Ada\'s "moonflower key" [7] <think>\nis under C:\\temp\\new, in Zürich 😀 &c';
/** What every form of it leaves as it is. */
const MARKS = ["moonflower"];
const secret = { id: "m-secret", memory: SECRET };
const ada = { user_id: "ada" };

const json = (value: unknown) => JSON.stringify(value);
const asciiOnly = (text: string) =>
  text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Ways in which applications quote a text word for word. */
const VERBATIM: Readonly<Record<string, (text: string) => string>> = {
  "as it is": (text) => text,
  "in JSON": (text) => json({ found: text }),
  "in JSON of ASCII alone, as Python writes it": (text) => asciiOnly(json({ found: text })),
  "with CRLF": (text) => text.replaceAll("\n", "\r\n"),
  "with CRLF, in JSON": (text) => json({ found: text.replaceAll("\n", "\r\n") }),
  "after a backslash": (text) => `\\${text}`,
};

/** Where in a prompt they quote it. */
const PLACES: Readonly<Record<string, (quote: string) => readonly ChatMessage[]>> = {
  "a question": (quote) => [user(`Is this right: ${quote}?`)],
  "an answer": (quote) => [user("Tell me."), says(quote), user("Thanks.")],
  "a part": (quote) => [user([part("See:"), part(quote)])],
  "a tool's result": (quote) => [user("Look."), calls("note", "{}"), result(quote)],
  "a tool's argument": (quote) => [user("Look."), calls("note", quote), result("ok")],
  "a thought": (quote) => {
    const thought = { type: "thinking", thinking: quote, signature: "s" };
    return [user("Tell me."), says([thought, part("Hm.")]), user("Thanks.")];
  },
  instructions: (quote) => [{ role: "system", content: quote }, user("Hello.")],
};

/** Which files of a directory hold one of these texts, in any byte. */
function filesHolding(directory: string, texts: readonly string[]): string[] {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => texts.some((text) => readFileSync(file).includes(text)));
}

describe("a memory that is forgotten in the middle of a long conversation", () => {
  const app = servedApp();
  const TURNS = 30;
  const MIDDLE = 15;
  const plain = (turn: number) =>
    Array.from({ length: 2 * turn + 1 }, (_, at) => (at % 2 === 0 ? user(`Question ${at / 2}`) : says(`Answer ${at}`)));
  const talk = (turn: number, more: object = {}) =>
    app.compose({
      ...{ user_id: "ada", conversation_id: "long", retention: "keep", messages: plain(turn) },
      memories: [{ id: `m-${turn}`, memory: `Fact number ${turn}` }, ...(turn === MIDDLE ? [secret] : [])],
      ...more,
    });

  it("is in no file once that is answered; what came before it goes on byte by byte, and the next plan says why", async () => {
    const prompts: Composed[] = [];
    for (let turn = 0; turn < TURNS; turn++) prompts.push(await talk(turn));
    await talk(0, { conversation_id: "other" });
    await talk(0, { agent_id: "coach", conversation_id: "coached", memories: [secret] });
    await talk(0, { user_id: "bob", memories: [{ ...secret, memory: "Bob's own" }] });
    expect(filesHolding(app.dataDir, MARKS)).not.toEqual([]);

    const { text } = await app.send("DELETE", "/users/ada/memories/m-secret");
    expect(filesHolding(app.dataDir, MARKS)).toEqual([]);
    expect(JSON.parse(text)).toMatchObject({
      conversations: [
        { agent_id: null, conversation_id: "long" },
        { agent_id: "coach", conversation_id: "coached" },
      ],
      prompts: TURNS - MIDDLE + 1,
      engine_cache: { may_hold: true },
      files: "erased",
    });

    const next = await talk(TURNS);
    expect(next.plan).toMatchObject({ fresh_start_reason: "memory_forgotten" });
    const before = prompts[MIDDLE - 1]?.messages ?? [];
    expect(before).toHaveLength(2 * MIDDLE - 1);
    expect(next.messages.slice(0, before.length)).toEqual(before);
    expect(next.messages.map(({ content }) => content)).toContain(`Answer ${2 * TURNS - 1}`);
    expect(json(next)).not.toContain("moonflower");
    const after = await talk(TURNS + 1);
    expect(after.messages.slice(0, next.messages.length)).toEqual(next.messages);
    expect(after.plan).not.toHaveProperty("fresh_start_reason");
    expect((await talk(1, { conversation_id: "other" })).plan).not.toHaveProperty("fresh_start_reason");
    expect((await app.send("GET", "/users/bob/export")).text).toContain("Bob's own");
  });
});

describe("what quotes a forgotten memory word for word", () => {
  const app = servedApp({ environment: { MEMPREFIX_RETENTION: "keep" } });
  const forget = async (id = "m-secret") => {
    const { status } = await app.send("DELETE", `/users/ada/memories/${id}`);
    expect(status).toBe(200);
  };
  const holding = (marks: readonly string[]) => filesHolding(app.dataDir, marks);

  it.each(Object.keys(VERBATIM))("leaves every file when it is quoted %s, wherever it is said", async (name) => {
    await app.compose({ ...ada, query: "Where?", memories: [secret] });
    for (const [place, messagesWith] of Object.entries(PLACES)) {
      const messages = messagesWith(VERBATIM[name]?.(SECRET) ?? "");
      await app.compose({ ...ada, request_id: place, messages, memories: [] });
    }
    expect(holding(MARKS)).not.toEqual([]);
    await forget();
    expect(holding(MARKS)).toEqual([]);
    expect((await checkDatabase(app.database)).findings).toEqual([]);
  });

  it("leaves every file where the memory was cut or changed since: of every version of it", async () => {
    const sentence = (n: number) => `Sentence ${n} of Ada's confession. `;
    const long = Array.from({ length: 4_000 }, (_, n) => sentence(n)).join("");
    const old = "Ada hid it in the third drawer";
    for (const memory of [old, long]) await app.compose({ ...ada, query: "What?", memories: [{ ...secret, memory }] });
    for (const [at, quote] of [long, old].entries()) {
      const messages = PLACES["a tool's result"]?.(json({ quote }));
      await app.compose({ ...ada, agent_id: "other", request_id: `q-${at}`, messages, memories: [] });
    }
    await forget();
    expect(holding(["Ada's confession", "third drawer"])).toEqual([]);
  });

  it("may be said again, and then the answer is repeated as any other", async () => {
    const system = { system: `You know: ${SECRET}` };
    await app.compose({ ...ada, ...system, query: "Where?", memories: [secret] });
    await forget();
    expect(holding(MARKS)).toEqual([]);
    const again = { ...ada, ...system, request_id: "again", query: "Where?", memories: [] };
    expect(await app.compose(again)).toEqual(await app.compose(again));
    expect((await checkDatabase(app.database)).findings).toEqual([]);
  });

  it("is not to be guessed by a digest of it: not from an export, and once it is forgotten from no file", async () => {
    const talk = { ...ada, conversation_id: "c", query: "Code?", memories: [{ id: "m-pin", memory: "4711" }] };
    await app.compose(talk);
    const { status, text } = await app.send("GET", "/users/ada/export");
    expect(status).toBe(200);
    const guesses = ["4711", "<memories>\n- 4711\n</memories>"].map(digestOf);
    expect(guesses.filter((digest) => text.includes(digest))).toEqual([]);
    await forget("m-pin");
    expect(holding(guesses)).toEqual([]);
  });
});

describe("a memory that only memprefix's own Mem0 has", () => {
  let mem0: MemorySource | undefined;
  const app = servedApp({
    source: (dataDir) => {
      mem0 = openEmbeddedMem0({ dataDir });
      return mem0;
    },
  });

  it("takes its quotes along when it is forgotten, though no prompt ever had it", async () => {
    const kept = "Ada keeps the spare key with her neighbour";
    const scope = { tenant: "default", userId: "ada" as UserId, agentId: null };
    const [memory] = (await mem0?.add?.(scope, [{ text: kept }], new AbortController().signal)) ?? [];
    expect(memory?.id).toBeDefined();
    await app.compose({ ...ada, messages: [user(json({ note: kept }))], memories: [] });
    await app.send("DELETE", `/users/ada/memories/${memory?.id}`);
    expect(filesHolding(app.dataDir, ["spare key with"])).toEqual([]);
  }, 60_000);
});
