import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { APIS } from "../../../src/apis/apis.js";
import type { RequestId } from "../../../src/core/index.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { openUpstream, type Upstream, UpstreamError } from "../../../src/engines/upstream/upstream.js";
import { StoreUnavailableError } from "../../../src/service/base/errors.js";
import { Chat, type ChatRequest } from "../../../src/service/chat/chat.js";
import { SpeculativeCall } from "../../../src/service/chat/compose-with-timeout.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import type { DatabaseConnection } from "../../../src/store/database/open-database.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { RECORD_KINDS } from "../../../src/store/journal/journal-database.js";
import { sumOfRecord } from "../../../src/store/journal/journal-sql.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { journalIn } from "../../../src/store/sqlite/sqlite-journal.js";
import { openAiEngine } from "../../http/routes/openai-engine.js";
import { ana, memories, NOON, openService } from "../compose/service-fixture.js";

describe("a prompt that is being stored", () => {
  const engine = openAiEngine();
  const faults: unknown[] = [];
  let directory = "";
  let database: DatabaseConnection;
  let store: JournalStore;
  let service: Memprefix;
  let elsewhere: Database.Database;
  beforeEach(() => {
    faults.length = 0;
    directory = mkdtempSync(join(tmpdir(), "memprefix-ahead-"));
    const file = join(directory, "memprefix.db");
    database = openDatabase(file);
    store = new JournalStore(journalIn(database));
    service = openService({ database, store });
    elsewhere = new Database(file, { readonly: true });
  });
  afterEach(async () => {
    elsewhere.close();
    await service.close();
    rmSync(directory, { recursive: true });
  });

  /** Requests that another process sees. */
  const stored = () =>
    elsewhere.prepare("select count(*) from journal where kind = ?").pluck().get(RECORD_KINDS.indexOf("composed"));
  /** Sends to the engine's socket, and calls back each time that something is sent. */
  function chatting(onSend: (signal: AbortSignal, sent: ReturnType<Upstream["send"]>) => void): Chat {
    const { name, send } = openUpstream({ url: engine.url, timeoutMs: 10_000 });
    const upstream: Upstream = {
      name,
      send(call, signal) {
        const sent = send(call, signal);
        onSend(signal, sent);
        return sent;
      },
    };
    const { readUsage } = ENGINES.generic;
    const clock = () => performance.now();
    return new Chat({ upstream, readUsage, writeBack: false, onFault: (error) => faults.push(error), clock });
  }
  function asking(content: string): ChatRequest {
    const messages = [{ role: "user", content }];
    const given = { userId: ana, messages, memories: memories({ tea: "Ana drinks green tea" }) };
    return {
      userId: ana,
      agentId: null,
      compose: readComposeOptions(given),
      api: APIS.chat,
      body: { model: "stub-1", messages },
      written: (sent) => JSON.stringify(sent),
      query: "",
      headers: [],
      writeBack: null,
    };
  }
  async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
  }

  it("is on its way to the engine already; the answer waits until it is stored", async () => {
    const seen: unknown[] = [];
    const chat = chatting(() => seen.push(stored()));
    const { body, composed } = await chat.complete(service.chats, asking("Which tea?"), new AbortController().signal);
    expect(seen).toEqual([0]);
    expect(stored()).toBe(1);
    expect(composed?.messages.at(-1)?.content).toContain("green tea");
    expect(engine.requests[0]?.body.messages).toEqual(composed?.messages);
    expect(await textOf(body)).toContain("Indeed.");
  });

  it("and cannot be is nobody's: the engine's call is given up, and the chat goes up as it came", async () => {
    database.sqlite.exec(
      "create table parents (id integer primary key); create table orphans (of_id references parents deferrable initially deferred)",
    );
    engine.behave((_request, response) => {
      if (calls.length > 1) response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    const calls: { readonly signal: AbortSignal; readonly sent: Promise<unknown> }[] = [];
    const chat = chatting((signal, sent) => {
      // The end of the transaction fails.
      const trigger = "create trigger orphan after insert on journal begin insert into orphans values (1); end";
      database.sqlite.exec(calls.push({ signal, sent }) === 1 ? trigger : "drop trigger if exists orphan");
    });
    const asked = asking("Which tea?");
    const plain = await chat.complete(service.chats, asked, new AbortController().signal);
    expect(plain).toMatchObject({ composed: null, notComposed: "fault" });
    expect(await textOf(plain.body)).toBe("{}");
    expect(stored()).toBe(0);
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    await expect(calls[0]?.sent).rejects.toMatchObject({ failure: { kind: "aborted" } });
    expect(engine.requests.at(-1)?.body.messages).toEqual(asked.body["messages"]);
    expect(faults).toMatchObject([{ message: "FOREIGN KEY constraint failed" }]);

    const { composed } = await chat.complete(service.chats, asked, new AbortController().signal);
    expect(composed?.messages.at(-1)?.content).toContain("green tea");
    expect(stored()).toBe(1);
    expect(faults).toHaveLength(1);
  });

  it("and had to be planned again, as another process was faster, is sent again and the first call is given up", async () => {
    const calls: AbortSignal[] = [];
    const chat = chatting((signal) => {
      // What another process's commit leaves behind.
      if (calls.push(signal) !== 2) return;
      const n = 1 + Number(database.sqlite.prepare("select max(n) from journal").pluck().get());
      const key = { scopeId: 1, n, kind: "evicted", at: NOON, turn: 1, turns: 0, conversation: null } as const;
      const record = { ...key, requestId: "generated-1" as RequestId, leaf: null, changes: null, said: null };
      database.sqlite
        .prepare(
          "insert into journal (scope_id, n, kind, at, turn, turns, request_id, sum) values (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .run(1, n, RECORD_KINDS.indexOf("evicted"), NOON, 1, 0, record.requestId, sumOfRecord(record, record));
    });
    await textOf((await chat.complete(service.chats, asking("Which tea?"), new AbortController().signal)).body);
    const { body, composed } = await chat.complete(service.chats, asking("Which cup?"), new AbortController().signal);
    expect(await textOf(body)).toContain("Indeed.");
    expect(calls.map((signal) => signal.aborted)).toEqual([false, true, false]);
    expect(engine.requests.at(-1)?.body.messages).toEqual(composed?.messages);
    expect(stored()).toBe(2);
    expect((await service.describeIndex(ana, null, 10)).counts.requests).toBe(2);
    expect(faults).toEqual([]);
  });

  it("and was locked out is planned again, and sent once it is stored: the first call's answer is nobody's", async () => {
    const busy = new StoreUnavailableError("busy", { cause: null });
    vi.spyOn(store, "commitCompose").mockRejectedValueOnce(busy);
    engine.answers.push("Of the first prompt.", "Of the second.");
    const calls: { readonly signal: AbortSignal; readonly stored: unknown }[] = [];
    const chat = chatting((signal) => calls.push({ signal, stored: stored() }));
    const { body, composed } = await chat.complete(service.chats, asking("Which tea?"), new AbortController().signal);
    expect(calls.map(({ signal, stored }) => [signal.aborted, stored])).toEqual([
      [true, 0],
      [false, 1],
    ]);
    expect(await textOf(body)).toContain("Of the second.");
    expect(engine.requests.at(-1)?.body.messages).toEqual(composed?.messages);
    expect(faults).toEqual([]);
  });

  it("is not sent before it is stored where the last one could not be", async () => {
    const seen: unknown[] = [];
    const chat = chatting(() => seen.push(stored()));
    // No page is free.
    database.sqlite.exec("vacuum");
    const room = database.sqlite.pragma("page_count", { simple: true });
    const named = asking("Which tea?");
    const long = { ...named, compose: readComposeOptions({ ...LONG, messages: named.body["messages"] }) };
    database.sqlite.pragma(`max_page_count = ${room}`);
    for (const notComposed of ["store_full", "store_full"])
      expect(await chat.complete(service.chats, long, new AbortController().signal)).toMatchObject({ notComposed });
    // Once ahead, and each time as it came.
    expect(seen).toEqual([0, 0, 0]);
    database.sqlite.pragma("max_page_count = 1073741823");
    for (let times = 0; times < 2; times++) {
      const { body, composed } = await chat.complete(service.chats, long, new AbortController().signal);
      expect(composed).not.toBeNull();
      await textOf(body);
    }
    // The first that could be was waited for, the next was ahead again.
    expect(seen.slice(3)).toEqual([1, 1]);
  });

  it("and whose engine is not there is stored, and expected of nobody", async () => {
    const chat = chatting(() => {});
    await engine.close();
    const failing = chat.complete(service.chats, asking("Which tea?"), new AbortController().signal);
    await expect(failing).rejects.toBeInstanceOf(UpstreamError);
    const live = async () => (await service.describeIndex(ana, null, 10)).nodes.flatMap(({ requestIds }) => requestIds);
    await vi.waitFor(async () => expect(await live()).toEqual([]));
    expect(stored()).toBe(1);
    expect(faults).toEqual([]);
  });
});

/** More than what room there is left in pages. */
const LONG = {
  userId: ana,
  memories: memories(
    Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`m-${n}`, `${n}: ${"Ana reads. ".repeat(200)}`])),
  ),
};

describe("a call ahead", () => {
  it("is not begun for a client that has gone, nor once it was given up", () => {
    const gone = new SpeculativeCall<number>(AbortSignal.abort());
    gone.start(() => expect.fail("begun"));
    expect(gone.answer).toBeNull();
    const late = new SpeculativeCall<number>(new AbortController().signal);
    late.cancel();
    late.start(() => expect.fail("begun"));
    expect(late.answer).toBeNull();
  });

  it("takes the place of the one before: its prompt was planned again", async () => {
    const call = new SpeculativeCall<AbortSignal>(new AbortController().signal);
    call.start(async (signal) => signal);
    const first = await call.answer;
    call.start(async (signal) => signal);
    const second = await call.answer;
    expect([first?.aborted, second?.aborted]).toEqual([true, false]);
    call.cancel();
    expect(second?.aborted).toBe(true);
  });

  it("has no answer once it is dropped, and may start again", async () => {
    const call = new SpeculativeCall<AbortSignal>(new AbortController().signal);
    call.start(async (signal) => signal);
    const first = await call.answer;
    call.drop();
    expect([first?.aborted, call.answer]).toEqual([true, null]);
    call.start(async (signal) => signal);
    expect((await call.answer)?.aborted).toBe(false);
  });

  it("ends with its client", async () => {
    const client = new AbortController();
    const call = new SpeculativeCall<AbortSignal>(client.signal);
    call.start(async (signal) => signal);
    const signal = await call.answer;
    expect(signal?.aborted).toBe(false);
    client.abort();
    expect(signal?.aborted).toBe(true);
  });
});
