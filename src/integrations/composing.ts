/*
 * integrations: adapters, each for one framework's own extension point.
 * Enters: what the framework is about to send to a model. Leaves: the same call with a composed prompt, and its usage as feedback.
 * Nothing here depends on how memprefix is reached: the library in-process, or the client of a service.
 */

import type { ComposedPrompt, MessageLike } from "../service/base/call-types.js";
import type { ComposeOptions, FeedbackOptions } from "../service/fields/call-options.js";

/** `createMemprefix` of the library, or the client of a service (`memprefix/client`). */
export interface Composing {
  compose<const M extends MessageLike>(options: ComposeOptions<M>): Promise<ComposedPrompt<M>>;
  feedback(options: FeedbackOptions): Promise<unknown>;
}

/** A name, or how to read it from a call; nullish: none. */
export type NameOf<Call> = string | ((call: Call) => string | null | undefined);

/** Fields of `compose` that are the same for every call of an adapter. */
export type PromptOptions = Omit<
  ComposeOptions,
  "userId" | "agentId" | "conversationId" | "requestId" | "query" | "messages" | "format" | "memories" | "system"
>;

/** The options of all adapters. `Call` is one call of a model, in the framework's form. */
export interface AdapterOptions<Call> {
  readonly memprefix: Composing;
  /** A call without a user is sent unmodified. */
  readonly userId: NameOf<Call>;
  readonly agentId?: NameOf<Call>;
  /** Absent: every prompt is a single one. */
  readonly conversationId?: NameOf<Call>;
  /** In any of Mem0's result shapes; absent or nullish: memprefix searches its source. */
  readonly memories?: (call: Call) => unknown;
  readonly compose?: PromptOptions;
  /** Called before a composed call is sent. */
  readonly onComposed?: (composed: ComposedPrompt<MessageLike>, call: Call) => void;
  /** Called with a failure: the call is sent unmodified, or its usage is not reported. Default: `console.warn`. */
  readonly onError?: (error: unknown) => void;
}

/** In tokens and milliseconds. */
export type ReportedUsage = Pick<FeedbackOptions, "promptTokens" | "cachedTokens" | "ttftMs">;

export interface ComposedCall<M extends MessageLike> extends ComposedPrompt<M> {
  /** Does nothing without cached tokens. Never rejects. */
  report(usage: ReportedUsage): Promise<void>;
}

/**
 * Null if the call has no user, or after a failure, with which `onError` was called: send it unmodified. Never rejects.
 *
 * @param messages the call's messages, or a function that may throw
 * @param format the messages' API; null: `compose` detects it
 */
export async function composeCall<Call, M extends MessageLike>(
  options: AdapterOptions<Call>,
  call: Call,
  messages: readonly M[] | (() => readonly M[]),
  format: ComposeOptions["format"] = null,
): Promise<ComposedCall<M> | null> {
  const { memprefix } = options;
  try {
    const userId = nameOf(options.userId, call);
    if (userId == null) return null;
    const agentId = nameOf(options.agentId, call);
    const conversationId = nameOf(options.conversationId, call);
    const memories = await options.memories?.(call);
    const composed = await memprefix.compose<M>({
      ...options.compose,
      userId,
      agentId,
      conversationId,
      messages: typeof messages === "function" ? messages() : messages,
      format,
      memories,
    });
    options.onComposed?.(composed, call);
    const report = async (usage: ReportedUsage) => {
      if (usage.cachedTokens == null) return;
      await memprefix
        .feedback({ userId, agentId, requestId: composed.requestId, ...usage })
        .catch((error: unknown) => tellError(options, error));
    };
    return { ...composed, report };
  } catch (error) {
    tellError(options, error);
    return null;
  }
}

function nameOf<Call>(name: NameOf<Call> | undefined, call: Call): string | null | undefined {
  return typeof name === "function" ? name(call) : name;
}

/** A listener that throws fails nothing. */
export function tellError({ onError = warn }: Pick<AdapterOptions<never>, "onError">, error: unknown): void {
  try {
    onError(error);
  } catch (fault) {
    warn(fault);
  }
}

function warn(error: unknown): void {
  console.warn(`memprefix: sent unmodified: ${error instanceof Error ? error.message : String(error)}`);
}

/** Null: not reported, which is not zero. */
export function countOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
