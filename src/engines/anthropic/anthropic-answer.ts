import { readAnthropicUsage, sumOf } from "../adapters/reported-usage.js";
import { ANTHROPIC_BLOCKS } from "../turns/carried-reasoning.js";
import { record, text } from "../upstream/json-values.js";
import { argumentsOf, CallIds, idOf, wholeArguments } from "../upstream/tool-calls.js";
import { type TurnEnd, turnEndOf } from "../upstream/turn-end.js";
import { type AnthropicBlock, keptBlock } from "./anthropic-content.js";

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
export function chatError(error: unknown): OpenAiChatAnswer {
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
export function finishReason(stopReason: unknown, hasCalls: boolean): string | null {
  if (typeof stopReason !== "string" && !hasCalls) return null;
  return FINISH_REASONS[turnEndOf(stopReason, { hasCalls })];
}

/** Whether a block is a call of the client's; a provider's own tools have other types. */
export function isCall({ type }: AnthropicBlock): boolean {
  return type === "tool_use";
}

/** OpenAI's counts, where known, beside all of Anthropic's fields. */
export function chatUsage(usage: unknown): OpenAiChatAnswer {
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
export function hasChatForm(block: AnthropicBlock): boolean {
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
