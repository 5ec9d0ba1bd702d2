import { generateText, streamText, wrapLanguageModel } from "ai";
import { convertReadableStreamToArray, MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AiSdkOptions, memprefixMiddleware } from "../../../src/integrations/ai-sdk.js";
import { retrieved } from "../../core/blocks/provider-texts.js";
import { type FactsMemprefix, factsMemprefix } from "../own-facts.js";

const USAGE = {
  inputTokens: { total: 30, noCache: 10, cacheRead: 20, cacheWrite: 0 },
  outputTokens: { total: 2, text: 2, reasoning: undefined },
};
const FINISH = { finishReason: { unified: "stop" as const, raw: undefined }, usage: USAGE };
const TEXT = { content: [{ type: "text" as const, text: "Yes." }], warnings: [] };

describe("the AI SDK's middleware", () => {
  let facts: FactsMemprefix;
  let errors: unknown[] = [];
  beforeEach(() => {
    facts = factsMemprefix();
    errors = [];
  });
  afterEach(() => facts.close());

  const middleware = (options: Partial<AiSdkOptions> = {}) =>
    memprefixMiddleware({
      memprefix: facts.memprefix,
      userId: "ana",
      onError: (error) => errors.push(error),
      ...options,
    });
  const answering = (provider = "engine.chat", modelId = "m") =>
    new MockLanguageModelV3({ provider, modelId, doGenerate: { ...TEXT, ...FINISH } });
  const sentWith = async (options: Partial<AiSdkOptions>, call: object = {}, provider?: string, name?: string) => {
    const model = answering(provider, name);
    await generateText({
      model: wrapLanguageModel({ model, middleware: middleware(options) }),
      prompt: "Tea?",
      maxRetries: 0,
      ...call,
    });
    return model.doGenerateCalls[0];
  };

  it("sends the engine's hints along, where its provider takes them; the caller's own stay", async () => {
    const plain = await sentWith({});
    expect(plain?.headers).toMatchObject({ "x-request-id": facts.reports[0]?.requestId, "x-memprefix-bypass": "true" });
    expect(plain?.providerOptions).toBeUndefined();
    const vllm = await sentWith({ compose: { engine: "vllm" } });
    expect(vllm?.providerOptions).toEqual({
      engine: { request_id: facts.reports[1]?.requestId, cache_salt: expect.any(String) },
    });
    const openai = await sentWith({ compose: { engine: "openai" } }, {}, "openai.responses");
    expect(openai?.providerOptions).toEqual({ openai: { promptCacheKey: expect.any(String) } });
    const own = { openai: { promptCacheKey: "mine", store: false }, other: { a: 1 } };
    const call = { headers: { "X-Request-Id": "mine" }, providerOptions: own };
    const kept = await sentWith({ compose: { engine: "openai" } }, call, "openai.chat");
    expect(kept?.providerOptions).toEqual(own);
    expect(kept?.headers).toMatchObject({ "x-request-id": "mine" });
    // vLLM's are none of OpenAI's options.
    expect((await sentWith({ compose: { engine: "vllm" } }, {}, "openai.chat"))?.providerOptions).toBeUndefined();
  });

  it("sets cache marks as options of Anthropic's provider, and the system message stays one text", async () => {
    const system = { role: "system", content: "You plan trips." };
    const call = { system, prompt: "Tea?" };
    const sent = await sentWith(
      { compose: { engine: "anthropic" }, conversationId: "trip" },
      call,
      "anthropic.messages",
    );
    const mark = { anthropic: { cacheControl: { type: "ephemeral" } } };
    expect(sent?.prompt).toMatchObject([
      { role: "system", content: "You plan trips.", providerOptions: mark },
      {
        role: "user",
        content: [
          { type: "text", text: expect.stringMatching(/^<memories>\n- /), providerOptions: mark },
          { type: "text", text: "</memories>" },
          { type: "text", text: "Tea?" },
        ],
      },
    ]);
    expect(JSON.stringify(sent?.prompt)).not.toContain("cache_control");
  });

  it.each<[string, Partial<AiSdkOptions>, string, string]>([
    ["the engine takes no message behind it", { compose: { engine: "mistral" } }, "engine.chat", "m"],
    ["the provider takes no message behind it", {}, "mistral.chat", "m"],
    ["the model's thoughts end with one", {}, "engine.chat", "Qwen/Qwen3-8B"],
  ])("has memories inside a tool's result where %s", async (_what, options, provider, name) => {
    const call = { type: "tool-call", toolCallId: "c", toolName: "t", input: {} };
    const output = { type: "text", value: "12 degrees." };
    const messages = [
      { role: "user", content: "How warm?" },
      { role: "assistant", content: [call] },
      { role: "tool", content: [{ ...call, type: "tool-result", output }] },
    ];
    const sent = await sentWith(options, { messages, prompt: undefined }, provider, name);
    expect(sent?.prompt.at(-1)).toMatchObject({
      role: "tool",
      content: [{ type: "tool-result", output: { value: expect.stringMatching(/^12 degrees\.\n\n<memories>\n- /) } }],
    });
  });

  it.each<[string, Partial<AiSdkOptions>, object, RegExp | null]>([
    ["names nobody", { userId: () => undefined }, {}, null],
    ["is not to be composed", {}, { headers: { "X-Memprefix-Bypass": "true" } }, null],
    ["has an option that is no text", {}, { providerOptions: { memprefix: { userId: 7 } } }, /userId must be a text/],
    ["ends with an answer", {}, { prompt: undefined, messages: [{ role: "assistant", content: "Y" }] }, /messages/],
    [
      "meets a memprefix that gives nonsense",
      { memprefix: { compose: async () => ({ messages: [null] }) as never, feedback: async () => {} } },
      {},
      /./,
    ],
  ])("sends a call unmodified that %s", async (_name, options, call, error) => {
    const model = answering();
    const plain = answering();
    const given = { prompt: "Tea?", maxRetries: 0, ...call } as { prompt: string };
    await generateText({ model: wrapLanguageModel({ model, middleware: middleware(options) }), ...given });
    const { providerOptions, ...others } = given as { prompt: string; providerOptions?: { memprefix?: never } };
    await generateText({
      model: plain,
      ...others,
      ...(providerOptions?.memprefix ? {} : { providerOptions }),
    } as never);
    expect(model.doGenerateCalls[0]).toEqual(plain.doGenerateCalls[0]);
    expect(errors).toHaveLength(error === null ? 0 : 1);
    if (error !== null) expect(String(errors[0])).toMatch(error);
    expect(facts.reports).toEqual([]);
  });

  it("reports a stream's usage and the time to its first token, and gives the stream unmodified", async () => {
    const chunks = [
      { type: "stream-start" as const, warnings: [] },
      { type: "text-start" as const, id: "1" },
      { type: "text-delta" as const, id: "1", delta: "Yes." },
      { type: "text-end" as const, id: "1" },
      { type: "finish" as const, ...FINISH },
    ];
    const model = new MockLanguageModelV3({
      doStream: async () => ({ stream: simulateReadableStream({ chunks, initialDelayInMs: 40, chunkDelayInMs: 0 }) }),
    });
    const wrapped = wrapLanguageModel({ model, middleware: middleware() });
    const result = await wrapped.doStream({ prompt: [{ role: "user", content: [{ type: "text", text: "Tea?" }] }] });
    expect(await convertReadableStreamToArray(result.stream)).toEqual(chunks);
    expect(facts.reports).toMatchObject([{ promptTokens: 30, cachedTokens: 20, ttftMs: expect.any(Number) }]);
    expect(facts.reports[0]?.ttftMs).toBeGreaterThan(30);
  });

  it("reports nothing of calls that fail or are aborted, before, while and after they are composed", async () => {
    const failing = new MockLanguageModelV3({
      doGenerate: () => Promise.reject(new Error("overloaded")),
      doStream: async () => ({
        stream: simulateReadableStream({
          chunks: [
            { type: "error", error: new Error("cut off") },
            { type: "finish", ...FINISH },
          ],
        }),
      }),
    });
    const model = wrapLanguageModel({ model: failing, middleware: middleware() });
    await expect(generateText({ model, prompt: "Tea?", maxRetries: 0 })).rejects.toThrow("overloaded");
    await streamText({ model, prompt: "Tea?", maxRetries: 0, onError: () => {} }).consumeStream();

    const composed: string[] = [];
    const endless = new MockLanguageModelV3({
      doStream: async () => ({ stream: new ReadableStream() }),
      doGenerate: async ({ abortSignal }) => {
        abortSignal?.throwIfAborted();
        return { ...TEXT, ...FINISH };
      },
    });
    const during = new AbortController();
    const options = {
      onComposed: ({ requestId }: { requestId: string }) => {
        composed.push(requestId);
        during.abort();
      },
    };
    const stopped = wrapLanguageModel({ model: endless, middleware: middleware(options) });
    const prompt = "Tea?";
    const before = generateText({ model: stopped, prompt, maxRetries: 0, abortSignal: AbortSignal.abort() });
    await expect(before).rejects.toThrow();
    expect(composed).toEqual([]);
    const meanwhile = generateText({ model: stopped, prompt, maxRetries: 0, abortSignal: during.signal });
    await expect(meanwhile).rejects.toThrow();
    expect(composed).toHaveLength(1);
    const { stream } = await stopped.doStream({
      prompt: [{ role: "user", content: [{ type: "text", text: "Tea?" }] }],
    });
    await stream.cancel();
    expect(facts.reports).toEqual([]);
    expect(errors).toEqual([]);
  });

  it("takes out what Mem0's provider retrieved for the system text, and composes it", async () => {
    const sent = await sentWith({}, { system: retrieved(["Ana has a cat."]) });
    const content = [
      { type: "text", text: "<memories>\n- Ana has a cat.\n</memories>" },
      { type: "text", text: "Tea?" },
    ];
    expect(sent?.prompt).toEqual([{ role: "user", content }]);
  });

  it("composes once where it is wrapped around a model twice", async () => {
    const model = answering();
    const twice = wrapLanguageModel({ model, middleware: [middleware(), middleware()] });
    await generateText({ model: twice, prompt: "Tea?" });
    expect(JSON.stringify(model.doGenerateCalls[0]?.prompt).split("<memories>")).toHaveLength(2);
    expect(facts.reports).toHaveLength(1);
  });

  it("leaves history alone that the provider has by an id", async () => {
    const model = wrapLanguageModel({
      model: answering(),
      middleware: middleware({ conversationId: "c", compose: { history: "extended" } }),
    });
    await generateText({ model, prompt: "Tea?" });
    const inner = answering();
    const next = wrapLanguageModel({
      model: inner,
      middleware: middleware({ conversationId: "c", compose: { history: "extended" } }),
    });
    const messages = [
      { role: "user" as const, content: "Tea?" },
      { role: "assistant" as const, content: "Yes." },
      { role: "user" as const, content: "And cake?" },
    ];
    await generateText({ model: next, messages });
    await generateText({
      model: next,
      messages: messages.slice(1).concat([
        { role: "assistant", content: "No." },
        { role: "user", content: "Why?" },
      ]),
      providerOptions: { openai: { previousResponseId: "resp_1" } },
    });
    expect(inner.doGenerateCalls[1]?.prompt).toHaveLength(4);
  });

  it("gives models of version 2 the form that version 6 of the SDK reads", async () => {
    const usage = { inputTokens: 30, cachedInputTokens: 20, outputTokens: 2, totalTokens: 32 };
    const finish = { finishReason: "stop", usage };
    const chunks = [
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "Yes." },
      { type: "text-end", id: "1" },
      { type: "finish", ...finish },
    ];
    const old = (providerMetadata?: object) => ({
      specificationVersion: "v2",
      provider: "engine.chat",
      modelId: "old",
      supportedUrls: {},
      doGenerate: async () => ({ ...TEXT, ...finish, ...(providerMetadata ? { providerMetadata } : {}) }),
      doStream: async () => ({ stream: simulateReadableStream({ chunks }) }),
    });
    const wrapped = (metadata?: object) =>
      wrapLanguageModel({ model: old(metadata) as never, middleware: middleware() });
    const whole = await generateText({ model: wrapped(), prompt: "Tea?" });
    expect([whole.finishReason, whole.usage.inputTokens, whole.usage.cachedInputTokens]).toEqual(["stop", 30, 20]);
    const streamed = streamText({ model: wrapped(), prompt: "Tea?" });
    expect([await streamed.text, await streamed.finishReason]).toEqual(["Yes.", "stop"]);
    expect((await streamed.usage).inputTokens).toBe(30);
    // Anthropic's of version 2 counted only what was not cached.
    await generateText({ model: wrapped({ anthropic: {} }), prompt: "Tea?" });
    const [first, second, third] = facts.reports;
    expect([first, second]).toMatchObject([
      { promptTokens: 30, cachedTokens: 20 },
      { promptTokens: 30, cachedTokens: 20 },
    ]);
    expect([third?.promptTokens, third?.cachedTokens]).toEqual([undefined, 20]);
  });
});
