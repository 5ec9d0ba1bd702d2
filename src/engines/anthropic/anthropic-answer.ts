import { isRecord, type JsonObject, listIn, parsedJson, record, text } from "../../core/text/json.js";
import { sentenceIn } from "../../core/text/sentence.js";
import { readAnthropicUsage, sumOf } from "../adapters/reported-usage.js";
import { ANTHROPIC_BLOCKS } from "../turns/reasoning.js";
import { type TurnEnd, turnEndOf } from "../turns/streamed-turn.js";
import { argumentsOf, CallIds, idOf, indexOf, wholeArguments } from "../upstream/tool-calls.js";
import { type AnthropicBlock, type KeptPlace, keptBlock } from "./anthropic-request.js";

/**
 * Converts an answer of `/v1/messages` into an OpenAI chat completion. What OpenAI's form lacks is kept: blocks other than text and calls
 * (thinking, its signature, server tools) as the message's `anthropic_blocks`, which return with the next request, and Anthropic's usage
 * fields beside OpenAI's. Errors become OpenAI's.
 * Source: https://platform.claude.com/docs/en/api/messages (`Message`)
 *
 * @param of.created seconds since the epoch
 * @param of.seed as {@link CallIds} takes it: servers that speak the API give calls no ids, or one to several
 * @param of.status the answer's
 */
export function fromAnthropicAnswer(
  answer: unknown,
  { created, seed, status }: { readonly created: number; readonly seed: string; readonly status: number },
): JsonObject {
  const { type, id, model, content, stop_reason, stop_sequence, usage, error } = record(answer);
  // Gateways and other servers of the API have errors in other forms.
  if (status >= 400 || type === "error" || (error != null && content === undefined)) return chatError(answer);
  const blocks = listIn(content).map((block) => record(block) as AnthropicBlock);
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
function chatError(answer: unknown): JsonObject {
  const { error } = record(answer);
  const own = [error, answer].find((value) => isRecord(value) && !Array.isArray(value));
  const { type, param, code, ...more } = record(own);
  return {
    error: {
      ...more,
      message: sentenceIn(error) ?? sentenceIn(answer) ?? "the engine reported an error",
      type: typeof type === "string" ? type : "api_error",
      param: param ?? null,
      code: code ?? null,
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
function chatUsage(usage: unknown): JsonObject {
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

function chatMessage(blocks: readonly AnthropicBlock[], ids: CallIds): JsonObject {
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

/** A block that has not ended. */
interface OpenBlock {
  block: AnthropicBlock;
  /** What stands before it. */
  readonly place: KeptPlace;
  /** Its place among the tool calls, from 0; null where it is none. */
  readonly call: number | null;
  /** Whether any of a call's arguments were sent. */
  isSent: boolean;
}

/**
 * Converts the events of a streamed `/v1/messages` answer into OpenAI's chunks. The last chunk has the usage and no choices, as with OpenAI's
 * `include_usage`; `[DONE]` is left to the transport. Unknown events and deltas are skipped, as the API's versioning policy requires of clients.
 * Source: https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export class AnthropicStream {
  #id = "";
  #model = "";
  /** As reported so far: `message_delta` adds to `message_start` and updates it. */
  #usage: JsonObject = {};
  readonly #ids: CallIds;
  /** Tool calls begun. */
  #calls = 0;
  /** Characters of text so far. */
  #characters = 0;
  /** By their index: some servers send parallel calls in turns. The last is the newest. */
  readonly #open = new Map<number, OpenBlock>();
  #isEnded = false;
  #thoughts = "";
  #firstCall = "";
  readonly #kept: AnthropicBlock[] = [];

  /**
   * @param created seconds since the epoch
   * @param seed as {@link CallIds} takes it
   */
  constructor(
    private readonly created: number,
    seed: string,
  ) {
    this.#ids = new CallIds(seed);
  }

  /** The message so far, as far as its thinking can be remembered by it: its reasoning, its first call's id, its blocks of Anthropic's. */
  get thoughts(): JsonObject {
    const calls = this.#firstCall === "" ? [] : [{ id: this.#firstCall }];
    return { reasoning_content: this.#thoughts, tool_calls: calls, [ANTHROPIC_BLOCKS]: this.#kept };
  }

  /** The chunks that an event, its parsed `data`, stands for. */
  take(event: unknown): readonly JsonObject[] {
    const { type, index, message, content_block, delta, usage, error } = record(event);
    const newest = [...this.#open.keys()].at(-1) ?? -1;
    switch (type) {
      case "message_start": {
        const { id, model, usage: reported } = record(message);
        this.#id = text(id);
        this.#model = text(model);
        this.#usage = record(reported);
        return [this.#chunk({ role: "assistant", content: "" })];
      }
      case "content_block_start":
        return this.#begin(indexOf(index) ?? newest + 1, record(content_block) as AnthropicBlock);
      case "content_block_delta":
        return this.#goOn(this.#open.get(indexOf(index) ?? newest), record(delta));
      case "content_block_stop":
        return this.#end(indexOf(index) ?? newest);
      case "message_delta": {
        const said = Object.entries(record(usage)).filter(([, count]) => count != null);
        this.#usage = { ...this.#usage, ...Object.fromEntries(said) };
        const { stop_reason: why } = record(delta);
        return why == null ? [] : this.#endAll(why);
      }
      case "message_stop": {
        const chunks = this.#isEnded ? [] : this.#endAll("end_turn");
        return [...chunks, { ...this.#envelope(), choices: [], usage: chatUsage(this.#usage) }];
      }
      default:
        return error == null ? [] : [chatError(event)];
    }
  }

  /** Whether the server said why the answer ended. */
  get isFinished(): boolean {
    return this.#isEnded;
  }

  /** Ends the blocks that the server did not, and says why the answer ended. */
  #endAll(stopReason: unknown): readonly JsonObject[] {
    this.#isEnded = true;
    const chunks = [...this.#open.keys()].flatMap((at) => this.#end(at));
    return [...chunks, this.#chunk({}, finishReason(stopReason, this.#calls > 0))];
  }

  #begin(at: number, block: AnthropicBlock): readonly JsonObject[] {
    // A server that numbers all blocks alike.
    const before = this.#end(at);
    const call = isCall(block) ? this.#calls : null;
    const place = { characters: this.#characters, calls: this.#calls };
    this.#open.set(at, { block, place, call, isSent: false });
    // Some servers give a block whole where it begins.
    if (block.type === "thinking") return [...before, ...this.#think(block["thinking"])];
    if (call === null) return [...before, ...this.#say(block.type === "text" ? block["text"] : "")];
    this.#calls++;
    const { name } = block;
    const id = this.#ids.of(idOf(block["id"]));
    this.#firstCall ||= id;
    const called = { index: call, id, type: "function", function: { name, arguments: "" } };
    return [...before, this.#callChunk(called)];
  }

  #goOn(open: OpenBlock | undefined, delta: JsonObject): readonly JsonObject[] {
    if (open === undefined) return [];
    const { call } = open;
    switch (delta["type"]) {
      case "text_delta":
        return this.#say(delta["text"]);
      case "input_json_delta": {
        const json = argumentsOf(delta["partial_json"]);
        if (json === "") return [];
        if (call === null) {
          // A server tool's call is not the caller's: it is passed on as a whole block.
          extend(open, "partial_json", json);
          return [];
        }
        open.isSent = true;
        return [this.#callChunk({ index: call, function: { arguments: json } })];
      }
      case "thinking_delta":
        extend(open, "thinking", delta["thinking"]);
        return this.#think(delta["thinking"]);
      case "signature_delta":
        extend(open, "signature", delta["signature"]);
        return [];
      default:
        return [];
    }
  }

  #end(at: number): readonly JsonObject[] {
    const open = this.#open.get(at);
    if (open === undefined) return [];
    this.#open.delete(at);
    const { block, place, call, isSent } = open;
    // A call without arguments streams none, but clients parse them.
    if (call !== null && !isSent)
      return [this.#callChunk({ index: call, function: { arguments: wholeArguments(argumentsOf(block["input"])) } })];
    if (hasChatForm(block)) return [];
    const kept = keptBlock(withInput(block), place);
    this.#kept.push(kept);
    return [this.#chunk({ [ANTHROPIC_BLOCKS]: [kept] })];
  }

  #think(more: unknown): readonly JsonObject[] {
    this.#thoughts += text(more);
    return this.#textChunks("reasoning_content", more);
  }

  #say(more: unknown): readonly JsonObject[] {
    this.#characters += text(more).length;
    return this.#textChunks("content", more);
  }

  #textChunks(field: string, said: unknown): readonly JsonObject[] {
    return text(said) === "" ? [] : [this.#chunk({ [field]: said })];
  }

  #callChunk(call: JsonObject): JsonObject {
    return this.#chunk({ tool_calls: [call] });
  }

  #chunk(delta: JsonObject, finish: string | null = null): JsonObject {
    return { ...this.#envelope(), choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] };
  }

  #envelope(): JsonObject {
    return { id: this.#id, object: "chat.completion.chunk", created: this.created, model: this.#model };
  }
}

/** Puts more text into a field of an open block. */
function extend(open: OpenBlock, field: string, more: unknown): void {
  if (typeof more === "string") open.block = { ...open.block, [field]: text(open.block[field]) + more };
}

/** A block whose input was streamed as JSON, with the input in its place. */
function withInput({ partial_json: json, ...block }: AnthropicBlock): AnthropicBlock {
  const input = parsedJson(text(json));
  return { ...block, ...(input === undefined ? {} : { input }) } as AnthropicBlock;
}
