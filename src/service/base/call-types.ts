import type { ChatMessage, MemoryId, PlacedMemory, Plan, RequestId, Warning } from "../../core/index.js";
import { type JsonObject, parsedJson, record } from "../../core/text/json.js";
import type { ForgottenMemory } from "../../store/store.js";

/** One invalid field, by the name that the caller used. Never quotes memory text. */
export interface FieldIssue {
  readonly field: string;
  readonly message: string;
}

/** The common part of every API's message types; validated at run time. */
export type MessageLike =
  | { readonly role: string; readonly content?: unknown }
  | { readonly type: string }
  | { readonly id: string };

export interface InstructionPart {
  readonly type: "text";
  readonly text: string;
}

/** Instructions of an answer in Anthropic's format. */
export type Instructions = string | { type: "text"; text: string }[];

export interface Eviction {
  readonly evicted: readonly RequestId[];
  /** Never composed, or evicted before. */
  readonly unknown: readonly RequestId[];
}

/** Predicted and reported cache hits, in tokens; null if the engine did not report. */
export interface Feedback {
  readonly requestId: RequestId;
  /** In the engine's tokens, where it reported how many the prompt has; else by memprefix's counter. */
  readonly expectedCachedTokens: number;
  /** Of the prompt alone: without a chat's tools. */
  readonly observedCachedTokens: number | null;
  /** Observed minus expected. */
  readonly difference: number | null;
}

/** The receipt of a forgotten memory. */
export interface Forgetting extends Omit<ForgottenMemory, "newestAt"> {
  readonly memoryId: MemoryId;
  /** Whether an engine may still cache prompts with it, and until when, in milliseconds since the epoch; null: unknown. */
  readonly engineCache: { readonly mayHold: boolean; readonly until: number | null };
  /** Whether the memory was deleted in the source too; null where another system owns it. */
  readonly deletedFromSource: boolean | null;
}

/** What to add to the request to the engine. */
export interface EngineHints {
  readonly fields: Readonly<Record<string, unknown>>;
  /** The request id among them makes the engine's eviction events name this request. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface ComposeAnswer {
  readonly requestId: RequestId;
  /** With the engine's cache marks, if it has any; in the format of the request's messages. */
  readonly messages: readonly ChatMessage[];
  /** The request's instructions, where its messages are Anthropic's: their API takes them beside the messages. */
  readonly system?: Instructions;
  /** Every distinct memory of the request: this turn's in prompt order, then those of earlier turns. */
  readonly blocks: readonly PlacedMemory[];
  readonly annotations: readonly string[];
  /** The request's tools, as they are to be sent; absent: it has none. */
  readonly tools?: readonly JsonObject[];
  readonly plan: Plan;
  readonly engine: EngineHints;
  /** The worker to send it to; absent where none were named. Its affinity headers are among the engine's. */
  readonly worker?: string;
  readonly warnings: readonly Warning[];
}

/** A {@link ComposeAnswer} within the service: tools keep their bytes. */
export interface PlannedAnswer extends Omit<ComposeAnswer, "tools"> {
  /** One JSON text for each tool; null: none. */
  readonly toolTexts: readonly string[] | null;
}

export function publicAnswer({ toolTexts, ...answer }: PlannedAnswer): ComposeAnswer {
  return toolTexts === null ? answer : { ...answer, tools: toolTexts.map((json) => record(parsedJson(json))) };
}

/** A message of a prompt that is composed for a `query`. */
export type QueryMessage = {
  role: "system" | "user";
  content: string | { type: "text"; text: string }[];
};

/** An answer whose messages have the caller's own message type. */
export type ComposedPrompt<M extends MessageLike = ChatMessage> = Omit<ComposeAnswer, "messages"> & {
  readonly messages: M[];
};
