import type { AgentId, Correction, IndexEntry, Label, MemoryId, RequestId, UserId } from "../../core/index.js";
import type { ScopeCounts } from "../../store/api/store.js";

/** The result of an eviction. */
export interface Eviction {
  readonly evicted: readonly RequestId[];
  /** Never composed, or evicted before. */
  readonly unknown: readonly RequestId[];
}

/** Predicted and reported cache hits, in tokens; null where the engine did not say. */
export interface Feedback {
  readonly requestId: RequestId;
  /** In the engine's tokens, where it reported how many the prompt has; else by memstem's counter. */
  readonly expectedCachedTokens: number;
  readonly observedCachedTokens: number | null;
  /** Observed less expected. */
  readonly difference: number | null;
  /** What this report changed in the user's context index. */
  readonly corrected: Correction;
}

/** A scope's context index, described for people. */
export interface IndexDescription {
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  readonly counts: ScopeCounts & { readonly blocks: number; readonly nodes: number };
  /** Parents before children; at most the limit asked for. */
  readonly nodes: readonly (IndexEntry & {
    /** Whether the engine's cache should still hold it, by the configured TTL. */
    readonly isExpected: boolean;
    readonly requestIds: readonly RequestId[];
  })[];
}

/** The result of forgetting a memory. */
export interface Forgetting {
  readonly memoryId: MemoryId;
  /** Blocks whose text is gone from everything memstem keeps. */
  readonly labels: readonly Label[];
  /** Whether the memory was deleted in the source too; null where another system owns it. */
  readonly deletedFromSource: boolean | null;
}
