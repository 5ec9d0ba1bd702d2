import { expect, it, vi } from "vitest";
import { APIS } from "../../../src/apis/apis.js";
import { residencyModel } from "../../../src/core/index.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { openUpstream } from "../../../src/engines/upstream/upstream.js";
import { composeBatch } from "../../../src/service/batch/batch.js";
import { Chat } from "../../../src/service/chat/chat.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import { openAiEngine } from "../../http/routes/openai-engine.js";
import { ana, found, openService, searchingSource } from "../compose/service-fixture.js";

const engine = openAiEngine();

it("expires what a user's index holds in that user's queue alone: chats, warm-ups, batches and reports", async () => {
  const model = residencyModel({ kind: "ttl", ttlMs: 1 });
  const running: number[] = [];
  const service = openService({
    source: searchingSource(async () => {
      await vi.waitFor(() => expect(engine.requests.length).toBeGreaterThan(0));
      return found({ tea: "Ana drinks green tea." });
    }),
    residency: {
      ...model,
      expire(index, now) {
        running.push(service.load.jobs);
        model.expire(index, now);
      },
    },
  });
  const { readUsage } = ENGINES.generic;
  const chat = new Chat({
    upstream: openUpstream({ url: engine.url, timeoutMs: 10_000 }),
    readUsage,
    writeBack: false,
    warmUp: true,
    onFault: (error) => expect.fail(String(error)),
    clock: () => performance.now(),
  });
  const messages = [
    { role: "system", content: "Be kind, and say what you know. ".repeat(60) },
    { role: "user", content: "Which tea?" },
  ];
  const compose = readComposeOptions({ userId: ana, messages });
  const sent = { body: { model: "stub-1", messages }, written: JSON.stringify, query: "", headers: [] };
  const request = { userId: ana, agentId: null, compose, api: APIS.chat, writeBack: null, ...sent };
  const { composed } = await chat.complete(service.chats, request, new AbortController().signal);
  expect(engine.requests).toHaveLength(2);
  await service.feedback(ana, null, composed?.requestId as never, { promptTokens: 400, cachedTokens: 0 });
  const inputs = [0, 1].map((index) => ({ index, request: compose }));
  for await (const event of composeBatch(service.batches, inputs, { signal: new AbortController().signal }))
    expect(event.kind).not.toBe("failure");
  expect(running.length).toBeGreaterThan(5);
  expect(running.every((jobs) => jobs > 0)).toBe(true);
  await service.close();
});
