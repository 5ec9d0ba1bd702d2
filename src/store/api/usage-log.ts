import type {
  AgentId,
  ConversationId,
  EngineModel,
  EpochReason,
  FixedRetention,
  Miss,
  MissCause,
  PromptUsage,
  ReportFacts,
  RequestId,
  UsageNoteKind,
  UsageWindow,
  UserId,
} from "../../core/index.js";

/** Whose prompt: one request of a scope. */
export interface UsageKey {
  readonly tenant: string;
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  readonly requestId: RequestId;
}

/** What a prompt is counted under. */
export interface UsageGroup {
  /** As its client named it; {@link NO_MODEL} where it did not. */
  readonly model: string;
  /** The engine family. */
  readonly engine: string;
  readonly layout: "single" | "conversation";
}

/** Those that are looked at; what is absent may be anything. */
export type GroupFilter = { readonly [K in keyof UsageGroup]?: UsageGroup[K] | undefined };

/** The model of prompts whose client named none. */
export const NO_MODEL = "unknown";
/** What models are counted as together beyond those with most tokens in a window. */
export const OTHER_MODELS = "other";

/** A composed prompt. */
export interface NewUsage extends UsageKey, UsageGroup {
  readonly kind: "composed";
  readonly conversationId: ConversationId | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly policy: string;
  readonly retention: FixedRetention;
  readonly epoch: { readonly began: EpochReason | null; readonly prompts: number } | null;
  readonly usage: PromptUsage;
  readonly costs: EngineModel;
}

/** What an engine reported of a prompt. */
export interface UsageReport extends UsageKey {
  readonly kind: "reported";
  /** Null: not named. */
  readonly model: string | null;
  readonly facts: ReportFacts;
  readonly costs: EngineModel;
}

/** A prompt that counts as never composed. */
export interface WithdrawnUsage extends UsageKey {
  readonly kind: "withdrawn";
}

/** What is recorded, in the order in which it happened. What is said of a prompt that is not known is left out. */
export type UsageEntry = NewUsage | UsageReport | WithdrawnUsage;

/** One prompt that is kept. */
export interface KeptUsage extends UsageGroup, UsageKey {
  /** Grows with every prompt of the tenant. */
  readonly number: number;
  readonly conversationId: ConversationId | null;
  readonly at: number;
  readonly policy: string;
  readonly retention: FixedRetention;
  readonly epoch: NewUsage["epoch"];
  readonly usage: PromptUsage;
  readonly savedMoney: number | null;
}

/** Sums over prompts. */
export const SUM_NAMES = [
  "prompts",
  "promptTokens",
  "expectedTokens",
  "uncachedTokens",
  "missedTokens",
  /** Prompts whose engine reported, and their tokens by its count. */
  "reportedPrompts",
  "reportedPromptTokens",
  "reportedCachedTokens",
  /** The same without prompts that are set apart: what shares are made of. */
  "sharedPromptTokens",
  "sharedExpectedTokens",
  "sharedReportedPromptTokens",
  "sharedReportedCachedTokens",
  /** What was expected of the reported ones, as the same share of the engine's count. */
  "sharedReportedExpectedTokens",
  "belowMinimumPrompts",
  "belowMinimumTokens",
  "expiredPrompts",
  "expiredTokens",
  "timedPrompts",
  "firstTokenMs",
  "savedMoney",
  "missedMoney",
] as const;
export type UsageSums = Readonly<Record<(typeof SUM_NAMES)[number], number>>;

/** Times to the first token, by the bins of `timeBin`. */
export type TimeCounts = ReadonlyMap<number, number>;

/** Sums with the times that they are of. */
export interface TimedSums {
  readonly sums: UsageSums;
  readonly times: TimeCounts;
}

/** A part of what is kept. */
export interface UsageView extends GroupFilter {
  readonly tenant: string;
  readonly window: UsageWindow;
  /** The window's end, in milliseconds since the epoch. */
  readonly now: number;
}

/** A window's steps. */
export interface UsageSpan {
  /** Where the first step begins, in milliseconds since the epoch. */
  readonly from: number;
  /** Where the last one ends. */
  readonly to: number;
  readonly stepMs: number;
}

/** Sums over a window, and by what they are counted under. */
export interface WindowSums extends UsageSpan {
  readonly total: TimedSums;
  /** By the start of their step; steps without prompts are left out. */
  readonly points: ReadonlyMap<number, TimedSums>;
  readonly groups: readonly (TimedSums & { readonly group: UsageGroup })[];
  readonly notes: readonly KeptNote[];
}

/** Misses of a window, by cause; causes without any are left out. */
export interface WindowMisses extends UsageSpan {
  readonly causes: readonly (Miss & { readonly prompts: number; readonly money: number })[];
}

/** What a list of prompts is limited to. */
export interface UsageFilter extends GroupFilter {
  readonly tenant: string;
  readonly userId?: UserId | undefined;
  /** Null: none; absent: any. */
  readonly agentId?: AgentId | null | undefined;
  readonly conversationId?: ConversationId | undefined;
  readonly cause?: MissCause | undefined;
}

/** Prompts with numbers below `before`, newest first. A page of a rare filter may be short, or empty, and not the last one. */
export interface UsagePage {
  readonly rows: readonly KeptUsage[];
  /** The next page's `before`; null: there is none. */
  readonly next: number | null;
}

/** What happened at a time, beside prompts. */
export interface NewNote {
  /** Null: for all tenants. */
  readonly tenant: string | null;
  readonly at: number;
  readonly kind: UsageNoteKind;
  readonly label: string;
  readonly model: string | null;
}

export interface KeptNote extends NewNote {
  /** Unique among those of the tenant and those of all. */
  readonly number: number;
}

/** How much is kept. */
export interface UsageBounds {
  /** Prompts of all tenants; the oldest go first. As many as are summed up over a month in seconds. */
  readonly prompts: number;
  /** Days after which prompts and notes go. */
  readonly days: number;
  /** Notes of one tenant. */
  readonly notes: number;
}

export const DEFAULT_USAGE_BOUNDS: UsageBounds = { prompts: 200_000, days: 31, notes: 1_000 };

/**
 * What answered prompts cost and why they missed: one short row per prompt, from which sums over time are made when they are requested; notes.
 * Holds ids, names and numbers, never text of memories, messages or instructions. Every method answers for one tenant only; every
 * implementation passes `test/store/usage/usage-log.suite.ts`. Rejects with `StoreUnavailableError` for faults of disks and locks.
 *
 * It is a statistic beside the store: what is recorded and not yet written is lost when the process is killed.
 */
export interface UsageLog {
  /** Records a batch, and removes what is past the bounds. A batch whose outcome is not known can be recorded again: it counts once. */
  record(batch: readonly UsageEntry[], now: number): Promise<void>;
  summary(view: UsageView): Promise<WindowSums>;
  misses(view: UsageView): Promise<WindowMisses>;
  prompts(filter: UsageFilter, before: number | null, limit: number): Promise<UsagePage>;
  /** Null: it is not kept, or no longer. */
  prompt(key: UsageKey): Promise<KeptUsage | null>;
  note(note: NewNote): Promise<KeptNote>;
  /** Remembers a text under a name, and gives the one before: to detect a change. Null: there was none. */
  replaceMark(name: string, text: string): Promise<string | null>;
  /** Removes every row with the user's name, and those of this user that were recorded up to `now` and come later, from any process. */
  deleteUser(tenant: string, userId: UserId, now: number): Promise<void>;
  /** Everything with the user's name: prompts, oldest first. */
  exportUser(tenant: string, userId: UserId): Promise<readonly KeptUsage[]>;
  close(): Promise<void>;
}
