import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ENGINES } from "../../src/engines/engines.js";
import { openUpstream, type Upstream, UpstreamError } from "../../src/engines/upstream.js";
import { CallAhead } from "../../src/service/call-ahead.js";
import { Chat, type ChatRequest } from "../../src/service/chat.js";
import { readComposeOptions } from "../../src/service/compose-request.js";
import type { Memstem } from "../../src/service/memstem.js";
import { type OpenDatabase, openDatabase } from "../../src/store/open-database.js";
import { openAiEngine } from "../http/openai-engine.js";
import { ana, memories, openService } from "./service-fixture.js";

describe("a prompt that is being stored", () => {
  const engine = openAiEngine();
  const faults: unknown[] = [];
  let directory = "";
  let database: OpenDatabase;
  let service: Memstem;
  let elsewhere: Database.Database;
  beforeEach(() => {
    faults.length = 0;
    directory = mkdtempSync(join(tmpdir(), "memstem-ahead-"));
    const file = join(directory, "memstem.db");
    database = openDatabase(file);
    service = openService({ database });
    elsewhere = new Database(file, { readonly: true });
  });
  afterEach(async () => {
    elsewhere.close();
    await service.close();
    rmSync(directory, { recursive: true });
  });

  /** Requests that another process sees. */
  const stored = () => elsewhere.prepare("select count(*) from requests").pluck().get();
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
      body: { model: "stub-1", messages },
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
    const { body, composed } = await chat.complete(service, asking("Which tea?"), new AbortController().signal);
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
      if (calls.push({ signal, sent }) === 1) database.sqlite.exec("insert into orphans values (1)");
    });
    const asked = asking("Which tea?");
    const plain = await chat.complete(service, asked, new AbortController().signal);
    expect(plain).toMatchObject({ composed: null, notComposed: "fault" });
    expect(await textOf(plain.body)).toBe("{}");
    expect(stored()).toBe(0);
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    await expect(calls[0]?.sent).rejects.toMatchObject({ failure: { kind: "aborted" } });
    expect(engine.requests.at(-1)?.body.messages).toEqual(asked.body["messages"]);
    expect(faults).toMatchObject([{ message: "FOREIGN KEY constraint failed" }]);

    const { composed } = await chat.complete(service, asked, new AbortController().signal);
    expect(composed?.messages.at(-1)?.content).toContain("green tea");
    expect(stored()).toBe(1);
    expect(faults).toHaveLength(1);
  });

  it("and whose engine is not there is stored, and expected of nobody", async () => {
    const chat = chatting(() => {});
    await engine.close();
    const failing = chat.complete(service, asking("Which tea?"), new AbortController().signal);
    await expect(failing).rejects.toBeInstanceOf(UpstreamError);
    const live = () => service.describeIndex(ana, null, 10).nodes.flatMap(({ requestIds }) => requestIds);
    await vi.waitFor(() => expect(live()).toEqual([]));
    expect(stored()).toBe(1);
    expect(faults).toEqual([]);
  });
});

describe("a call ahead", () => {
  it("is not begun for a client that has gone, nor once it was given up, nor twice", async () => {
    const gone = new CallAhead<number>(AbortSignal.abort());
    gone.begin(() => expect.fail("begun"));
    expect(gone.answer).toBeNull();
    const late = new CallAhead<number>(new AbortController().signal);
    late.giveUp();
    late.begin(() => expect.fail("begun"));
    expect(late.answer).toBeNull();
    const here = new CallAhead<number>(new AbortController().signal);
    here.begin(async () => 1);
    here.begin(() => expect.fail("begun twice"));
    expect(await here.answer).toBe(1);
  });

  it("ends with its client", async () => {
    const client = new AbortController();
    const call = new CallAhead<AbortSignal>(client.signal);
    call.begin(async (signal) => signal);
    const signal = await call.answer;
    expect(signal?.aborted).toBe(false);
    client.abort();
    expect(signal?.aborted).toBe(true);
  });
});
