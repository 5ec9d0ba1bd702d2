import type {
  AgentId,
  ConversationId,
  FirstTokenTime,
  MissCause,
  NewPrompt,
  RequestId,
  Scope,
  TurnId,
  UsageWindow,
  UserId,
  WindowMisses,
  WindowSums,
} from "../core/index.js";

/** Whose prompt: one request of a scope. */
export interface PromptKey extends Scope {
  readonly requestId: RequestId;
}

export interface StoredFigures extends NewPrompt, PromptKey {
  readonly id: number;
  readonly conversationId: ConversationId | null;
  readonly at: number;
}

export interface PromptView {
  readonly tenant: string;
  readonly model?: string | undefined;
  readonly window: UsageWindow;
  /** The window's end, in milliseconds since the epoch. */
  readonly now: number;
}

export interface PromptFilter {
  readonly tenant: string;
  readonly model?: string | undefined;
  readonly userId?: UserId | undefined;
  /** Null: none; absent: any. */
  readonly agentId?: AgentId | null | undefined;
  readonly conversationId?: ConversationId | undefined;
  readonly cause?: MissCause | undefined;
}

export interface PromptPage {
  readonly rows: readonly StoredFigures[];
  /** The next page's `before`; null: none. */
  readonly next: number | null;
}

/**
 * The table `prompts`: cost and misses of answered prompts, one row each, written with its compose. Numbers, ids and names, never text of
 * memories or messages. Each figure is one SQL query.
 */
export interface PromptTable {
  summary(view: PromptView): Promise<WindowSums>;
  misses(view: PromptView): Promise<WindowMisses>;
  page(filter: PromptFilter, before: number | null, limit: number): Promise<PromptPage>;
  /** Null: not stored, or no longer. */
  prompt(key: PromptKey): Promise<StoredFigures | null>;
  /** Stores a call that Mem0 made of its own model, for no user. @param number unique among the calls */
  keepWrite(tenant: string, number: number, at: number, figures: NewPrompt): Promise<void>;
  /** Removes rows from before a time, and the oldest past `most`. */
  sweep(before: number, most: number): Promise<void>;

  countFirstTokenTimes(engine: string): Promise<number>;
  /** The last `most` first-token times up to the `count`th, oldest first. */
  firstTokenTimes(engine: string, count: number, most: number): Promise<FirstTokenTime[]>;
  /** Stores one first-token time, with the figures of its prompt. */
  keepFirstTokenTime(engine: string, scopeId: number, turn: TurnId, time: FirstTokenTime): Promise<void>;
}
