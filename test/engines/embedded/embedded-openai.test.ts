import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { entropyBounds } from "../../../src/core/index.js";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../../src/engines/embedded/embedded-engine.js";
import { openAiUpstream } from "../../../src/engines/embedded/embedded-openai.js";
import {
  type ChatModel,
  EmbeddedEngineError,
  type GenerationEvent,
  type GenerationRequest,
  QueueFullError,
} from "../../../src/engines/embedded/generation.js";
import { llamaMissing, tinyModel } from "../random-model/tiny-model.js";

const missing = await llamaMissing();
const ADDRESS = "http://engine/v1/chat/completions";
const HELLO = [{ role: "user", content: "Hello?" }];
const USAGE = { promptTokens: 9, cachedTokens: 4, completionTokens: 2, queueMs: 1, ttftMs: 11, totalMs: 31 };
const ANSWER: readonly GenerationEvent[] = [
  { kind: "text", text: "Good " },
  { kind: "text", text: "day" },
  { kind: "end", finishReason: "stop", usage: USAGE },
];

const post = (body: unknown, signal?: AbortSignal) =>
  new Request(ADDRESS, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });

const answerShape = z.object({
  usage: z.looseObject({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    prompt_tokens_details: z.object({ cached_tokens: z.int() }),
  }),
});
const usageOf = async (response: Response) => answerShape.parse(await response.json()).usage;

const likely = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() });
const choice = z.object({
  message: z.object({ content: z.string() }).optional(),
  logprobs: z.object({ content: z.array(likely.extend({ top_logprobs: z.array(likely) })) }).nullable(),
});
const answered = z.object({ choices: z.tuple([choice]) });

/** The chunks of a streamed answer; the last one is a text. */
async function chunksOf(response: Response) {
  const events = (await response.text()).split("\n\n").filter((event) => event !== "");
  return events.map((event): Record<string, unknown> | string => {
    const data = event.replace(/^data: /, "");
    return data.startsWith("{") ? (JSON.parse(data) as Record<string, unknown>) : data;
  });
}

/** An engine that says what it is told to, or fails before its n-th event. */
function scripted(
  script: readonly GenerationEvent[] = ANSWER,
  failure?: { readonly at: number; readonly error: Error },
) {
  const asked: GenerationRequest[] = [];
  let ended = 0;
  const engine: ChatModel = {
    model: "scripted.gguf",
    contextTokens: 100,
    async *generate(request) {
      asked.push(request);
      try {
        for (const [n, event] of script.entries()) {
          if (failure?.at === n) throw failure.error;
          request.signal?.throwIfAborted();
          yield event;
        }
      } finally {
        ended++;
      }
    },
  };
  return { engine, asked, ended: () => ended };
}

describe("an engine behind OpenAI's API", () => {
  it("answers a chat, with what was cached", async () => {
    const { engine, asked } = scripted();
    const body = {
      model: "any",
      messages: HELLO,
      max_tokens: 5,
      temperature: 0,
      stop: "x",
      cache_salt: "s",
      user: "u",
    };
    const response = await openAiUpstream(engine)(post(body));
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      object: "chat.completion",
      model: "scripted.gguf",
      choices: [{ index: 0, message: { role: "assistant", content: "Good day" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11, prompt_tokens_details: { cached_tokens: 4 } },
      timings: { cache_n: 4, prompt_n: 5, prompt_ms: 10, predicted_n: 2, predicted_ms: 20, queue_ms: 1, ttft_ms: 11 },
    });
    expect(asked[0]).toMatchObject({ maxTokens: 5, temperature: 0, stop: ["x"], cacheSalt: "s", caller: "u" });
  });

  it.each([true, false])("streams, with the usage in a last chunk where it is asked for: %s", async (includeUsage) => {
    const { engine } = scripted();
    const body = { messages: HELLO, stream: true, stream_options: { include_usage: includeUsage } };
    const response = await openAiUpstream(engine)(post(body));
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const chunks = await chunksOf(response);
    const choice = (delta: unknown, finish_reason: unknown = null) => ({
      object: "chat.completion.chunk",
      choices: [expect.objectContaining({ delta, finish_reason })],
    });
    expect(chunks).toMatchObject([
      choice({ role: "assistant", content: "" }),
      choice({ content: "Good " }),
      choice({ content: "day" }),
      choice({}, "stop"),
      ...(includeUsage ? [{ choices: [], usage: { prompt_tokens_details: { cached_tokens: 4 } } }] : []),
      "[DONE]",
    ]);
  });

  it("lists its model", async () => {
    const response = await openAiUpstream(scripted().engine)(new Request("http://engine/v1/models"));
    expect(await response.json()).toMatchObject({
      object: "list",
      data: [{ id: "scripted.gguf", max_model_len: 100 }],
    });
  });

  it.each([
    ["not JSON", "{", null],
    ["no messages", { messages: [] }, "messages"],
    ["an image", { messages: [{ role: "user", content: [{ type: "image_url" }] }] }, "messages.0.content"],
    ["tools", { messages: HELLO, tools: [{ type: "function" }] }, "tools"],
    ["log probabilities of a distribution that is not the model's", { logprobs: true, temperature: 0.5 }, "logprobs"],
    ["log probabilities of a part of it", { logprobs: true, top_p: 0.9 }, "logprobs"],
    ["a number of log probabilities without them", { top_logprobs: 5 }, "top_logprobs"],
    ["too many log probabilities", { logprobs: true, top_logprobs: 21 }, "top_logprobs"],
    ["JSON", { messages: HELLO, response_format: { type: "json_object" } }, "response_format.type"],
    ["two choices", { messages: HELLO, n: 2 }, "n"],
    ["no tokens", { messages: HELLO, max_tokens: 0 }, "max_tokens"],
  ])("refuses %s by name", async (_, body, param) => {
    const { engine, asked } = scripted();
    const whole = typeof body === "string" ? body : { messages: HELLO, ...body };
    const response = await openAiUpstream(engine)(post(whole));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error", param } });
    expect(asked).toEqual([]);
  });

  it.each([
    ["GET", "/v1/chat/completions", 405],
    ["POST", "/v1/models", 405],
    ["GET", "/v1/embeddings", 404],
  ])("answers %s %s with %d", async (method, path, status) => {
    const response = await openAiUpstream(scripted().engine)(new Request(`http://engine${path}`, { method }));
    expect(response.status).toBe(status);
    expect(await response.json()).toHaveProperty("error.message");
  });

  it.each([
    [new QueueFullError(7, "all"), 429, "queue_full"],
    [new EmbeddedEngineError("engine_closed", "closing"), 503, "engine_closed"],
    [new Error("a secret"), 500, null],
  ])("gives %s its status, streamed or not", async (error, status, code) => {
    const faults: unknown[] = [];
    for (const stream of [false, true]) {
      const { engine } = scripted(ANSWER, { at: 0, error });
      const response = await openAiUpstream(engine, (fault) => faults.push(fault))(post({ messages: HELLO, stream }));
      expect(response.status).toBe(status);
      const body = await response.text();
      expect(JSON.parse(body)).toMatchObject({ error: { code } });
      expect(body).not.toContain("secret");
    }
    expect(faults).toEqual(status === 500 ? [error, error] : []);
  });

  it("says in the stream what went wrong after its beginning, without an end", async () => {
    const { engine } = scripted(ANSWER, { at: 1, error: new Error("a secret") });
    const chunks = await chunksOf(await openAiUpstream(engine)(post({ messages: HELLO, stream: true })));
    expect(chunks.at(-1)).toMatchObject({ error: { message: "The engine failed." } });
  });

  it("ends the generation when nobody reads its stream any longer", async () => {
    const { engine, asked, ended } = scripted(Array.from({ length: 1_000 }, () => ({ kind: "text", text: "more " })));
    const response = await openAiUpstream(engine)(post({ messages: HELLO, stream: true }));
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(ended()).toBe(1);
    expect(asked[0]?.signal?.aborted).toBe(true);
  });
});

describe.skipIf(missing !== null)(
  `llama.cpp behind OpenAI's API${missing === null ? "" : ` (skipped: ${missing})`}`,
  () => {
    const file = tinyModel();
    let engine: EmbeddedEngine;
    beforeAll(async () => {
      engine = await openEmbeddedEngine({ modelPath: file.path, slots: 1, contextTokens: 512, threads: 1 });
    });
    afterAll(() => engine.close());
    const facts = "Ada plays the cello, lives in Ghent, and is allergic to nuts. ".repeat(6);

    it("streams a second turn that goes on from the first, and says how much was cached", async () => {
      const fetchEngine = openAiUpstream(engine);
      const messages = [{ role: "user", content: facts }];
      const settings = { temperature: 0, max_tokens: 3, cache_salt: "ada" };
      const first = await usageOf(await fetchEngine(post({ messages, ...settings })));
      expect(first).toMatchObject({ completion_tokens: 3, prompt_tokens_details: { cached_tokens: 0 } });
      const answer = { role: "assistant", content: "Yes." };
      const next = [...messages, answer, { role: "user", content: "Really?" }];
      const body = { messages: next, ...settings, stream: true, stream_options: { include_usage: true } };
      const chunks = await chunksOf(await fetchEngine(post(body)));
      const { usage } = answerShape.parse(chunks.at(-2));
      expect(usage.prompt_tokens_details.cached_tokens).toBe(first.prompt_tokens);
      expect(usage.prompt_tokens).toBeGreaterThan(first.prompt_tokens);
    });

    it("answers a prompt that is too long as OpenAI does", async () => {
      const response = await openAiUpstream(engine)(post({ messages: [{ role: "user", content: facts.repeat(20) }] }));
      expect(response.status).toBe(400);
      const error: unknown = await response.json();
      expect(error).toMatchObject({
        error: { type: "invalid_request_error", code: "context_length_exceeded", param: "messages" },
      });
      expect(error).toHaveProperty("error.message", expect.stringMatching(/has \d+ tokens, .* holds 512/));
    });

    it("tells the log probabilities of its tokens, whole and streamed, and answers the same", async () => {
      const fetchEngine = openAiUpstream(engine);
      const body = { messages: HELLO, max_tokens: 4, temperature: 0 };
      const plain = answered.parse(await (await fetchEngine(post(body))).json()).choices[0];
      expect(plain.logprobs).toBeNull();
      const told = { ...body, logprobs: true, top_logprobs: 20 };
      const { message, logprobs } = answered.parse(await (await fetchEngine(post(told))).json()).choices[0];
      expect(message).toEqual(plain.message);
      const tokens = logprobs?.content ?? [];
      expect(tokens).toHaveLength(4);
      expect(tokens.map(({ token }) => token).join("")).toBe(message?.content);
      for (const { token, logprob, top_logprobs: top } of tokens) {
        expect(top).toHaveLength(20);
        // The likeliest is taken at temperature 0.
        expect(top[0]).toMatchObject({ token, logprob });
        expect(top.map((likely) => likely.logprob).toSorted((a, b) => b - a)).toEqual(top.map((t) => t.logprob));
        // Random weights prefer next to nothing: nearly as uncertain as a token of 1,027 can be.
        const { least, most } = entropyBounds(
          top.map((likely) => likely.logprob),
          1_027,
        ) ?? { least: 0, most: 0 };
        expect(least).toBeGreaterThan(6);
        expect(most).toBeLessThanOrEqual(Math.log(1_027));
      }
      const chunks = await chunksOf(await fetchEngine(post({ ...told, stream: true })));
      const streamed = chunks.flatMap((chunk) => answered.safeParse(chunk).data?.choices[0].logprobs?.content ?? []);
      expect(streamed).toEqual(tokens);
    });

    it("tells them for what it draws, too", async () => {
      const body = { messages: HELLO, max_tokens: 3, temperature: 1, seed: 7, logprobs: true };
      const { message, logprobs } = answered.parse(await (await openAiUpstream(engine)(post(body))).json()).choices[0];
      expect(logprobs?.content.map(({ token }) => token).join("")).toBe(message?.content);
      for (const { logprob, top_logprobs } of logprobs?.content ?? []) {
        expect(logprob).toBeLessThan(0);
        expect(top_logprobs).toEqual([]);
      }
    });

    it("gives its slot back when a stream is left", async () => {
      const fetchEngine = openAiUpstream(engine);
      const leaving = new AbortController();
      const response = await fetchEngine(post({ messages: HELLO, stream: true, max_tokens: 400 }, leaving.signal));
      const reading = response.text();
      leaving.abort();
      await expect(reading).rejects.toThrow();
      expect((await fetchEngine(post({ messages: HELLO, max_tokens: 1 }))).status).toBe(200);
    });
  },
);
