import { readOpenAiUsage } from "../adapters/reported-usage.js";
import { record, text } from "../upstream/json-values.js";
import { reasoningIn } from "../upstream/streamed-turn.js";
import { callsIn } from "../upstream/tool-calls.js";
import { type TurnContent, type TurnEnd, turnEndOf } from "../upstream/turn-end.js";
import { inputOf } from "./anthropic-content.js";

/** An answer of `/v1/messages`, an event of one, or an error. */
export type AnthropicAnswer = Readonly<Record<string, unknown>>;

/**
 * Converts a chat completion into an answer of `/v1/messages`: reasoning, text, a refusal and calls as blocks, OpenAI's usage fields beside
 * Anthropic's.
 * Source: https://platform.claude.com/docs/en/api/messages (`Message`)
 *
 * @param status the answer's, which names the kind of an error
 * @param ownId the message's id where the engine gives none; no other message has it
 */
export function toAnthropicAnswer(answer: unknown, status: number, ownId: string): AnthropicAnswer {
  const { id, model, choices, usage, timings, error } = record(answer);
  if (status >= 400 || error != null) return anthropicError(answer, status);
  const { message, finish_reason } = record(Array.isArray(choices) ? choices[0] : null);
  const said = record(message);
  const thought = reasoningIn(said);
  const texts = [text(said["content"]), text(said["refusal"])].filter((each) => each !== "");
  const calls = callsIn(said, ownId);
  return {
    id: text(id) || ownId,
    type: "message",
    role: "assistant",
    model: text(model),
    content: [
      ...(thought === "" ? [] : [{ type: "thinking", thinking: thought, signature: "" }]),
      ...texts.map((each) => ({ type: "text", text: each })),
      ...calls.map(({ id: call, name, given }) => ({ type: "tool_use", id: call, name, input: inputOf(given) })),
    ],
    stop_reason: stopReason(finish_reason, {
      hasCalls: calls.length > 0,
      hasRefusal: text(said["refusal"]) !== "",
    }),
    stop_sequence: null,
    usage: anthropicUsage(usage),
    ...(timings == null ? {} : { timings }),
  };
}

const STOP_REASONS: Readonly<Record<TurnEnd, string>> = {
  answer: "end_turn",
  calls: "tool_use",
  length: "max_tokens",
  refusal: "refusal",
};

/** Anthropic's `stop_reason`. */
export function stopReason(finishReason: unknown, content: TurnContent): string {
  return STOP_REASONS[turnEndOf(finishReason, content)];
}

/** Anthropic's counts beside OpenAI's; what the engine does not report is null. */
export function anthropicUsage(usage: unknown): AnthropicAnswer {
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
  const { error, message, detail } = record(answer);
  const said = [record(error)["message"], error, message, detail].find((value) => typeof value === "string");
  return {
    type: "error",
    error: {
      ...record(typeof error === "object" ? error : null),
      type: KINDS[status] ?? (status >= 400 && status < 500 ? "invalid_request_error" : "api_error"),
      message: said ?? "the engine reported an error",
    },
  };
}
