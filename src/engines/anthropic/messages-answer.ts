import { append } from "../../core/text/collections.js";
import { type JsonObject, listIn, record, text } from "../../core/text/json.js";
import { sentenceIn } from "../../core/text/sentence.js";
import { readOpenAiUsage } from "../adapters/reported-usage.js";
import { type CarriedReasoning, sealed } from "../turns/reasoning.js";
import {
  NO_TOOLS,
  StreamedTurn,
  type TurnContent,
  type TurnEnd,
  type TurnEvent,
  type TurnItem,
  turnEndOf,
  type WholeItem,
} from "../turns/streamed-turn.js";
import { type ChunkConverter, errorIn } from "../upstream/answer-body.js";
import { inputOf } from "./anthropic-request.js";

/** An answer of `/v1/messages`, an event of one, or an error. */
export type AnthropicAnswer = JsonObject;

/**
 * Converts a chat completion into an answer of `/v1/messages`: reasoning, text, a refusal and calls as blocks, OpenAI's usage fields beside
 * Anthropic's. What the engine gave with its reasoning, and with its calls, is sealed where clients return it unread: as a signature, or as
 * redacted thinking.
 * Source: https://platform.claude.com/docs/en/api/messages (`Message`)
 *
 * @param status the answer's, which names the kind of an error
 * @param ownId the message's id where the engine gives none; no other message has it
 */
export function toAnthropicAnswer(answer: unknown, status: number, ownId: string): AnthropicAnswer {
  const { id, model, choices, usage, timings } = record(answer);
  const error = errorIn(answer);
  if (error !== null) return anthropicError({ ...record(answer), error }, status);
  if (status >= 400) return anthropicError(answer, status);
  const turn = new StreamedTurn(NO_TOOLS, ownId).takeWhole(listIn(choices)[0]);
  return {
    id: text(id) || ownId,
    type: "message",
    role: "assistant",
    model: text(model),
    content: turn.items().map(blockOf),
    stop_reason: stopReason(turn.finish, turn),
    stop_sequence: null,
    usage: anthropicUsage(usage),
    ...(timings == null ? {} : { timings }),
  };
}

function blockOf({ item, text: said, reasoning }: WholeItem): AnthropicAnswer {
  if (reasoning !== null) return thinkingBlock(said, reasoning);
  return item?.kind === "call"
    ? { type: "tool_use", id: item.id, name: item.name, input: inputOf(said) }
    : { type: "text", text: said };
}

/** A block with what is sealed beside a text of reasoning; without a text, of redacted thinking. */
function thinkingBlock(thinking: string, carried: CarriedReasoning): AnthropicAnswer {
  if (thinking === "") return { type: "redacted_thinking", data: sealed(carried) };
  return { type: "thinking", thinking, signature: sealed(carried) };
}

const STOP_REASONS: Readonly<Record<TurnEnd, string>> = {
  answer: "end_turn",
  calls: "tool_use",
  length: "max_tokens",
  refusal: "refusal",
};

/** Anthropic's `stop_reason`. */
function stopReason(finishReason: unknown, content: TurnContent): string {
  return STOP_REASONS[turnEndOf(finishReason, content)];
}

/** Anthropic's counts beside OpenAI's; what the engine does not report is null. */
function anthropicUsage(usage: unknown): AnthropicAnswer {
  const { promptTokens, cachedTokens, writtenTokens, completionTokens } = readOpenAiUsage({ usage });
  const cached = (cachedTokens ?? 0) + (writtenTokens ?? 0);
  return {
    ...record(usage),
    input_tokens: Math.max(0, (promptTokens ?? 0) - cached),
    output_tokens: completionTokens ?? 0,
    cache_read_input_tokens: cachedTokens,
    cache_creation_input_tokens: writtenTokens ?? (cachedTokens === null ? null : 0),
  };
}

const KINDS: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
};

/** An error in Anthropic's form, with the fields of OpenAI's. */
export function anthropicError(answer: unknown, status: number): AnthropicAnswer {
  const { error } = record(answer);
  return {
    type: "error",
    error: {
      ...(Array.isArray(error) ? {} : record(error)),
      type: KINDS[status] ?? (status >= 400 && status < 500 ? "invalid_request_error" : "api_error"),
      message: sentenceIn(error) ?? sentenceIn(answer) ?? "the engine reported an error",
    },
  };
}

/** Converts the chunks of a streamed chat completion into the events of a streamed `/v1/messages` answer, in order. */
export class MessageStream implements ChunkConverter {
  /** As the API itself has it, at any place in a stream. */
  readonly keepAlive = 'event: ping\ndata: {"type":"ping"}\n\n';
  readonly #turn: StreamedTurn;
  #isStarted = false;
  #usage: unknown = null;
  #timings: unknown = null;
  /** Blocks begun. */
  #blocks = 0;

  /**
   * @param tools names of the functions that the request has
   * @param ownId the message's id where the engine gives none
   */
  constructor(
    tools: ReadonlySet<string>,
    private readonly ownId: string,
  ) {
    this.#turn = new StreamedTurn(tools, ownId);
  }

  get isFinished(): boolean {
    return this.#turn.finish !== null;
  }

  take(chunk: unknown): readonly AnthropicAnswer[] {
    const { id, model, choices, usage, timings } = record(chunk);
    const error = errorIn(chunk);
    if (error !== null) return [anthropicError({ error }, 500)];
    if (usage != null) this.#usage = usage;
    if (timings != null) this.#timings = timings;
    const events: AnthropicAnswer[] = this.#isStarted ? [] : this.#start(id, model);
    append(events, this.#turn.take(choices).flatMap(this.#eventsOf));
    return events;
  }

  end(): readonly AnthropicAnswer[] {
    return [
      ...(this.#isStarted ? [] : this.#start("", "")),
      ...this.#turn.end().flatMap(this.#eventsOf),
      {
        type: "message_delta",
        delta: { stop_reason: stopReason(this.#turn.finish, this.#turn), stop_sequence: null },
        usage: this.#usage === null ? { output_tokens: 0 } : anthropicUsage(this.#usage),
        ...(this.#timings === null ? {} : { timings: this.#timings }),
      },
      { type: "message_stop" },
    ];
  }

  #start(id: unknown, model: unknown): AnthropicAnswer[] {
    this.#isStarted = true;
    const message = {
      id: text(id) || this.ownId,
      type: "message",
      role: "assistant",
      model: text(model),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      // Known at the end only.
      usage: { input_tokens: 0, output_tokens: 0 },
    };
    return [{ type: "message_start", message }, { type: "ping" }];
  }

  readonly #eventsOf = (event: TurnEvent): readonly AnthropicAnswer[] => {
    if (event.type === "begun" || event.type === "sealed") this.#blocks++;
    const index = this.#blocks - 1;
    const stop = { type: "content_block_stop", index };
    switch (event.type) {
      case "begun":
        return [{ type: "content_block_start", index, content_block: emptyBlock(event.item) }];
      case "more":
        return [{ type: "content_block_delta", index, delta: blockDelta(event.item, event.text) }];
      case "ended": {
        const { reasoning } = event;
        const delta = reasoning === null ? null : { type: "signature_delta", signature: sealed(reasoning) };
        return [...(delta === null ? [] : [{ type: "content_block_delta", index, delta }]), stop];
      }
      case "sealed":
        return [{ type: "content_block_start", index, content_block: thinkingBlock("", event.reasoning) }, stop];
    }
  };
}

function emptyBlock(item: TurnItem): AnthropicAnswer {
  switch (item.kind) {
    case "reasoning":
      return { type: "thinking", thinking: "", signature: "" };
    case "text":
    case "refusal":
      return { type: "text", text: "" };
    case "call":
      return { type: "tool_use", id: item.id, name: item.name, input: {} };
  }
}

function blockDelta({ kind }: TurnItem, more: string): AnthropicAnswer {
  switch (kind) {
    case "reasoning":
      return { type: "thinking_delta", thinking: more };
    case "text":
    case "refusal":
      return { type: "text_delta", text: more };
    case "call":
      return { type: "input_json_delta", partial_json: more };
  }
}
