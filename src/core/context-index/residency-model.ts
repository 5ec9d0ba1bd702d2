import type { NodeId, TurnId } from "../text/ids.js";
import type { ContextIndex } from "./context-index.js";
import type { PassedAnchor } from "./index-node.js";

/** How long, and how much of one user, an engine's prefix cache is assumed to keep. */
export type ResidencyConfig =
  /** Everything until an eviction names it or an engine's report misses it. */
  | { readonly kind: "all" }
  /** Each prefix for so many milliseconds after its last use, as hosted engines do. */
  | { readonly kind: "ttl"; readonly ttlMs: number }
  /** So many tokens with LRU eviction, as vLLM and SGLang do (RAGBoost's eviction by tokens). */
  | { readonly kind: "capacity"; readonly tokens: number }
  | { readonly kind: "ttl-and-capacity"; readonly ttlMs: number; readonly tokens: number }
  /** The last prompt of each of so many slots, as llama.cpp does: a prompt replaces another one. */
  | { readonly kind: "slots"; readonly slots: number };

/**
 * What an engine is assumed to have evicted without saying so. Asked before each request is planned. Named evictions and engines' reports
 * correct the index under any model. No model restores what left: only a served request adds a prefix. Every model passes
 * `test/core/context-index/residency.suite.ts`.
 */
export interface ResidencyModel {
  /** Removes from the index what should have left the engine's cache by `now`, in milliseconds since the epoch. */
  expire(index: ContextIndex, now: number): void;
  /**
   * For engines with several separate caches, of which a prompt uses one: what a prompt hits in it, and which prompt it replaces. Called
   * once the prompt's blocks are ordered, before it is added; `sections` are the prompt's own, first to last. Absent: everything in the
   * index hits.
   */
  foresee?(index: ContextIndex, sections: readonly SectionTokens[]): Foreseen;
  /** The model's limits, for explanations; absent: not stated. */
  readonly limits?: ResidencyConfig;
}

/** A section of a prompt that is about to be served, with its position in tokens. */
export interface SectionTokens extends PassedAnchor {
  /** Tokens of the prompt before the section's blocks, the opening included … */
  readonly before: number;
  /** … from the end of its blocks to the end of its turn … */
  readonly behind: number;
  /** … and to the end of its turn. */
  readonly end: number;
  /** The turn that sent the prompt byte for byte up to here; null for none. */
  readonly sentBy: TurnId | null;
  /**
   * Tokens of the prompt up to the end of the section's first `blocks` blocks; for 0: up to the section, or its opening.
   *
   * @param goesOn whether another block follows, before which every section has the same opening
   */
  upTo(blocks: number, goesOn: boolean): number;
}

/** What a prompt is expected to hit. */
export interface Foreseen {
  readonly cachedTokens: number;
  /** How many leading blocks of its last section are among them. */
  readonly cachedBlocks: number;
  /** The end of the prompt that this one replaces; null for none. */
  readonly replaces: NodeId | null;
}
