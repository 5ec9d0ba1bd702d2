import { describe, expect, it, vi } from "vitest";
import { APIS } from "../../../src/apis/apis.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { openUpstream, type Upstream, UpstreamError } from "../../../src/engines/upstream/upstream.js";
import { Chat, type ChatRequest } from "../../../src/service/chat/chat.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import { openAiEngine } from "../../http/routes/openai-engine.js";
import { storedCounts } from "../../stored-counts.js";
import { ana, memories, openService } from "../compose/service-fixture.js";

describe("the prompt of a chat", () => {
  const engine = openAiEngine();

  /** Sends to the engine's socket, and calls back each time before something is sent. */
  function chatting(onSend: () => Promise<void> = async () => {}): Chat {
    const { name, send } = openUpstream({ url: engine.url, timeoutMs: 10_000 });
    const upstream: Upstream = {
      name,
      async send(call, signal) {
        await onSend();
        return send(call, signal);
      },
    };
    const { readUsage } = ENGINES.generic;
    const onFault = (error: unknown) => expect.fail(String(error));
    return new Chat({ upstream, readUsage, writeBack: false, onFault, clock: () => performance.now() });
  }
  const messages = [{ role: "user", content: "Which tea?" }];
  const request: ChatRequest = {
    userId: ana,
    agentId: null,
    compose: readComposeOptions({ userId: ana, messages, memories: memories({ tea: "Ana drinks green tea" }) }),
    api: APIS.chat,
    body: { model: "stub-1", messages },
    written: (sent) => JSON.stringify(sent),
    query: "",
    headers: [],
    writeBack: null,
  };
  const never = new AbortController().signal;

  it("is stored before it is sent", async () => {
    const service = openService();
    const stored: unknown[] = [];
    const chat = chatting(async () => void stored.push(storedCounts(await service.exportUser(ana)).requests));
    const { composed } = await chat.complete(service.chats, request, never);
    expect(stored).toEqual([1]);
    expect(composed?.messages.at(-1)?.content).toContain("green tea");
    expect(engine.requests[0]?.body.messages).toEqual(composed?.messages);
    await service.close();
  });

  it("stays stored where its engine is not there, and is not expected in its cache", async () => {
    const service = openService();
    const chat = chatting();
    await engine.close();
    await expect(chat.complete(service.chats, request, never)).rejects.toBeInstanceOf(UpstreamError);
    await vi.waitFor(async () =>
      expect(storedCounts(await service.exportUser(ana))).toMatchObject({ requests: 1, live: [] }),
    );
    await service.close();
  });
});
