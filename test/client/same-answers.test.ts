import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { createMemprefixClient, MemprefixError, type RemoteMemprefix } from "../../src/client/index.js";
import { createMemprefix, type MemprefixClient } from "../../src/index.js";
import type { Composing } from "../../src/integrations/composing.js";
import { type OwnMem0, openOwnMem0 } from "../../src/memory/own-mem0.js";
import type { ComposeOptions } from "../../src/service/fields/call-options.js";
import { servedApp } from "../http/server/served-app.js";

/** A caller's own memories, the same for both. */
function ownMemories(): OwnMem0 {
  let added = 0;
  return {
    search: (query) => ({
      results: ["in Paris", `asked for ${query}`].map((memory, at) => ({
        id: `m-${at}`,
        memory,
        created_at: "2026-05-01",
      })),
    }),
    add: ([message]) => ({ results: [{ id: `a-${++added}`, memory: message?.content, event: "ADD" }] }),
  };
}

describe("the client of a service and the library", () => {
  const app = servedApp({ source: () => openOwnMem0(ownMemories()) });
  let dataDir = "";
  let library: MemprefixClient;
  let client: RemoteMemprefix;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "memprefix-client-"));
    library = createMemprefix({ dataDir, source: ownMemories() });
    client = createMemprefixClient({ url: `${app.base}/` });
  });
  afterEach(async () => {
    await library.close();
    rmSync(dataDir, { recursive: true });
  });

  type Both = Omit<MemprefixClient, "close">;

  /** What both answer to the same; or how both fail: the service names the same fields in its own names, for the same reasons. */
  async function both<T>(ask: (memprefix: Both) => Promise<T>) {
    const [inProcess, remote] = await Promise.all(
      [library, client].map((memprefix: Both) =>
        ask(memprefix).then(
          (answer) => ({ answer }),
          (error: unknown) => ({ error }),
        ),
      ),
    );
    if (inProcess === undefined || remote === undefined) throw new Error("no answers");
    if ("answer" in inProcess) expect(remote).toEqual(inProcess);
    else {
      const failed = "error" in remote ? remote.error : null;
      expect(failed).toBeInstanceOf(MemprefixError);
      const { issues, message } = inProcess.error as { issues?: readonly { message: string }[]; message: string };
      const { problem } = failed as MemprefixError;
      if (issues === undefined) expect(problem?.detail).toBe(message);
      else expect(problem?.errors?.map((issue) => issue.message)).toEqual(issues.map((issue) => issue.message));
    }
    return inProcess;
  }

  it("have the same types, so that either can be given", () => {
    expectTypeOf<RemoteMemprefix>().toExtend<Omit<MemprefixClient, "close">>();
    expectTypeOf<RemoteMemprefix>().toExtend<Composing>();
    expectTypeOf<MemprefixClient>().toExtend<Composing>();
  });

  it("answer the same to a conversation, from its first prompt to forgetting its user", async () => {
    const history: { role: string; content: string; name?: string }[] = [{ role: "system", content: "Be brief." }];
    const asked = { userId: "ana", conversationId: "c", annotations: "paper" } as const;
    for (const [turn, question] of ["Where?", "Why?", "When?"].entries()) {
      history.push({ role: "user", content: question, name: "ana" });
      const requestId = `r-${turn}`;
      const told = await both((memprefix) => memprefix.compose({ ...asked, requestId, messages: [...history] }));
      expect(told).toMatchObject({ answer: { requestId, plan: { layout: "conversation" } } });
      history.push({ role: "assistant", content: "So." });
      await both((memprefix) =>
        memprefix.feedback({ userId: "ana", requestId, promptTokens: 90 + turn, cachedTokens: 3, ttftMs: 1.5 }),
      );
    }
    await both((memprefix) => memprefix.evict({ requestIds: ["r-1", "r-9"] }));
    await both((memprefix) =>
      memprefix.add({ userId: "ana", agentId: "guide", memories: ["a", "b"], metadata: { some_key: 1 } }),
    );
    await both((memprefix) => memprefix.forgetMemory({ userId: "ana", memoryId: "m-0" }));
    await both((memprefix) => memprefix.forgetUser({ userId: "ana" }));
    await both((memprefix) => memprefix.compose({ userId: "ana", requestId: "after", query: "Where?" }));
  });

  it("answer the same to every option, nulls included", async () => {
    const memories = {
      results: [{ id: "m-7", memory: "in Rome", metadata: { some_key: "x" }, created_at: "2026-05-01" }],
    };
    const requests: readonly Partial<ComposeOptions>[] = [
      { topK: 1, system: "Be brief." },
      { memories, dates: true },
      { memories: null, agentId: null, conversationId: null, topK: null },
      { memories, engine: "vllm", workers: ["a", "b"], dryRun: false },
      { memories, dates: false, dedupe: "exact" },
      { memories, policy: "carry-over", memoryBudgetTokens: 50 },
      { memories, memoryBudgetRatio: 1.5, retention: "auto" },
      { annotations: false },
      { maxPromptTokens: 30, model: "qwen3" },
      { requestId: "q-0" },
    ];
    for (const [at, options] of requests.entries()) {
      const request = { userId: "ben", query: "Where?", requestId: `q-${at}`, ...options };
      expect(await both((memprefix) => memprefix.compose(request))).toHaveProperty("answer");
    }
  });

  it("answer the same to messages of other APIs, in their form", async () => {
    const system = [{ type: "text" as const, text: "Be brief.", cache_control: { type: "ephemeral" } }];
    const blocks = [{ type: "text", text: "Where?" }];
    const messages = [{ role: "user", content: blocks }];
    const anthropic = { userId: "dee", requestId: "f-1", format: "messages", system, messages } as const;
    expect(await both((memprefix) => memprefix.compose(anthropic))).toHaveProperty("answer.system");
    const items = [
      { role: "user", content: "Where?" },
      { type: "function_call", call_id: "c-1", name: "find_place", arguments: '{"some_key":1}' },
      { type: "function_call_output", call_id: "c-1", output: "in Paris" },
    ];
    expect(
      await both((memprefix) => memprefix.compose({ userId: "dee", requestId: "f-2", messages: items })),
    ).toHaveProperty("answer.messages.2.call_id");
  });

  it("answer the same to windows of a history, with their epochs", async () => {
    const said = (at: number) => ({ role: at % 2 === 0 ? "user" : "assistant", content: `Sentence ${at} of this.` });
    let last: unknown;
    const window = { userId: "cy", conversationId: "w", history: "extended" } as const;
    for (let turn = 0; turn < 6; turn++) {
      const messages = Array.from({ length: 2 * turn + 1 }, (_, at) => said(at)).slice(-3);
      const request = { ...window, requestId: `w-${turn}`, messages };
      last = await both((memprefix) => memprefix.compose(request));
    }
    expect(last).toHaveProperty("answer.plan.epoch.leftOut");
  });

  it.each<[string, unknown]>([
    ["no user", { query: "Where?" }],
    ["no question", { userId: "ana" }],
    ["an unknown option", { userId: "ana", query: "x", topKk: 1 }],
    ["another annotation", { userId: "ana", query: "x", annotations: "all" }],
    ["a message without a role", { userId: "ana", messages: [{ content: "x" }] }],
    ["memories that are no list", { userId: "ana", query: "x", memories: { items: [] } }],
    ["a stored history without a conversation", { userId: "ana", query: "x", history: "stored" }],
    ["half of a surrogate pair", { userId: "\ud800", query: "x" }],
    ["a user without a name", { userId: " ", query: "x" }],
  ])("reject %s with the same error", async (_what, request) => {
    const told = await both((memprefix) => memprefix.compose(request as ComposeOptions));
    expect(told).toMatchObject({ error: { name: "InvalidRequestError", issues: [expect.anything()] } });
  });

  it("fail the same where something is not there, or cannot be done", async () => {
    expect(await both((memprefix) => memprefix.feedback({ userId: "ana", requestId: "none" }))).toMatchObject({
      error: { name: "NotFoundError" },
    });
    await both((memprefix) => memprefix.feedback({ userId: "ana" } as never));
    await both((memprefix) => memprefix.add({ userId: "ana", memories: [] }));
    await both((memprefix) => memprefix.evict({ requestIds: "r" } as never));
    await both((memprefix) => memprefix.forgetUser({} as never));
    await expect(client.forgetUser({ userId: "\ud800" })).rejects.toBeInstanceOf(MemprefixError);
    await both((memprefix) => memprefix.forgetMemory({ userId: "ana", memoryId: "" }));
  });
});
