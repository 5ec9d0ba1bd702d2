import { describe, expect, it } from "vitest";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { AnthropicStream, fromAnthropicAnswer } from "../../../src/engines/anthropic/anthropic-answer.js";
import { toAnthropicMessages } from "../../../src/engines/anthropic/anthropic-request.js";
import { streamFixture, usageFixture } from "../upstream/fixture.js";

const OF = { created: 5, seed: "seed", status: 200 };

const thinking = { type: "thinking", thinking: "Hm.", signature: "sig" };
const called = { type: "tool_use", id: "toolu_1", name: "weather", input: { at: "Paris" } };

/** All chunks of a streamed answer. */
function chunksOf(name: string) {
  const stream = new AnthropicStream(OF.created, OF.seed);
  return streamFixture(name).events.flatMap((event) => stream.take(event));
}
const deltasOf = (chunks: readonly Readonly<Record<string, unknown>>[]) =>
  chunks.flatMap(({ choices }) => (choices as { delta: unknown; finish_reason: string | null }[]) ?? []);

describe("an answer of /v1/messages", () => {
  it("is a chat completion, its usage readable in both ways", () => {
    const { answer, usage } = usageFixture("anthropic-message");
    const completion = fromAnthropicAnswer(answer, OF);
    expect(completion).toMatchObject({
      id: "msg_01",
      object: "chat.completion",
      created: 5,
      model: "claude-opus-4-8",
      choices: [{ index: 0, message: { role: "assistant", content: "Green tea." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 2209, completion_tokens: 12, total_tokens: 2221, service_tier: "standard" },
    });
    for (const engine of ["anthropic", "openai"] as const)
      expect(ENGINES[engine].readUsage(completion)).toMatchObject(usage);
  });

  it("does not turn what is not known into zeros", () => {
    const { usage } = fromAnthropicAnswer(usageFixture("anthropic-uncached").answer, OF);
    expect(usage).not.toHaveProperty("prompt_tokens");
    expect(usage).not.toHaveProperty("prompt_tokens_details");
    expect(usage).toMatchObject({ completion_tokens: 12 });
  });

  it("has its calls as tool calls, and its thinking goes back as it came", () => {
    const content = [thinking, { type: "text", text: "I look." }, called];
    const answer = { type: "message", id: "m", model: "c", content, stop_reason: "tool_use", usage: {} };
    const { choices } = fromAnthropicAnswer(answer, OF);
    const [{ message, finish_reason: why } = { message: null, finish_reason: null }] = choices as readonly {
      message: { role: string };
      finish_reason: string;
    }[];
    expect(why).toBe("tool_calls");
    expect(message).toMatchObject({
      content: "I look.",
      reasoning_content: "Hm.",
      tool_calls: [{ id: "toolu_1", type: "function", function: { name: "weather", arguments: '{"at":"Paris"}' } }],
    });
    const back = toAnthropicMessages({
      messages: [{ role: "user", content: "Weather?" }, message ?? { role: "user" }],
    });
    expect(back.messages[1]?.content).toEqual(content);
  });

  it.each([
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["refusal", "content_filter"],
    ["pause_turn", "stop"],
    ["something_new", "stop"],
    [null, null],
  ])("ends for %s as OpenAI says it: %s", (stop_reason, finish_reason) => {
    expect(fromAnthropicAnswer({ type: "message", stop_reason }, OF)).toMatchObject({
      choices: [{ finish_reason }],
    });
  });

  it("is an error of OpenAI's form where it is one", () => {
    const error = { type: "overloaded_error", message: "Overloaded" };
    expect(fromAnthropicAnswer({ type: "error", error }, OF)).toEqual({
      error: { message: "Overloaded", type: "overloaded_error", param: null, code: null },
    });
  });
});

describe("a streamed answer of /v1/messages", () => {
  it("is chunks: text, a call in pieces, why it ended, and last the usage of the whole", () => {
    const chunks = chunksOf("anthropic-stream");
    for (const chunk of chunks)
      expect(chunk).toMatchObject({ id: "msg_014p7gG3wDgGV9EUtLvnow3U", object: "chat.completion.chunk", created: 5 });
    const call = (part: object) => ({ tool_calls: [{ index: 0, ...part }] });
    const id = "toolu_01T1x1fJ34qAmk2tNTrN7Up6";
    expect(deltasOf(chunks).map(({ delta, finish_reason }) => [delta, finish_reason])).toEqual([
      [{ role: "assistant", content: "" }, null],
      [{ content: "Okay" }, null],
      [{ content: ", let" }, null],
      [call({ id, type: "function", function: { name: "get_weather", arguments: "" } }), null],
      [call({ function: { arguments: '{"location":' } }), null],
      [call({ function: { arguments: ' "San Francisco, CA"}' } }), null],
      [{}, "tool_calls"],
    ]);
    const last = chunks.at(-1);
    expect(last?.["choices"]).toEqual([]);
    expect(ENGINES.anthropic.readUsage(last)).toMatchObject({
      promptTokens: 2572,
      cachedTokens: 2000,
      writtenTokens: 100,
      completionTokens: 89,
    });
  });

  it("hands on thinking as it comes, and whole when it is done", () => {
    const deltas = deltasOf(chunksOf("anthropic-stream-thinking")).map(({ delta }) => delta);
    expect(deltas).toEqual([
      { role: "assistant", content: "" },
      { reasoning_content: "I need to find the GCD" },
      { reasoning_content: " of 1071 and 462" },
      {
        anthropic_blocks: [
          {
            type: "thinking",
            thinking: "I need to find the GCD of 1071 and 462",
            signature: "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds",
          },
        ],
      },
      { content: "The greatest common divisor is 21." },
      {},
    ]);
  });

  it("gives a call without arguments some that can be parsed", () => {
    const stream = new AnthropicStream(OF.created, OF.seed);
    stream.take({ type: "content_block_start", content_block: { type: "tool_use", id: "t", name: "now", input: {} } });
    const chunks = stream.take({ type: "content_block_stop", index: 0 });
    expect(deltasOf(chunks)[0]?.delta).toEqual({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] });
  });

  it("says an error, and skips what it does not know", () => {
    const stream = new AnthropicStream(OF.created, OF.seed);
    const error = { type: "overloaded_error", message: "Overloaded" };
    expect(stream.take({ type: "error", error })).toMatchObject([{ error }]);
    for (const event of [
      { type: "news" },
      null,
      "text",
      { type: "content_block_delta", delta: { type: "text_delta" } },
    ])
      expect(stream.take(event)).toEqual([]);
  });
});
