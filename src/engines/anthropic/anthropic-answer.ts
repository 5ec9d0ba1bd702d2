import { append } from "../../core/text/lists.js";
import { readAnthropicUsage, sumOf } from "../adapters/reported-usage.js";
import { ANTHROPIC_BLOCKS } from "../turns/reasoning.js";
import { type TurnEnd, turnEndOf } from "../turns/streamed-turn.js";
import { record, text } from "../upstream/json-values.js";
import { argumentsOf, CallIds, idOf, indexOf, wholeArguments } from "../upstream/tool-calls.js";
import { type AnthropicBlock, type KeptPlace, keptBlock } from "./anthropic-request.js";

/** An OpenAI chat completion, or a chunk of one. */
export type OpenAiChatAnswer = Readonly<Record<string, unknown>>;

/**
 * Converts an answer of `/v1/messages` into an OpenAI chat completion. What OpenAI's form lacks is kept: blocks other than text and calls
 * (thinking, its signature, server tools) as the message's `anthropic_blocks`, which return with the next request, and Anthropic's usage
 * fields beside OpenAI's. Errors become OpenAI's. `created`: seconds since the epoch.
 * Source: https://platform.claude.com/docs/en/api/messages (`Message`)
 *
 * @param seed as {@link CallIds} takes it: servers that speak the API give calls no ids, or one to several
 */
export function fromAnthropicAnswer(answer: unknown, created: number, seed: string): OpenAiChatAnswer {
  const { type, id, model, content, stop_reason, stop_sequence, usage, error } = record(answer);
  if (type === "error") return chatError(error);
  const blocks = Array.isArray(content)
    ? (content as readonly unknown[]).map((block) => record(block) as AnthropicBlock)
    : [];
  return {
    id: text(id),
    object: "chat.completion",
    created,
    model: text(model),
    choices: [
      {
        index: 0,
        message: chatMessage(blocks, new CallIds(seed)),
        logprobs: null,
        finish_reason: finishReason(stop_reason, blocks.some(isCall)),
        ...(typeof stop_sequence === "string" ? { stop_sequence } : {}),
      },
    ],
    usage: chatUsage(usage),
  };
}

/** An error in OpenAI's form. */
function chatError(error: unknown): OpenAiChatAnswer {
  const { type, message } = record(error);
  return {
    error: {
      message: typeof message === "string" ? message : "the engine reported an error",
      type: typeof type === "string" ? type : "api_error",
      param: null,
      code: null,
    },
  };
}

const FINISH_REASONS: Readonly<Record<TurnEnd, string>> = {
  answer: "stop",
  calls: "tool_calls",
  length: "length",
  refusal: "content_filter",
};

/** OpenAI's `finish_reason`; null: not ended. */
function finishReason(stopReason: unknown, hasCalls: boolean): string | null {
  if (typeof stopReason !== "string" && !hasCalls) return null;
  return FINISH_REASONS[turnEndOf(stopReason, { hasCalls })];
}

/** Whether a block is a call of the client's; a provider's own tools have other types. */
function isCall({ type }: AnthropicBlock): boolean {
  return type === "tool_use";
}

/** OpenAI's counts, where known, beside all of Anthropic's fields. */
function chatUsage(usage: unknown): OpenAiChatAnswer {
  const { promptTokens, cachedTokens, writtenTokens, completionTokens } = readAnthropicUsage({ usage });
  const total = sumOf(promptTokens, completionTokens);
  const details = {
    ...(cachedTokens === null ? {} : { cached_tokens: cachedTokens }),
    ...(writtenTokens === null ? {} : { cache_write_tokens: writtenTokens }),
  };
  return {
    ...record(usage),
    ...(promptTokens === null ? {} : { prompt_tokens: promptTokens }),
    ...(completionTokens === null ? {} : { completion_tokens: completionTokens }),
    ...(total === null ? {} : { total_tokens: total }),
    ...(Object.keys(details).length === 0 ? {} : { prompt_tokens_details: details }),
  };
}

/** Whether a block has a place in OpenAI's messages. */
function hasChatForm(block: AnthropicBlock): boolean {
  return block.type === "text" || isCall(block);
}

function chatMessage(blocks: readonly AnthropicBlock[], ids: CallIds): OpenAiChatAnswer {
  const texts = blocks.filter(({ type }) => type === "text").map((block) => text(block["text"]));
  const calls = blocks.filter(isCall);
  const thoughts = blocks.filter(({ type }) => type === "thinking").map(({ thinking }) => text(thinking));
  const others: AnthropicBlock[] = [];
  const place = { characters: 0, calls: 0 };
  for (const block of blocks) {
    if (!hasChatForm(block)) others.push(keptBlock(block, place));
    else if (isCall(block)) place.calls++;
    else place.characters += text(block["text"]).length;
  }
  return {
    role: "assistant",
    content: texts.length === 0 ? null : texts.join(""),
    refusal: null,
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join("") }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, name, input }) => ({
            id: ids.of(idOf(id)),
            type: "function",
            function: { name, arguments: wholeArguments(argumentsOf(input)) },
          })),
        }),
    ...(others.length === 0 ? {} : { [ANTHROPIC_BLOCKS]: others }),
  };
}

/** The state of a streamed answer; immutable. */
export interface AnthropicStream {
  readonly id: string;
  readonly model: string;
  /** Seconds since the epoch. */
  readonly created: number;
  /** Usage reported so far: `message_delta` adds to `message_start` and updates it. */
  readonly usage: Readonly<Record<string, unknown>>;
  /** See {@link CallIds}. */
  readonly seed: string;
  /** The ids of the tool calls begun. */
  readonly calls: readonly string[];
  /** Characters of text so far. */
  readonly characters: number;
  /** The blocks that are open, by their index: some servers send parallel calls in turns. The last is the newest. */
  readonly open: ReadonlyMap<number, OpenBlock>;
  /** Whether the end was said. */
  readonly isEnded: boolean;
}

interface OpenBlock {
  readonly at: number;
  readonly block: AnthropicBlock;
  /** What stands before it. */
  readonly place: KeptPlace;
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

/**
 * The state before the first event. `created`: seconds since the epoch.
 *
 * @param seed as {@link CallIds} takes it
 */
export function newAnthropicStream(created: number, seed: string): AnthropicStream {
  return { id: "", model: "", created, seed, usage: {}, calls: [], characters: 0, open: new Map(), isEnded: false };
}

/**
 * Converts one event of a streamed `/v1/messages` answer (its parsed `data`) into OpenAI's chunks. The last chunk has the usage and no
 * choices, as with OpenAI's `include_usage`; `[DONE]` is left to the transport. Unknown events and deltas are skipped, as the API's
 * versioning policy requires of clients.
 * Source: https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export function anthropicStreamStep(stream: AnthropicStream, event: unknown): StreamStep {
  const { type, index, message, content_block, delta, usage, error } = record(event);
  const newest = [...stream.open.keys()].at(-1) ?? -1;
  switch (type) {
    case "message_start": {
      const { id, model, usage: reported } = record(message);
      const started = { ...stream, id: text(id), model: text(model), usage: record(reported) };
      return { stream: started, chunks: [chunk(started, { role: "assistant", content: "" })] };
    }
    case "content_block_start":
      return blockStarted(stream, indexOf(index) ?? newest + 1, record(content_block) as AnthropicBlock);
    case "content_block_delta":
      return blockWentOn(stream, stream.open.get(indexOf(index) ?? newest), record(delta));
    case "content_block_stop":
      return blockEnded(stream, stream.open.get(indexOf(index) ?? newest));
    case "message_delta": {
      const said = Object.entries(record(usage)).filter(([, count]) => count != null);
      const counted = { ...stream, usage: { ...stream.usage, ...Object.fromEntries(said) } };
      const { stop_reason: why } = record(delta);
      return why == null ? { stream: counted, chunks: [] } : streamEnded(counted, why);
    }
    case "message_stop": {
      const { stream: ended, chunks } = stream.isEnded ? { stream, chunks: [] } : streamEnded(stream, "end_turn");
      return { stream: ended, chunks: [...chunks, { ...envelope(ended), choices: [], usage: chatUsage(ended.usage) }] };
    }
    case "error":
      return { stream, chunks: [chatError(error)] };
    default:
      return { stream, chunks: [] };
  }
}

/** Ends the blocks that the server did not, and says why the answer ended. */
function streamEnded(stream: AnthropicStream, stopReason: unknown): StreamStep {
  let ended: AnthropicStream = { ...stream, isEnded: true };
  const chunks: OpenAiChatAnswer[] = [];
  for (const open of stream.open.values()) {
    const step = blockEnded(ended, open);
    ended = step.stream;
    append(chunks, step.chunks);
  }
  return { stream: ended, chunks: [...chunks, chunk(ended, {}, finishReason(stopReason, ended.calls.length > 0))] };
}

function blockStarted(stream: AnthropicStream, at: number, block: AnthropicBlock): StreamStep {
  // A server that numbers all blocks alike.
  const before = blockEnded(stream, stream.open.get(at));
  const { seed, calls, characters } = before.stream;
  const call = isCall(block) ? calls.length : null;
  const { id: given, name } = block;
  const id = CallIds.after(seed, calls).of(idOf(given));
  const begun = {
    ...withOpen(before.stream, {
      at,
      block,
      place: { characters, calls: calls.length },
      call,
      started: false,
    }),
    calls: call === null ? calls : [...calls, id],
  };
  const { stream: started, chunks } =
    call === null
      ? said(begun, block.type === "text" ? block["text"] : "")
      : {
          stream: begun,
          chunks: [callChunk(begun, { index: call, id, type: "function", function: { name, arguments: "" } })],
        };
  return { stream: started, chunks: [...before.chunks, ...chunks] };
}

function blockWentOn(
  stream: AnthropicStream,
  open: OpenBlock | undefined,
  delta: Readonly<Record<string, unknown>>,
): StreamStep {
  if (open === undefined) return { stream, chunks: [] };
  const { call } = open;
  switch (delta["type"]) {
    case "text_delta":
      return said(stream, delta["text"]);
    case "input_json_delta": {
      const json = delta["partial_json"];
      if (typeof json !== "string" || json === "") return { stream, chunks: [] };
      // A server tool's call is not the caller's: it is passed on as a whole block.
      if (call === null) return { stream: extended(stream, open, "partial_json", json), chunks: [] };
      const going = open.started ? stream : withOpen(stream, { ...open, started: true });
      return { stream: going, chunks: [callChunk(going, { index: call, function: { arguments: json } })] };
    }
    case "thinking_delta":
      return {
        stream: extended(stream, open, "thinking", delta["thinking"]),
        chunks: textChunks(stream, "reasoning_content", delta["thinking"]),
      };
    case "signature_delta":
      return { stream: extended(stream, open, "signature", delta["signature"]), chunks: [] };
    default:
      return { stream, chunks: [] };
  }
}

function blockEnded(stream: AnthropicStream, open: OpenBlock | undefined): StreamStep {
  if (open === undefined) return { stream, chunks: [] };
  const { at, block, place, call, started } = open;
  const ended = { ...stream, open: new Map([...stream.open].filter(([other]) => other !== at)) };
  // A call without arguments streams none, but clients parse them.
  if (call !== null && !started)
    return {
      stream: ended,
      chunks: [callChunk(ended, { index: call, function: { arguments: wholeArguments(argumentsOf(block["input"])) } })],
    };
  if (hasChatForm(block)) return { stream: ended, chunks: [] };
  return { stream: ended, chunks: [chunk(ended, { [ANTHROPIC_BLOCKS]: [keptBlock(withInput(block), place)] })] };
}

function said(stream: AnthropicStream, more: unknown): StreamStep {
  const characters = stream.characters + text(more).length;
  return { stream: { ...stream, characters }, chunks: textChunks(stream, "content", more) };
}

/** The stream with more text in a field of an open block. */
function extended(stream: AnthropicStream, open: OpenBlock, field: string, more: unknown): AnthropicStream {
  if (typeof more !== "string") return stream;
  return withOpen(stream, { ...open, block: { ...open.block, [field]: text(open.block[field]) + more } });
}

function withOpen(stream: AnthropicStream, open: OpenBlock): AnthropicStream {
  return { ...stream, open: new Map(stream.open).set(open.at, open) };
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
