/* Prompts for LangChain models. Needs only `@langchain/core`. */

import type { BaseMessage } from "@langchain/core/messages";
import { z } from "zod";
import type { ChatMessage } from "../core/index.js";
import type { EngineHints } from "../service/base/call-types.js";
import { type AdapterOptions, composeCall, type ReportedUsage, tellError } from "./composing.js";
import { baseMessageOf, chatMessageOf, contentWith, findGiven, withContent } from "./langchain-messages.js";

export interface LangChainPrompt {
  readonly messages: BaseMessage[];
  /** Reports the usage of the model's answer. Never rejects. */
  report(answer: unknown): Promise<void>;
}

/**
 * Composes the messages of a chain or of a LangGraph node. Never rejects: after a failure, or without a user, it returns the given messages.
 *
 * @example
 * ```ts
 * const { messages, report } = await composeMessages({ memprefix, userId, conversationId }, state.messages);
 * const answer = await model.invoke(messages);
 * await report(answer);
 * ```
 */
export async function composeMessages(
  options: AdapterOptions<readonly BaseMessage[]>,
  messages: BaseMessage[],
): Promise<LangChainPrompt> {
  return (await promptOf(options, messages, messages)) ?? { messages, report: async () => {} };
}

export interface HintedPrompt extends LangChainPrompt {
  readonly engine: EngineHints;
}

/** Null: send the call unmodified. Never rejects. */
export async function promptOf<Call>(
  options: AdapterOptions<Call>,
  call: Call,
  given: readonly BaseMessage[],
): Promise<HintedPrompt | null> {
  const asked: ChatMessage[] = [];
  const chat = () => {
    for (const message of given) asked.push(chatMessageOf(message));
    return asked;
  };
  const composed = await composeCall<Call, ChatMessage>(options, call, chat, "chat");
  if (composed === null) return null;
  try {
    const messages = findGiven(asked, composed.messages).map(({ message, of, isSame: isGiven }) => {
      const own = of === null ? undefined : given[of];
      if (of === null || own === undefined) return baseMessageOf(message);
      return isGiven ? own : withContent(own, contentWith(message.content, asked[of]?.content));
    });
    const report = (answer: unknown) => composed.report(usageOf(answer));
    return { messages, report, engine: composed.engine };
  } catch (error) {
    tellError(options, error);
    return null;
  }
}

const answered = z.object({
  usage_metadata: z.object({
    input_tokens: z.number(),
    input_token_details: z.object({ cache_read: z.number().optional() }).optional(),
  }),
});
const answers = z
  .union([
    answered.transform((one) => [one]),
    z.object({ messages: z.array(answered.nullable().catch(null)) }).transform(({ messages }) => messages),
  ])
  .catch([]);

function usageOf(answer: unknown): ReportedUsage {
  const { usage_metadata: usage } = answers.parse(answer).findLast((one) => one !== null) ?? {};
  return { promptTokens: usage?.input_tokens, cachedTokens: usage?.input_token_details?.cache_read };
}
