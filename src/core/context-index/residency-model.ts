import type { NodeId, TurnId } from "../text/ids.js";
import type { ContextIndex } from "./context-index.js";
import type { PassedAnchor } from "./index-node.js";

/** How long, and how much of one user, an engine's prefix cache is taken to keep. */
export type ResidencyConfig =
  /** Everything, until it is named in an eviction or an engine's report shows that it is gone. */
  | { readonly kind: "all" }
  /** Each prefix so many milliseconds after its last use, as hosted engines do. */
  | { readonly kind: "ttl"; readonly ttlMs: number }
  /** So many tokens, the least recently used prefixes going first, as vLLM and SGLang do (RAGBoost's eviction by tokens). */
  | { readonly kind: "capacity"; readonly tokens: number }
  | { readonly kind: "ttl-and-capacity"; readonly ttlMs: number; readonly tokens: number }
  /** The last prompt of each of so many slots, as llama.cpp does: a prompt takes the place of another one. */
  | { readonly kind: "slots"; readonly slots: number };

/**
 * What an engine that says nothing is taken to have let go of. Asked before each request is planned. Evictions that are named and
 * engines' reports correct the index beside it, whatever the model; that nothing is brought back that left is the index's own rule: only
 * a request that is served brings a prefix in. Every model passes `test/core/context-index/residency.suite.ts`.
 */
export interface ResidencyModel {
  /** Takes out of the index what should have left the engine's cache by `now`, in milliseconds since the epoch. */
  expire(index: ContextIndex, now: number): void;
  /**
   * Where what is held is in several places, of which a prompt finds one: which one, and what it then takes the place of. Asked once a
   * prompt's blocks are ordered, before it is taken in; `sections` are the prompt's own, first to last. Absent: all that is held hits.
   */
  foresee?(index: ContextIndex, sections: readonly SectionTokens[]): Foreseen;
  /** The limits that it goes by, for people who ask why something left; absent: it does not say. */
  readonly limits?: ResidencyConfig;
}

/** A section of a prompt that is about to be served, in its place. */
export interface SectionTokens extends PassedAnchor {
  /** Tokens of the prompt before the section's blocks, its opening included … */
  readonly before: number;
  /** … from the end of its blocks to the end of its turn … */
  readonly behind: number;
  /** … and to the end of its turn. */
  readonly end: number;
  /** The turn that sent the prompt as it is up to there; null where none did. */
  readonly sentBy: TurnId | null;
  /**
   * Tokens of the prompt up to the end of the section's first so many blocks; of none: up to the section.
   *
   * @param goesOn whether another block follows, whose beginning all blocks have in common
   */
  upTo(blocks: number, goesOn: boolean): number;
}

/** What a prompt will find. */
export interface Foreseen {
  readonly cachedTokens: number;
  /** How many blocks of its last section, from the first on, are among them. */
  readonly cachedBlocks: number;
  /** Where the prompt ends that it takes the place of; null for none. */
  readonly replaces: NodeId | null;
}
