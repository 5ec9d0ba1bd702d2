import { readOpenAiUsage } from "../adapters/reported-usage.js";
import { isSilent, ReasoningRun, reasoningIn, SignedParts } from "../reasoning/answered-reasoning.js";
import { type CarriedReasoning, sealed } from "../reasoning/carried-reasoning.js";
import { record, text } from "../upstream/json-values.js";

/** An answer of `/v1/messages`, an event of one, or an error. */
export type AnthropicAnswer = Readonly<Record<string, unknown>>;

/**
 * Converts a chat completion into an answer of `/v1/messages`: reasoning, text and calls as blocks, OpenAI's usage fields beside Anthropic's.
 * What the engine gave with its reasoning, and with its calls, is sealed where clients return it unread: as a signature, or as redacted
 * thinking.
 * Source: https://platform.claude.com/docs/en/api/messages (`Message`)
 *
 * @param status the answer's, which names the kind of an error
 */
export function toAnthropicAnswer(answer: unknown, status: number): AnthropicAnswer {
  const { id, model, choices, usage, timings, error } = record(answer);
  if (status >= 400 || error != null) return anthropicError(answer, status);
  const { message, finish_reason } = record(Array.isArray(choices) ? choices[0] : null);
  const { content, tool_calls } = record(message);
  const thought = reasoningIn(record(message));
  const parts = new SignedParts();
  parts.take(record(message));
  const calls = Array.isArray(tool_calls) ? (tool_calls as readonly unknown[]).map(record) : [];
  return {
    id: text(id),
    type: "message",
    role: "assistant",
    model: text(model),
    content: [
      ...(isSilent(thought) ? [] : [thinkingBlock(thought.text, new ReasoningRun().take(thought).carried())]),
      ...(text(content) === "" ? [] : [{ type: "text", text: text(content) }]),
      ...calls.map(({ id: call, function: called }) => ({
        type: "tool_use",
        id: text(call),
        name: text(record(called)["name"]),
        input: inputOf(record(called)["arguments"]),
      })),
      ...(parts.carried === null ? [] : [thinkingBlock("", parts.carried)]),
    ],
    stop_reason: stopReason(finish_reason),
    stop_sequence: null,
    usage: anthropicUsage(usage),
    ...(timings == null ? {} : { timings }),
  };
}

/** A block with what is sealed beside a text of reasoning; without a text, of redacted thinking. */
export function thinkingBlock(thinking: string, carried: CarriedReasoning): AnthropicAnswer {
  if (thinking === "") return { type: "redacted_thinking", data: sealed(carried) };
  return { type: "thinking", thinking, signature: sealed(carried) };
}

const STOP_REASONS: Readonly<Record<string, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  function_call: "tool_use",
  content_filter: "refusal",
};

/** Anthropic's `stop_reason`. */
export function stopReason(finishReason: unknown): string {
  return STOP_REASONS[text(finishReason)] ?? "end_turn";
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

function inputOf(json: unknown): unknown {
  try {
    return typeof json === "string" && json.trim() !== "" ? JSON.parse(json) : {};
  } catch {
    return { arguments: json };
  }
}
