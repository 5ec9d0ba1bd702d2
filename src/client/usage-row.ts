import type { EpochReason, FixedRetention, UsageCause } from "../core/index.js";
import type { ComposeOptions } from "../service/base/call-options.js";

/** An engine family. */
export type EngineFamily = NonNullable<ComposeOptions["engine"]>;

/** One answered prompt. */
export interface UsageRow {
  readonly id: number;
  readonly at: number;
  readonly requestId: string;
  readonly userId: string;
  readonly agentId: string | null;
  readonly conversationId: string | null;
  readonly model: string;
  readonly engine: EngineFamily;
  readonly layout: "single" | "conversation";
  readonly policy: string;
  readonly retention: FixedRetention;
  readonly epoch: { readonly began: EpochReason | null; readonly prompts: number } | null;
  readonly promptTokens: number;
  readonly expectedCachedTokens: number;
  readonly carriedTokens: number;
  /** Never sent before. */
  readonly newTokens: number;
  readonly missedTokens: number;
  readonly reportedPromptTokens: number | null;
  readonly reportedCachedTokens: number | null;
  readonly uncachedTokens: number;
  readonly firstTokenMs: number | null;
  readonly causes: readonly { readonly cause: UsageCause; readonly tokens: number }[];
  readonly savedMoney: number | null;
}
