/*
 * Attacked: the promise that a forgotten memory stands in no byte that memprefix keeps, also where the application's own messages quoted it.
 * Tried: quotes in every encoding that agents produce (JSON in JSON, escapes of Unicode, CRLF, addresses, HTML, as rendered), in every place of
 * a message, with other agents, of memories that are cut, short, or only in the source; guesses at digests; the same messages said again.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { CUT_MARK, digestOf, type UserId } from "../../src/core/index.js";
import { openEmbeddedMem0 } from "../../src/memory/embedded-mem0.js";
import type { MemorySource } from "../../src/memory/memory-source.js";
import { columnsHolding, storedExchanges } from "../http/routes/stored-rows.js";
import { type Composed, servedApp } from "../http/server/served-app.js";
import { IS_WHOLE } from "../run-length.js";
import { checkDatabase } from "../store/checked-database.js";
import { forgetQuotes } from "./forget-quotes.js";
import { ENCODINGS, filesHolding, json, type Message, PLACES } from "./quotes.js";

const SECRET = 'Ada\'s "moonflower key" [7] <think>\nis under C:\\temp\\new, in Zürich 😀 &c';
/** What every encoding of it leaves as it is. */
const MARKS = ["moonflower"];
describe("what quotes a forgotten memory", () => {
  const app = servedApp({ environment: { MEMPREFIX_RETENTION: "keep" } });
  const secret = { id: "m-secret", memory: SECRET };
  const ada = { user_id: "ada" };
  const forget = async (id = "m-secret") => {
    const { status } = await app.send("DELETE", `/users/ada/memories/${id}`);
    expect(status).toBe(200);
  };
  const holding = (marks: readonly string[]) => filesHolding(app.dataDir, marks);

  it.each(Object.keys(ENCODINGS))("leaves every file when it is quoted %s, wherever it is said", async (name) => {
    await app.compose({ ...ada, query: "Where?", memories: [secret] });
    for (const [place, messagesWith] of Object.entries(PLACES)) {
      const messages = messagesWith(ENCODINGS[name]?.(SECRET) ?? "");
      await app.compose({ ...ada, request_id: place, messages, memories: [] });
    }
    expect(holding(MARKS)).not.toEqual([]);
    await forget();
    expect(holding(MARKS)).toEqual([]);
    expect((await checkDatabase(app.database)).findings).toEqual([]);
  });

  it("leaves every file where another agent of the user was told, and no other user's", async () => {
    await app.compose({ ...ada, agent_id: "holder", query: "Where?", memories: [secret] });
    const quoting = { messages: PLACES["an answer"]?.(SECRET), memories: [] };
    await app.compose({ ...ada, agent_id: "other", ...quoting });
    await app.compose({ ...ada, ...quoting });
    await forget();
    expect(holding(MARKS)).toEqual([]);
    await app.compose({ ...quoting, user_id: "bob" });
    await forget();
    expect(holding(MARKS)).not.toEqual([]);
  });

  it("leaves every file where the memory was cut: the whole of it, what was kept, and what was cut away", async () => {
    const sentence = (n: number) => `Sentence ${n} of Ada's confession. `;
    const long = Array.from({ length: 4_000 }, (_, n) => sentence(n)).join("");
    await app.compose({ ...ada, query: "What?", memories: [{ id: "m-long", memory: long }] });
    const quotes = [long, long.slice(0, 2_000), long.slice(40_000, 41_000), long.slice(-1_000)];
    for (const [at, quote] of quotes.entries())
      await app.compose({
        ...ada,
        request_id: `q-${at}`,
        messages: PLACES["a tool's result"]?.(json({ quote })),
        memories: [],
      });
    expect(columnsHolding(app.database, CUT_MARK)).toContain("journal.changes");
    await forget("m-long");
    expect(holding(["Ada's confession"])).toEqual([]);
  });

  it("leaves every file where the memory changed since: of every version of it", async () => {
    const old = "Ada hid it in the third drawer";
    await app.compose({ ...ada, query: "Where?", memories: [{ ...secret, memory: old }] });
    await app.compose({ ...ada, query: "Where?", memories: [secret] });
    await app.compose({
      ...ada,
      agent_id: "other",
      messages: PLACES["a tool's argument"]?.(json({ old })),
      memories: [],
    });
    await forget();
    expect(holding([...MARKS, "third drawer"])).toEqual([]);
  });

  it("is found by whole words where the memory is short", async () => {
    await app.compose({ ...ada, query: "Code?", memories: [{ id: "m-pin", memory: "4711" }] });
    const says = (request_id: string, content: string) =>
      app.compose({ ...ada, request_id, messages: [{ role: "user", content }], memories: [] });
    await says("r-1", "My code is 4711.");
    await says("r-2", json({ code: json({ code: "4711" }) }));
    await says("r-3", "Order 1471123 is late.");
    await forget("m-pin");
    const messages = storedExchanges(app.database).turns.flatMap(({ given }) => given);
    expect(messages.filter((message) => message !== null)).toEqual([
      { role: "user", content: "Code?" },
      { role: "user", content: "Order 1471123 is late." },
    ]);
  });

  it("goes, and what did not quote it stays: the conversation goes on from what remains, byte by byte", async () => {
    const talk = { ...ada, conversation_id: "c", memories: [{ id: "m-tea", memory: "Ada drinks tea" }, secret] };
    const history: Message[] = [{ role: "user", content: "Hello." }];
    await app.compose({ ...talk, messages: history });
    history.push({ role: "assistant", content: json({ found: SECRET }) }, { role: "user", content: "And now?" });
    await app.compose({ ...talk, messages: history });
    await forget();
    history.push({ role: "assistant", content: "So." }, { role: "user", content: "Go on." });
    const next = { ...talk, request_id: "r-next", messages: history };
    const answer = await app.compose(next);
    expect(answer.plan.expected_cached_tokens).toBeGreaterThan(0);
    expect(answer.blocks.map(({ memory_id }) => memory_id)).toEqual(["m-tea"]);
    // The application says it still; what is not new is not stored again.
    expect(holding(MARKS)).toEqual([]);
    expect(await app.compose(next)).toMatchObject({ messages: answer.messages });
  });

  it("may be said again, and then the answer is repeated as any other", async () => {
    const system = { system: `You know: ${SECRET}` };
    await app.compose({ ...ada, ...system, query: "Where?", memories: [secret] });
    await forget();
    expect(holding(MARKS)).toEqual([]);
    const again = { ...ada, ...system, request_id: "again", query: "Where?", memories: [] };
    const before: Composed = await app.compose(again);
    expect(await app.compose(again)).toEqual(before);
    expect((await checkDatabase(app.database)).findings).toEqual([]);
  });

  it("is not to be guessed by a digest of it, from the files or an export", async () => {
    await app.compose({ ...ada, conversation_id: "c", query: "Code?", memories: [{ id: "m-pin", memory: "4711" }] });
    const { status, text } = await app.send("GET", "/users/ada/export");
    expect(status).toBe(200);
    const guesses = ["4711", "<memories>\n- 4711\n</memories>"].map(digestOf);
    guesses.push(digestOf('{"content":"Code?","role":"user"}'));
    const hex = guesses.map((digest) => Buffer.from(digest, "base64url").toString("hex"));
    expect([...guesses, ...hex].filter((digest) => text.includes(digest))).toEqual([]);
    expect(filesHolding(app.dataDir, [...guesses, ...hex])).toEqual([]);
  });
});

describe("a memory that stands in memprefix's own Mem0 alone", () => {
  let mem0: MemorySource | undefined;
  const app = servedApp({
    source: (dataDir) => {
      mem0 = openEmbeddedMem0({ dataDir });
      return mem0;
    },
  });

  it("takes its quotes along when it is forgotten, though no prompt ever had it", async () => {
    const text = "Ada keeps the spare key with her neighbour";
    const scope = { tenant: "default", userId: "ada" as UserId, agentId: null };
    const [memory] = (await mem0?.add?.(scope, [{ text }], new AbortController().signal)) ?? [];
    expect(memory?.id).toBeDefined();
    const messages = [{ role: "user", content: json({ note: json(text) }) }];
    await app.compose({ user_id: "ada", messages, memories: [] });
    await app.send("DELETE", `/users/ada/memories/${memory?.id}`);
    expect(filesHolding(app.dataDir, ["spare key with"])).toEqual([]);
    expect(storedExchanges(app.database).turns.map(({ given }) => given)).toEqual([[null]]);
  }, 60_000);
});

describe("random memories, quoted at random to two services on one directory, then forgotten", () => {
  const directory = mkdtempSync(join(tmpdir(), "memprefix-forget-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it("leave nothing in any file or log, and nothing in what the engine is sent afterwards", async () => {
    const found = await forgetQuotes({ directory, memories: IS_WHOLE ? 40 : 12, seed: 20_260_715 });
    expect(found.left).toEqual([]);
    expect(found.forgotten).toBeGreaterThan(found.memories / 2);
    expect(found.quotes).toBeGreaterThan(found.memories);
    expect(found.sentBefore).toBeGreaterThan(0);
    expect(found.sentAfter).toBeGreaterThan(0);
    // What nobody asked to forget is still there, so that the search is known to find.
    expect(found.kept).toBeGreaterThan(0);
  }, 180_000);
});
