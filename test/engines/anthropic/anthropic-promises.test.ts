import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/index.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { AnthropicStream, fromAnthropicAnswer } from "../../../src/engines/anthropic/anthropic-answer.js";
import { toAnthropicMessages } from "../../../src/engines/anthropic/anthropic-request.js";
import { anyPrompt, marksIn } from "../adapters/prompts.js";

const OF = { created: 5, seed: "seed", status: 200 };

/** Names that answers and events have, with anything behind them. */
const anyAnswer = fc.letrec((tie) => ({
  answer: fc.dictionary(
    fc.constantFrom("type", "id", "content", "text", "usage", "delta", "message", "content_block", "error", "toString"),
    fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
      ),
      fc.constantFrom("message_stop", "error", "text", "tool_use", "thinking", "input_json_delta", "text_delta"),
      tie("answer"),
      fc.array(tie("answer"), { maxLength: 3 }),
      fc.jsonValue(),
    ),
  ),
})).answer;

/** A message's texts, one of each part. */
function textsOf({ content }: ChatMessage): readonly string[] {
  if (typeof content === "string") return [content];
  return (content ?? []).flatMap(({ text }) => (typeof text === "string" ? [text] : []));
}

describe("converting for /v1/messages", () => {
  it("keeps every text in its order, speakers in turns, and no more marks than there were", () => {
    fc.assert(
      fc.property(anyPrompt, (prompt) => {
        const { messages } = ENGINES.anthropic.emit(prompt);
        const { system = [], messages: converted } = toAnthropicMessages({ messages });
        const blocks = [...system, ...converted.flatMap(({ content }) => content)];
        const inside = blocks.flatMap((block) =>
          block.type === "tool_result" ? (block["content"] as typeof blocks) : [block],
        );
        const texts = inside.filter(({ type }) => type === "text").map(({ text }) => String(text));
        expect(texts).toEqual(messages.flatMap(textsOf).filter((text) => text.trim() !== ""));
        for (const [at, { role }] of converted.entries()) expect(role).not.toBe(converted[at - 1]?.role);
        const marks = [...blocks, ...inside].filter(
          (block, at, all) => block["cache_control"] != null && all.indexOf(block) === at,
        );
        expect(marks.length).toBeLessThanOrEqual(marksIn(messages, "cache_control").length);
      }),
    );
  });

  it("never throws for what an API may answer, whatever comes in a stream", () => {
    fc.assert(
      fc.property(fc.oneof(anyAnswer, fc.jsonValue()), (answer) => {
        const completion = fromAnthropicAnswer(answer, OF);
        expect(JSON.parse(JSON.stringify(completion))).toEqual(completion);
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(anyAnswer, fc.jsonValue()), { maxLength: 8 }), (events) => {
        const stream = new AnthropicStream(OF.created, OF.seed);
        for (const event of events) stream.take(event);
      }),
    );
  });
});
