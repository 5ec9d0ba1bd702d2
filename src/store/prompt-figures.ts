import type {
  AgentId,
  ConversationId,
  FirstTokenTime,
  MissCause,
  NewPrompt,
  RequestId,
  TurnId,
  UsageWindow,
  UserId,
  WindowMisses,
  WindowSums,
} from "../core/index.js";

/** Whose prompt: one request of a scope. */
export interface PromptKey {
  readonly tenant: string;
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  readonly requestId: RequestId;
}

/** A stored prompt. */
export interface StoredFigures extends NewPrompt, PromptKey {
  /** Grows with time. */
  readonly id: number;
  readonly conversationId: ConversationId | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A part of what is stored. */
export interface PromptView {
  readonly tenant: string;
  /** Of this model; absent: of any. */
  readonly model?: string | undefined;
  readonly window: UsageWindow;
  /** The window's end, in milliseconds since the epoch. */
  readonly now: number;
}

/** What a list of prompts is limited to. */
export interface PromptFilter {
  readonly tenant: string;
  readonly model?: string | undefined;
  readonly userId?: UserId | undefined;
  /** Null: none; absent: any. */
  readonly agentId?: AgentId | null | undefined;
  readonly conversationId?: ConversationId | undefined;
  readonly cause?: MissCause | undefined;
}

/** Prompts with ids below `before`, newest first. */
export interface PromptPage {
  readonly rows: readonly StoredFigures[];
  /** The next page's `before`; null: there is none. */
  readonly next: number | null;
}

/**
 * The table `prompts`: what answered prompts cost and why they missed, one row each, written with its compose. Numbers, ids and names, never
 * text of memories or messages. Each figure is one SQL query.
 */
export interface PromptTable {
  summary(view: PromptView): Promise<WindowSums>;
  misses(view: PromptView): Promise<WindowMisses>;
  page(filter: PromptFilter, before: number | null, limit: number): Promise<PromptPage>;
  /** Null: it is not stored, or no longer. */
  prompt(key: PromptKey): Promise<StoredFigures | null>;
  /** Says of prompts that are stored that what they missed was lost by the engine's restart. */
  markRestarted(keys: readonly PromptKey[]): Promise<void>;
  /** Removes rows from before a time, and the oldest past `most`. */
  sweep(before: number, most: number): Promise<void>;

  /** How many first-token times an engine has reported so far. */
  countFirstTokenTimes(engine: string): Promise<number>;
  /** The last `most` first-token times up to the `count`th, oldest first. */
  firstTokenTimes(engine: string, count: number, most: number): Promise<FirstTokenTime[]>;
  /** Stores one more, with the figures of a prompt that has them. */
  keepFirstTokenTime(engine: string, scopeId: number, turn: TurnId, time: FirstTokenTime): Promise<void>;
}
