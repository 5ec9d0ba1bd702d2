import { z } from "zod";
import { type Asked, type Counted, lastQuestion, partsText, type Said, type Turn } from "./agent-model.js";

const block = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.array(block)]);
const body = z.looseObject({
  model: z.string(),
  system: content.nullish(),
  messages: z.array(z.looseObject({ role: z.string(), content })),
  tools: z.array(z.looseObject({ name: z.string() })).nullish(),
  tool_choice: z.looseObject({ type: z.string(), name: z.string().optional() }).nullish(),
  output_config: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  output_format: z.looseObject({ type: z.string() }).nullish(),
  stream: z.boolean().nullish(),
});

type Block = z.output<typeof block>;

/** Reads a request of Anthropic's Messages API. Throws where it is none. */
export function readMessagesRequest(given: unknown): Asked {
  const request = body.parse(given);
  const { system, messages, tools, tool_choice: choice, stream } = request;
  const told = messages.map(({ role, content: said }) => ({ role, blocks: withoutMarks(said) }));
  const turns = told.flatMap(({ role, blocks }): readonly Turn[] => {
    const results = blocks.filter(({ type }) => type === "tool_result");
    const text = partsText(blocks.filter(({ type }) => type === "text"));
    const ofResults = results.map((): Turn => ({ role: "result", text: "" }));
    return [...ofResults, { role: role === "user" ? "user" : "other", text }];
  });
  const instructions = system == null ? [] : [["system", ...withoutMarks(system)]];
  // A request that goes on behind a message's results may add blocks to that message.
  const shown = told.flatMap(({ role, blocks }) => blocks.map((part) => [role, part]));
  return {
    prompt: [(tools ?? []).map(withoutMark), ...instructions, ...shown].map((part) => JSON.stringify(part)),
    ...lastQuestion(turns),
    tools: (tools ?? []).map(({ name }) => name),
    forced: choice?.type === "tool" ? (choice.name ?? null) : choice?.type === "any" ? "any" : null,
    asJson: request.output_config?.format != null || request.output_format != null,
    stream: stream === true,
  };
}

function withoutMark({ cache_control: _mark, ...part }: Readonly<Record<string, unknown>>): object {
  return part;
}

/** Content as blocks, none marked, and a text that was split to carry a mark as one again. */
function withoutMarks(given: z.output<typeof content>): readonly Block[] {
  const blocks = typeof given === "string" ? [{ type: "text", text: given }] : given;
  const joined: Block[] = [];
  for (const { cache_control: _mark, ...part } of blocks as readonly Block[]) {
    const last = joined.at(-1);
    if (last?.type === "text" && part.type === "text")
      joined[joined.length - 1] = { ...last, text: `${String(last["text"])}${String(part["text"])}` };
    else joined.push(part as Block);
  }
  return joined;
}

/** Anthropic's usage: what is read from the cache, and what is written to it, stand beside the rest. */
function usageOf({ prompt, cached }: Counted) {
  return {
    input_tokens: 1,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: prompt - cached - 1,
    output_tokens: 2,
  };
}

function messageOf(turn: number, contents: readonly Block[], stop_reason: string | null, usage: object) {
  const fields = { id: `msg_${turn}`, type: "message", role: "assistant", model: "claude-opus-4-8" };
  return { ...fields, content: contents, stop_reason, stop_sequence: null, usage };
}

function blockOf(said: Said): Block {
  if (said.kind === "text") return { type: "text", text: said.text };
  return { type: "tool_use", id: said.id, name: said.name, input: JSON.parse(said.json) as unknown };
}

function stopOf({ kind }: Said): string {
  return kind === "text" ? "end_turn" : "tool_use";
}

export function messageAnswer(said: Said, turn: number, counted: Counted): object {
  return messageOf(turn, [blockOf(said)], stopOf(said), usageOf(counted));
}

/** The events of a streamed message, with a ping. */
export function messageStream(said: Said, turn: number, counted: Counted): readonly object[] {
  const empty = said.kind === "text" ? { type: "text", text: "" } : { ...blockOf(said), input: {} };
  const deltas =
    said.kind === "text"
      ? (said.text.match(/\s*\S+/g) ?? []).map((text) => ({ type: "text_delta", text }))
      : ["", said.json.slice(0, 3), said.json.slice(3)].map((json) => ({
          type: "input_json_delta",
          partial_json: json,
        }));
  return [
    { type: "message_start", message: messageOf(turn, [], null, { ...usageOf(counted), output_tokens: 1 }) },
    { type: "content_block_start", index: 0, content_block: empty },
    { type: "ping" },
    ...deltas.map((delta) => ({ type: "content_block_delta", index: 0, delta })),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: stopOf(said), stop_sequence: null }, usage: usageOf(counted) },
    { type: "message_stop" },
  ];
}
