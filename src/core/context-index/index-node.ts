import type { Digest, Label, NodeId } from "../text/ids.js";

/**
 * A node of the context index, as it is stored. The index is a radix tree over *served sequences*: a node stands for the blocks on
 * the way to it, in the order in which an engine has seen them, after the prompt beginning that its anchor names.
 */
export interface IndexNode {
  readonly id: NodeId;
  /**
   * The node whose prefix this one's goes on from. Of an anchor's root: where the sequence of an earlier turn ended whose whole prompt
   * stands in this root's beginning; null where none is known. So an engine that holds a node holds everything above it.
   */
  readonly parent: NodeId | null;
  /** Set on the root of an anchor only: digest of everything that stood before the blocks. */
  readonly anchor: Digest | null;
  /** Blocks between the parent and this node; empty on an anchor's root only. */
  run: readonly Label[];
  /** Child position under the parent, never given twice; search paths are made of these. */
  position: number;
  /** Position that the next child gets. */
  nextPosition: number;
  /** Requests that passed through or ended here. */
  uses: number;
  /** Requests that ended here and were not evicted. */
  live: number;
  /** The scope's request counter when this node was last used: a logical clock. */
  lastUsed: number;
  /** When it was last used, in milliseconds since the epoch; 0 where that was not kept yet. */
  usedAt: number;
  /**
   * Tokens that are no block's. On an anchor's root: all that stood before the blocks; on another node: what stood behind them
   * (question, annotations) in the request that ended here last. 0 where that was not kept yet.
   */
  tokens: number;
}

/** A node of the served sequences, for reading. */
export interface ServedNode {
  readonly row: Pick<IndexNode, "id" | "run" | "position" | "uses" | "lastUsed">;
  readonly children: ReadonlyMap<Label, ServedNode>;
  /** Null on the root of an anchor. */
  readonly parent: ServedNode | null;
  /** The node behind the same anchor that was used last before this one. */
  readonly staler: ServedNode | null;
  /** For whoever searches: scratch, of no meaning afterwards. */
  mark: number;
}

/** What is known of a served prompt beside its blocks. Tokens are estimates of the configured counter. */
export interface ServedPrompt {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Where the sequence of the turn ended whose whole prompt this one begins with; null for none. */
  readonly follows: NodeId | null;
  /** Tokens before the blocks, the section's opening included. */
  readonly tokensBefore: number;
  /** Tokens behind the blocks. */
  readonly tokensBehind: number;
}

/** The longest sequence of wanted blocks that an engine should hold behind an anchor. */
export interface PrefixMatch {
  readonly labels: readonly Label[];
  readonly tokens: number;
  /** Child positions from the anchor's root to the node where the match ends. */
  readonly searchPath: readonly number[];
}

/** Where the blocks of prompts end that should be held. */
export interface HeldEnd {
  readonly id: NodeId;
  /** How many prompts ended here. */
  readonly live: number;
  readonly lastUsed: number;
  /** Of the whole prompt, of the last one that ended here. */
  readonly tokens: number;
}

/** A beginning that a prompt has, and blocks that it has right behind it. */
export interface PassedAnchor {
  readonly anchor: Digest;
  readonly labels: readonly Label[];
}

/** What changed since the last drain, to be stored in one transaction. */
export interface IndexChanges {
  readonly upserted: readonly IndexNode[];
  readonly removed: readonly NodeId[];
}

/** A node with its search path, for people. */
export interface IndexEntry {
  readonly id: NodeId;
  readonly searchPath: readonly number[];
  readonly labels: readonly Label[];
  readonly uses: number;
  readonly live: number;
  readonly lastUsed: number;
}
