/*
 * integrations: adapters, each for one framework's own extension point.
 * Enters: what the framework is about to send to a model. Leaves: the same call with a composed prompt, and its usage as feedback.
 * Nothing here depends on how memprefix is reached: the library in-process, or the client of a service.
 */

import type { ComposedPrompt, MessageLike } from "../service/base/call-types.js";
import type { ComposeOptions, FeedbackOptions } from "../service/fields/call-options.js";

/** What adapters call: `createMemprefix` of the library, or the client of a service (`memprefix/client`). */
export interface Composing {
  compose<const M extends MessageLike>(options: ComposeOptions<M>): Promise<ComposedPrompt<M>>;
  feedback(options: FeedbackOptions): Promise<unknown>;
}

/** A name, or how a call of the framework says it; nullish: it does not. */
export type NameOf<Call> = string | ((call: Call) => string | null | undefined);

/** Fields of `compose` that are the same for every call of an adapter. */
export type PromptOptions = Omit<
  ComposeOptions,
  "userId" | "agentId" | "conversationId" | "requestId" | "query" | "messages" | "format" | "memories" | "system"
>;

/** The options that all adapters have. `Call` is what the framework gives of one call of a model. */
export interface AdapterOptions<Call> {
  readonly memprefix: Composing;
  /** Whose memories. A call that names nobody is sent unmodified. */
  readonly userId: NameOf<Call>;
  readonly agentId?: NameOf<Call>;
  /** Absent: every prompt is a single one. */
  readonly conversationId?: NameOf<Call>;
  /** The call's memories, in any of Mem0's result shapes; absent or nullish: memprefix searches its source. */
  readonly memories?: (call: Call) => unknown;
  /** Further fields of `compose`, for every call. */
  readonly compose?: PromptOptions;
  /** Called with every composed prompt, before the call is sent. */
  readonly onComposed?: (composed: ComposedPrompt<MessageLike>, call: Call) => void;
  /** Called with what failed: the call is sent unmodified, or its usage is not reported. Default: `console.warn`. */
  readonly onError?: (error: unknown) => void;
}

/** What the engine said of an answer, in tokens and milliseconds. */
export type ReportedUsage = Pick<FeedbackOptions, "promptTokens" | "cachedTokens" | "ttftMs">;

/** A call's prompt. */
export interface ComposedCall<M extends MessageLike> extends ComposedPrompt<M> {
  /** Reports the answer's usage; without cached tokens it does nothing. Never rejects. */
  report(usage: ReportedUsage): Promise<void>;
}

/**
 * Composes the prompt of a framework's call. Null, and the call is to be sent unmodified: it names no user, or something failed, which
 * `onError` was called. Never rejects.
 *
 * @param messages the call's messages, or what makes them of its prompt and may throw
 * @param format the API that they are of; null: what `compose` recognises
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

/** Reports a failure to the caller. A listener that throws fails nothing. */
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

/** A number of tokens; null where an answer says none, which is not zero. */
export function countOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
