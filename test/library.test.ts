import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ClosedError,
  createMemprefix,
  InvalidRequestError,
  type MemprefixClient,
  NotFoundError,
} from "../src/index.js";
import { calls, result, user } from "./messages.js";
import { temporaryFolder } from "./temporary-folders.js";

const TEA = [{ id: "m1", memory: "Ana likes green tea." }];

describe("the library", () => {
  const dataDir = temporaryFolder();
  let memprefix: MemprefixClient;
  beforeAll(() => {
    memprefix = createMemprefix({ dataDir, source: { kind: "none" } });
  });
  afterAll(() => memprefix.close());

  const fieldsOf = (attempt: Promise<unknown>) =>
    attempt.then(
      () => [],
      (error: unknown) =>
        error instanceof InvalidRequestError ? error.issues.map(({ field }) => field) : [String(error)],
    );

  it("composes from Mem0's answer as it is, and gives the caller's messages back with text added", async () => {
    const messages = [{ role: "user" as const, content: "Tea?", name: "ana" }];
    const answer = await memprefix.compose({ userId: "ana", messages, memories: { results: TEA, relations: [] } });
    expect(answer.messages).toEqual([{ ...messages[0], content: expect.stringMatching(/^<memories>\n- Ana likes/) }]);
  });

  it("keeps agents apart, and takes feedback on an agent's request", async () => {
    const of = { userId: "bo", agentId: "coach" };
    const { requestId } = await memprefix.compose({ ...of, query: "Tea?", memories: TEA });
    expect(await memprefix.feedback({ ...of, requestId, cachedTokens: 0 })).toMatchObject({ observedCachedTokens: 0 });
    await expect(memprefix.feedback({ userId: "bo", requestId, cachedTokens: 0 })).rejects.toThrow(NotFoundError);
  });

  it("names each field that is wrong, in its own words", async () => {
    const wrong = { userId: "", topK: 0, memories: 7, user_id: "x" } as never;
    expect(await fieldsOf(memprefix.compose(wrong))).toEqual(["userId", "memories", "topK", "user_id"]);
    expect(await fieldsOf(memprefix.compose({ userId: "ana" }))).toEqual(["query"]);
    expect(await fieldsOf(memprefix.compose({ userId: "ana", query: "x", requestId: "line\nbreak" }))).toEqual([
      "requestId",
    ]);
    expect(await fieldsOf(memprefix.feedback({ userId: "ana", requestId: "r", cachedTokens: -1 }))).toEqual([
      "cachedTokens",
    ]);
    expect(await fieldsOf(memprefix.add({ userId: "ana", memories: [] }))).toEqual(["memories"]);
    expect(await fieldsOf(memprefix.evict({ requestIds: [1] } as never))).toEqual(["requestIds[0]"]);
  });

  it("searches and adds in a Mem0 of the caller's own, with Mem0's arguments, and says how it failed without its words", async () => {
    const asked: unknown[] = [];
    let isDown = false;
    class Own {
      #memories = TEA;
      async search(query: string, options: { filters: { user_id: string }; topK: number }) {
        asked.push([query, options]);
        if (isDown) throw new TypeError("m0-secret: Ana likes green tea.");
        return { results: this.#memories };
      }
      add(messages: { content: string }[], options: { userId: string; infer: false }) {
        asked.push([messages, options]);
        return { results: [{ id: "m2", memory: messages[0]?.content, event: "ADD" }] };
      }
    }
    const own = createMemprefix({ dataDir: join(dataDir, "own"), source: new Own() });
    const prompt = await own.compose({ userId: "ana", query: "Tea?", topK: 7 });
    expect(prompt.messages.at(-1)?.content).toBe("<memories>\n- Ana likes green tea.\n</memories>\n\nTea?");
    const memories = ["Ana rows."];
    expect(await own.add({ userId: "ana", agentId: "coach", memories })).toEqual([{ id: "m2", memory: "Ana rows." }]);
    expect(asked).toEqual([
      ["Tea?", { filters: { user_id: "ana" }, topK: 7, latestOnly: true }],
      [[{ role: "user", content: "Ana rows." }], { userId: "ana", agentId: "coach", infer: false }],
    ]);
    isDown = true;
    const { warnings } = await own.compose({ userId: "bo", query: "Tea?" });
    expect(warnings).toMatchObject([{ code: "memory_source_failed" }]);
    expect(JSON.stringify(warnings)).toContain("its call failed with TypeError");
    expect(JSON.stringify(warnings)).not.toContain("m0-secret");
    await own.close();

    const searching = createMemprefix({ dataDir: join(dataDir, "only"), source: { search: () => TEA } });
    await expect(searching.add({ userId: "ana", memories })).rejects.toThrow('memory source "own" cannot add memories');
    await searching.close();
  });

  it("names wrong set-up options as they were given", () => {
    const fieldOf = (options: Parameters<typeof createMemprefix>[0]) => {
      try {
        createMemprefix(options);
      } catch (error) {
        return error instanceof InvalidRequestError ? error.issues[0]?.field : String(error);
      }
      return "nothing was wrong";
    };
    expect(fieldOf({ dataDir, searchTimeoutMs: -1 })).toBe("searchTimeoutMs");
    expect(fieldOf({ dataDir, cacheTtlSeconds: 0 })).toBe("cacheTtlSeconds");
    expect(fieldOf({ dataDir, cacheTokens: 0.5 })).toBe("cacheTokens");
    expect(fieldOf({ dataDir, source: { kind: "rest", url: "not an address" } })).toBe("source.url");
    expect(fieldOf({ dataDir, source: { kind: "hosted" } as never })).toBe("source.apiKey");
    expect(fieldOf({ datadir: dataDir } as never)).toBe("datadir");
    for (const source of ["none", null, 1]) expect(fieldOf({ dataDir, source: source as never })).toBe("source");
    const misspelt = { kind: "rest", url: "http://127.0.0.1:1", apikey: "k" };
    expect(fieldOf({ dataDir, source: misspelt as never })).toBe("source.apikey");
  });

  it("answers a client that sends nothing but memprefix's own section back", async () => {
    const of = { userId: "cy", conversationId: "tools" };
    const messages = [user("Tea?"), calls("f", ""), result("green")];
    const first = await memprefix.compose({ ...of, messages, memories: TEA });
    const section = first.messages.at(-1);
    expect(section).toEqual({ role: "user", content: "<memories>\n- Ana likes green tea.\n</memories>" });
    const echoed = await memprefix.compose({ ...of, messages: first.messages.slice(-1), memories: [] });
    expect(echoed.messages).toEqual([section]);
  });

  it("says that it has no memories to add to or search where it has no source", async () => {
    await expect(memprefix.add({ userId: "ana", memories: ["x"] })).rejects.toThrow("cannot add memories");
    const codesOf = async (memories?: []) =>
      (await memprefix.compose({ userId: "di", query: "Tea?", memories })).warnings.map(({ code }) => code);
    expect(await codesOf()).toEqual(["no_memory_source"]);
    expect(await codesOf([])).toEqual([]);
  });

  describe("after close", () => {
    const TEA_FOR = { userId: "di", query: "Tea?", memories: TEA };

    it("rejects every call, wrong ones too, with an error that says so", async () => {
      const closed = createMemprefix({ dataDir, source: { kind: "none" } });
      const { requestId } = await closed.compose(TEA_FOR);
      const under = closed.compose(TEA_FOR);
      const closing = closed.close();
      const calls: Record<Exclude<keyof MemprefixClient, "close">, () => Promise<unknown>> = {
        compose: () => closed.compose(TEA_FOR),
        add: () => closed.add({ userId: "di", memories: ["x"] }),
        memories: () => closed.memories({ userId: "di" }),
        evict: () => closed.evict({ requestIds: [requestId] }),
        feedback: () => closed.feedback({ userId: "di", requestId, cachedTokens: 0 }),
        forgetMemory: () => closed.forgetMemory({ userId: "di", memoryId: "m1" }),
        forgetUser: () => closed.forgetUser({ userId: "di" }),
      };
      const refused = async () => {
        for (const call of [...Object.values(calls), () => closed.compose({} as never)])
          await expect(call()).rejects.toThrow(new ClosedError());
      };
      await refused();
      expect((await under).blocks).toHaveLength(1);
      await closing;
      await refused();
      // Nobody was forgotten by a call that was refused.
      expect((await memprefix.feedback({ userId: "di", requestId, cachedTokens: 0 })).requestId).toBe(requestId);
    });

    it("closes once, however often it is asked to", async () => {
      const closed = createMemprefix({ dataDir, source: { kind: "none" } });
      const first = closed.close();
      await Promise.all([first, closed.close()]);
      await closed.close();
      await expect(closed.compose(TEA_FOR)).rejects.toThrow(ClosedError);
    });
  });
});
