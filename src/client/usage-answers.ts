import type { EpochReason, PromptBar, UsageCause, UsageNoteKind, UsageWindow } from "../core/index.js";
import type { ExplainedPrompt } from "./answers.js";
import type { EngineFamily, UsageRow } from "./usage-row.js";

/*
 * `GET /usage/…`: what prompts cost over time, by cause, by user, one by one. Times are milliseconds since the epoch. Tokens are memstem's
 * estimates, but for those that begin with `reported`: they are the engine's own count, and null where it did not report.
 */

/** Which prompts are looked at; absent: all. */
export interface UsageFilterOptions {
  readonly model?: string | null | undefined;
  readonly engine?: EngineFamily | null | undefined;
  readonly layout?: "single" | "conversation" | null | undefined;
}

/** A window and its prompts. */
export interface UsageViewOptions extends UsageFilterOptions {
  /** The last 60 minutes, 24 hours or 31 days. Default: `hour`. */
  readonly window?: UsageWindow | null | undefined;
}

/** Whose prompts, and why they missed; absent: all. */
interface UsagePromptOptions extends UsageFilterOptions {
  readonly userId?: string | null | undefined;
  readonly agentId?: string | null | undefined;
  readonly conversationId?: string | null | undefined;
  readonly cause?: UsageCause | null | undefined;
}

/** Which prompts are followed. */
export interface UsageEventsOptions extends UsagePromptOptions {
  /** Most prompts of one event, at most 50; the others are counted. 0: counts only. Default: 50. */
  readonly limit?: number | null | undefined;
}

/** Which prompts a list has. */
export interface UsageRequestsOptions extends UsagePromptOptions {
  /** An answer's `next`. */
  readonly cursor?: string | null | undefined;
  /** At most 200. Default: 50. */
  readonly limit?: number | null | undefined;
}

/** Which users or conversations come first. */
export interface UsageReuseOptions {
  /** Default: `missed_tokens`. */
  readonly order?: "missed_tokens" | "cached_share" | "last_at" | null | undefined;
  /** At most 200. Default: 50. */
  readonly limit?: number | null | undefined;
}

/** Whose conversations. */
export interface UsageConversationsOptions extends UsageReuseOptions {
  readonly userId?: string | null | undefined;
  readonly agentId?: string | null | undefined;
}

/** Which conversation. */
export interface UsageConversationOptions {
  readonly userId: string;
  readonly agentId?: string | null | undefined;
  readonly conversationId: string;
  readonly cursor?: string | null | undefined;
  /** At most 500. Default: 200. */
  readonly limit?: number | null | undefined;
}

/** What happened, to be shown in charts. */
export interface UsageNoteOptions {
  readonly kind: "deploy" | "engine_restart";
  readonly label: string;
  /** Default: now. */
  readonly at?: number | undefined;
  readonly model?: string | undefined;
}

/** Sums over prompts. */
export interface UsageFigures {
  readonly prompts: number;
  readonly reportedPrompts: number;
  readonly promptTokens: number;
  readonly expectedCachedTokens: number;
  readonly reportedPromptTokens: number;
  readonly reportedCachedTokens: number;
  readonly uncachedTokens: number;
  /** Sent before and computed again; each has a cause. */
  readonly missedTokens: number;
  /** By the engine's word, without prompts below a provider's minimum and expired ones; null: nothing reported. */
  readonly cachedShare: number | null;
  readonly expectedShare: number | null;
  readonly belowMinimum: { readonly prompts: number; readonly tokens: number };
  readonly expired: { readonly prompts: number; readonly tokens: number };
  readonly firstTokenMs: {
    readonly prompts: number;
    readonly mean: number;
    readonly p50: number;
    readonly p95: number;
  } | null;
  /** Net of what cache writes cost more; null: prompts cost time, not money. */
  readonly savedMoney: number | null;
  readonly missedMoney: number | null;
}

/** What happened at a time, beside prompts. */
export interface UsageNote {
  readonly id: number;
  readonly at: number;
  readonly kind: UsageNoteKind;
  readonly label: string;
  /** Null: all. */
  readonly model: string | null;
}

/** A window's figures. */
export interface UsageSummary {
  readonly window: UsageWindow;
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
  readonly hasPrices: boolean;
  readonly total: UsageFigures;
  /** Every step, oldest first. */
  readonly points: readonly (UsageFigures & { readonly at: number })[];
  readonly byModel: readonly (UsageFigures & { readonly model: string })[];
  readonly byEngine: readonly (UsageFigures & { readonly engine: EngineFamily })[];
  readonly byLayout: readonly (UsageFigures & { readonly layout: "single" | "conversation" })[];
  readonly notes: readonly UsageNote[];
}

/** A window's misses by cause. */
export interface UsageMisses {
  readonly window: UsageWindow;
  readonly from: number;
  readonly to: number;
  readonly hasPrices: boolean;
  readonly missedTokens: number;
  readonly missedMoney: number | null;
  /** Every cause, most tokens first. */
  readonly causes: readonly {
    readonly cause: UsageCause;
    readonly title: string;
    /** What to do about it. */
    readonly advice: string;
    readonly prompts: number;
    readonly tokens: number;
    readonly share: number;
    readonly money: number | null;
    /** Below a provider's minimum, or expired: not in the cached share. */
    readonly isApart: boolean;
  }[];
}

/** A page of prompts, newest first. */
export interface UsageRequests {
  readonly requests: readonly UsageRow[];
  /** The next page's `cursor`; null: this is the last. */
  readonly next: string | null;
}

/** A prompt as bars, beside the earlier one with the longest common prefix. */
export interface UsageRequest {
  /** Null: it is no longer among the rows that are kept. */
  readonly request: UsageRow | null;
  readonly hasText: boolean;
  readonly bars: readonly PromptBar[];
  readonly nearest: { readonly requestId: string | null; readonly bars: readonly PromptBar[] } | null;
  /** Indexes of the first bars that differ. */
  readonly difference: { readonly here: number; readonly there: number } | null;
  readonly explanation: ExplainedPrompt;
}

/** What a user's or a conversation's prompts reuse. */
export interface UsageReuse {
  readonly userId: string;
  readonly agentId: string | null;
  readonly prompts: number;
  readonly promptTokens: number;
  readonly uncachedTokens: number;
  readonly missedTokens: number;
  readonly cachedShare: number | null;
  readonly expectedShare: number | null;
  readonly savedMoney: number | null;
  readonly lastAt: number;
}

/** Users, one entry for each agent. */
export interface UsageUsers {
  readonly users: readonly (UsageReuse & { readonly conversations: number })[];
}

/** Conversations. */
export interface UsageConversations {
  readonly conversations: readonly (UsageReuse & { readonly conversationId: string })[];
}

/** A conversation's newest prompts, by epoch. */
export interface UsageConversation {
  readonly userId: string;
  readonly agentId: string | null;
  readonly conversationId: string;
  readonly total: Omit<UsageReuse, "userId" | "agentId">;
  readonly epochs: readonly { readonly began: EpochReason | null; readonly turns: readonly UsageRow[] }[];
  readonly next: string | null;
}

/** The tenant's alert rules. */
export interface UsageAlerts {
  readonly rules: readonly {
    readonly name: string;
    readonly measure: "cached_share" | "missed_tokens" | "first_token_p95_ms";
    readonly model: string | null;
    readonly isFiring: boolean;
    readonly since: number | null;
    readonly value: number | null;
    readonly reference: number | null;
  }[];
}

/** A server-sent event. */
export type UsageEvent =
  /** The newest of those that came at once, oldest first, and how many came besides. */
  | { readonly requests: { readonly rows: readonly UsageRow[]; readonly more: number } }
  | { readonly note: UsageNote }
  /** Prompts and notes that were left out, because events were read too slowly. */
  | { readonly dropped: { readonly count: number } };
