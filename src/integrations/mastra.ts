/*
 * memprefix/mastra: a processor for Mastra's agents.
 * Enters: the prompt of a model call, on every step of an agent's loop. Leaves: the same prompt with memories; its usage, as feedback.
 * Source: `Processor` of `@mastra/core/processors`, 1.71
 */

import { record } from "../core/text/json.js";
import type { MessageLike } from "../service/base/call-types.js";
import { usageIn } from "./ai-sdk-answer.js";
import { messagesOf, promptOf } from "./ai-sdk-prompt.js";
import { type AdapterOptions, type ComposedCall, composeCall, type NameOf, tellError } from "./composing.js";

interface MastraMessage {
  readonly role: string;
  readonly content: unknown;
}

export interface MastraCall {
  /** Counted from 0 within a run of the agent. */
  readonly stepNumber: number;
  /** Also names the resource and the thread of Mastra's memory. */
  readonly requestContext?: { get(key: string): unknown };
  readonly state: Record<string, unknown>;
}

interface MastraChunk {
  readonly type: string;
  readonly payload: unknown;
}

/** For `inputProcessors`. */
export interface MastraProcessor {
  readonly id: "memprefix";
  readonly name: string;
  processLLMRequest<Prompt extends readonly MastraMessage[]>(
    call: MastraCall & { readonly prompt: Prompt },
  ): Promise<{ prompt: Prompt } | undefined>;
  processLLMResponse(
    answer: MastraCall & { readonly chunks: readonly MastraChunk[]; readonly fromCache: boolean },
  ): Promise<undefined>;
}

/** {@link AdapterOptions}, with names that Mastra's memory gives by default. */
export interface MastraOptions extends Omit<AdapterOptions<MastraCall>, "userId"> {
  /** Default: the resource of Mastra's memory. A call without a user is sent unmodified. */
  readonly userId?: NameOf<MastraCall>;
  /** Default: the thread of Mastra's memory. */
  readonly conversationId?: NameOf<MastraCall>;
}

/**
 * A processor that composes the prompt of every model call with the user's memories, and reports its usage. Mastra stores no memories. After a
 * failure the call is sent unmodified, and `onError` is called. Put it after other processors that change the prompt.
 *
 * @example
 * ```ts
 * const agent = new Agent({ id: "planner", name: "Planner", instructions, model, memory, inputProcessors: [memprefixProcessor({ memprefix })] });
 * await agent.generate(question, { memory: { resource: userId, thread: conversationId } });
 * ```
 */
export function memprefixProcessor(options: MastraOptions): MastraProcessor {
  const named = {
    ...options,
    userId: options.userId ?? resourceOf,
    conversationId: options.conversationId ?? threadOf,
  };
  const composedCalls = new WeakMap<MastraCall["state"], ComposedCall<MessageLike>>();
  return {
    id: "memprefix",
    name: "memprefix",
    async processLLMRequest<Prompt extends readonly MastraMessage[]>(call: MastraCall & { readonly prompt: Prompt }) {
      const composed = await composeCall<MastraCall, MessageLike>(named, call, () => messagesOf(call.prompt), "chat");
      if (composed === null) return undefined;
      try {
        const prompt = promptOf(composed.messages) as readonly MastraMessage[] as Prompt;
        composedCalls.set(call.state, composed);
        return { prompt };
      } catch (error) {
        tellError(options, error);
        return undefined;
      }
    },
    async processLLMResponse({ state, chunks, fromCache }) {
      const composed = composedCalls.get(state);
      composedCalls.delete(state);
      const usage = usageOf(chunks);
      if (usage !== undefined && !fromCache) void composed?.report(usageIn({ usage }));
      return undefined;
    },
  };
}

function usageOf(chunks: readonly MastraChunk[]): unknown {
  const last = chunks.findLast(({ type }) => type === "finish" || type === "step-finish");
  return record(record(last?.payload)["output"])["usage"];
}

function resourceOf({ requestContext }: MastraCall): string | null {
  return nameIn(record(requestContext?.get("MastraMemory"))["resourceId"] ?? requestContext?.get("mastra__resourceId"));
}

function threadOf({ requestContext }: MastraCall): string | null {
  const { thread } = record(requestContext?.get("MastraMemory"));
  return nameIn(record(thread)["id"] ?? requestContext?.get("mastra__threadId"));
}

function nameIn(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
