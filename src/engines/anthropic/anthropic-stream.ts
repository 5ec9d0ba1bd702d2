import { ANTHROPIC_BLOCKS } from "../reasoning/carried-reasoning.js";
import { record, text } from "../upstream/json-values.js";
import { chatError, chatUsage, finishReason, hasChatForm, type OpenAiChatAnswer } from "./anthropic-answer.js";
import { type AnthropicBlock, keptBlock } from "./anthropic-content.js";

/** The state of a streamed answer; immutable. */
export interface AnthropicStream {
  readonly id: string;
  readonly model: string;
  /** Seconds since the epoch. */
  readonly created: number;
  /** Usage reported so far: `message_delta` adds to `message_start` and updates it. */
  readonly usage: Readonly<Record<string, unknown>>;
  /** Tool calls begun. */
  readonly calls: number;
  /** Characters of text so far. */
  readonly characters: number;
  /** The block that is open; null for none. */
  readonly open: OpenBlock | null;
}

interface OpenBlock {
  readonly block: AnthropicBlock;
  /** Its place among the tool calls, from 0; null where it is none. */
  readonly call: number | null;
  /** Whether any of a call's arguments were sent. */
  readonly started: boolean;
}

/** The result of one event. */
export interface StreamStep {
  readonly stream: AnthropicStream;
  /** OpenAI's chunks to send on, in order. */
  readonly chunks: readonly OpenAiChatAnswer[];
}

/** The state before the first event. `created`: seconds since the epoch. */
export function newAnthropicStream(created: number): AnthropicStream {
  return { id: "", model: "", created, usage: {}, calls: 0, characters: 0, open: null };
}

/**
 * Converts one event of a streamed `/v1/messages` answer (its parsed `data`) into OpenAI's chunks. The last chunk has the usage and no
 * choices, as with OpenAI's `include_usage`; `[DONE]` is left to the transport. Unknown events and deltas are skipped, as the API's
 * versioning policy asks of clients.
 * Source: https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export function anthropicStreamStep(stream: AnthropicStream, event: unknown): StreamStep {
  const { type, message, content_block, delta, usage, error } = record(event);
  switch (type) {
    case "message_start": {
      const { id, model, usage: reported } = record(message);
      const started = { ...stream, id: text(id), model: text(model), usage: record(reported) };
      return { stream: started, chunks: [chunk(started, { role: "assistant", content: "" })] };
    }
    case "content_block_start":
      return blockStarted(stream, record(content_block) as AnthropicBlock);
    case "content_block_delta":
      return blockWentOn(stream, record(delta));
    case "content_block_stop":
      return blockEnded(stream);
    case "message_delta": {
      const said = Object.entries(record(usage)).filter(([, count]) => count != null);
      const ended = { ...stream, usage: { ...stream.usage, ...Object.fromEntries(said) } };
      return { stream: ended, chunks: [chunk(ended, {}, finishReason(record(delta)["stop_reason"]))] };
    }
    case "message_stop":
      return { stream, chunks: [{ ...envelope(stream), choices: [], usage: chatUsage(stream.usage) }] };
    case "error":
      return { stream, chunks: [chatError(error)] };
    default:
      return { stream, chunks: [] };
  }
}

function blockStarted(stream: AnthropicStream, block: AnthropicBlock): StreamStep {
  if (block.type !== "tool_use") {
    const begun = { ...stream, open: { block, call: null, started: false } };
    return block.type === "text" ? said(begun, block["text"]) : { stream: begun, chunks: [] };
  }
  const call = stream.calls;
  const begun = { ...stream, calls: call + 1, open: { block, call, started: false } };
  const { id, name } = block;
  return {
    stream: begun,
    chunks: [callChunk(begun, { index: call, id, type: "function", function: { name, arguments: "" } })],
  };
}

function blockWentOn(stream: AnthropicStream, delta: Readonly<Record<string, unknown>>): StreamStep {
  const { open } = stream;
  if (open === null) return { stream, chunks: [] };
  const { block, call } = open;
  switch (delta["type"]) {
    case "text_delta":
      return said(stream, delta["text"]);
    case "input_json_delta": {
      const json = delta["partial_json"];
      if (typeof json !== "string" || json === "") return { stream, chunks: [] };
      // A server tool's call is not the caller's: it is passed on as a whole block.
      if (call === null) return { stream: extended(stream, block, "partial_json", json), chunks: [] };
      const going = { ...stream, open: { ...open, started: true } };
      return { stream: going, chunks: [callChunk(going, { index: call, function: { arguments: json } })] };
    }
    case "thinking_delta":
      return {
        stream: extended(stream, block, "thinking", delta["thinking"]),
        chunks: textChunks(stream, "reasoning_content", delta["thinking"]),
      };
    case "signature_delta":
      return { stream: extended(stream, block, "signature", delta["signature"]), chunks: [] };
    default:
      return { stream, chunks: [] };
  }
}

function blockEnded(stream: AnthropicStream): StreamStep {
  const { open } = stream;
  const ended = { ...stream, open: null };
  if (open === null) return { stream: ended, chunks: [] };
  const { block, call, started } = open;
  // A call without arguments streams none, but clients parse them.
  if (call !== null && !started)
    return {
      stream: ended,
      chunks: [callChunk(ended, { index: call, function: { arguments: JSON.stringify(block["input"] ?? {}) } })],
    };
  if (hasChatForm(block)) return { stream: ended, chunks: [] };
  return { stream: ended, chunks: [chunk(ended, { [ANTHROPIC_BLOCKS]: [keptBlock(withInput(block), ended)] })] };
}

function said(stream: AnthropicStream, more: unknown): StreamStep {
  const characters = stream.characters + text(more).length;
  return { stream: { ...stream, characters }, chunks: textChunks(stream, "content", more) };
}

/** The stream with more text in a field of its open block. */
function extended(stream: AnthropicStream, block: AnthropicBlock, field: string, more: unknown): AnthropicStream {
  if (stream.open === null || typeof more !== "string") return stream;
  return { ...stream, open: { ...stream.open, block: { ...block, [field]: text(block[field]) + more } } };
}

/** A block whose input was streamed as JSON, with the input in its place. */
function withInput({ partial_json: json, ...block }: AnthropicBlock): AnthropicBlock {
  if (typeof json !== "string") return block as AnthropicBlock;
  try {
    return { ...block, input: JSON.parse(json) as unknown } as AnthropicBlock;
  } catch {
    return block as AnthropicBlock;
  }
}

function textChunks(stream: AnthropicStream, field: string, said: unknown): readonly OpenAiChatAnswer[] {
  return typeof said === "string" && said !== "" ? [chunk(stream, { [field]: said })] : [];
}

function callChunk(stream: AnthropicStream, call: OpenAiChatAnswer): OpenAiChatAnswer {
  return chunk(stream, { tool_calls: [call] });
}

function chunk(stream: AnthropicStream, delta: OpenAiChatAnswer, finish: string | null = null): OpenAiChatAnswer {
  return { ...envelope(stream), choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] };
}

function envelope({ id, created, model }: AnthropicStream): OpenAiChatAnswer {
  return { id, object: "chat.completion.chunk", created, model };
}
