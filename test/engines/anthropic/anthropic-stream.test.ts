import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { listIn, record, text } from "../../../src/core/text/json.js";
import { AnthropicStream } from "../../../src/engines/anthropic/anthropic-answer.js";

const anyBlocks = fc.array(
  fc.record({
    isCall: fc.boolean(),
    pieces: fc.array(fc.constantFrom('{"t":', '"}', "é", "{}"), { maxLength: 4 }),
    isEnded: fc.boolean(),
  }),
  { maxLength: 5 },
);

/** The events of blocks, each in its own order, with those of other blocks between them. */
function eventsOf(
  blocks: readonly { isCall: boolean; pieces: readonly string[]; isEnded: boolean }[],
  turns: readonly number[],
) {
  const left = blocks.map(({ isCall, pieces, isEnded }, index) => [
    {
      type: "content_block_start",
      index,
      content_block: isCall
        ? { type: "tool_use", id: `id_${index}`, name: "one", input: {} }
        : { type: "text", text: "" },
    },
    ...pieces.map((piece) => ({
      type: "content_block_delta",
      index,
      delta: isCall ? { type: "input_json_delta", partial_json: piece } : { type: "text_delta", text: piece },
    })),
    ...(isEnded ? [{ type: "content_block_stop", index }] : []),
  ]);
  const events: object[] = [];
  for (let at = 0; ; at++) {
    // A block begins behind the beginning of the one before it.
    const open = left.filter(
      (events, index) => events.length > 0 && (index === 0 || left[index - 1]?.[0]?.type !== "content_block_start"),
    );
    if (open.length === 0) break;
    const next = open[(turns[at % turns.length] ?? 0) % open.length]?.shift();
    if (next !== undefined) events.push(next);
  }
  return [...events, { type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" }];
}

describe("the blocks of a streamed message", () => {
  it("are the text and the calls of a chat completion, in whatever turns they come", () => {
    fc.assert(
      fc.property(anyBlocks, fc.array(fc.nat({ max: 9 }), { minLength: 1 }), (blocks, turns) => {
        const stream = new AnthropicStream(5, "seed");
        const calls = new Map<unknown, { id: unknown; json: string }>();
        let end: unknown = null;
        for (const event of eventsOf(blocks, turns)) {
          for (const { delta, finish_reason } of stream
            .take(event)
            .flatMap(({ choices }) => listIn(choices).map(record))) {
            end = finish_reason ?? end;
            for (const { index, id, function: called } of listIn(record(delta)["tool_calls"]).map(record)) {
              const call = calls.get(index) ?? { id, json: "" };
              calls.set(index, { id: call.id, json: call.json + text(record(called)["arguments"]) });
            }
          }
        }
        const meant = blocks.flatMap(({ isCall, pieces }, at) =>
          isCall ? [{ id: `id_${at}`, json: pieces.join("") || "{}" }] : [],
        );
        expect([...calls.keys()]).toEqual(meant.map((_, at) => at));
        expect([...calls.values()]).toEqual(meant);
        expect(end).toBe(meant.length > 0 ? "tool_calls" : "stop");
      }),
    );
  });
});
