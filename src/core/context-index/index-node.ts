import type { Digest, Label, NodeId } from "../text/ids.js";

/**
 * A node of the context index, as stored. The index is a radix tree over *served sequences*: a node stands for the blocks from its anchor's
 * root to itself, in the order an engine has seen them, behind the prompt prefix that the anchor identifies.
 */
export interface IndexNode {
  readonly id: NodeId;
  /**
   * The node that this one extends. On an anchor's root: the end of the earlier turn whose whole prompt is a prefix of this root's; null
   * for none. So an engine that holds a node holds all its ancestors.
   */
  readonly parent: NodeId | null;
  /** Digest of the prompt before the blocks; only on an anchor's root. */
  readonly anchor: Digest | null;
  /** Blocks between the parent and this node; empty only on an anchor's root. */
  run: readonly Label[];
  /** Child position under the parent, never reused; search paths consist of these. */
  position: number;
  /** Position of the next new child. */
  nextPosition: number;
  /** Requests that passed through this node or ended here. */
  uses: number;
  /** Requests that ended here and are not evicted. */
  live: number;
  /** The scope's request counter at the last use: a logical clock. */
  lastUsed: number;
  /** Time of the last use, in milliseconds since the epoch; 0 in rows stored before this was recorded. */
  usedAt: number;
  /**
   * Tokens that belong to no block. On an anchor's root: the prompt before the blocks. On another node: the rest of the prompt (question,
   * annotations) of the last request that ended here. 0 in rows stored before this was recorded.
   */
  tokens: number;
}

/** A node of the served sequences, read-only. */
export interface ServedNode {
  readonly row: Pick<IndexNode, "id" | "run" | "position" | "uses" | "lastUsed">;
  readonly children: ReadonlyMap<Label, ServedNode>;
  /** Null on the root of an anchor. */
  readonly parent: ServedNode | null;
  /** The next less recently used node behind the same anchor. */
  readonly staler: ServedNode | null;
  /** Scratch of the running search; meaningless otherwise. */
  mark: number;
}

/** What is known of a served prompt besides its blocks. Tokens are estimates of the configured counter. */
export interface ServedPrompt {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The end of the earlier turn whose whole prompt is a prefix of this one; null for none. */
  readonly follows: NodeId | null;
  /** Tokens before the blocks, the section's opening included. */
  readonly tokensBefore: number;
  /** Tokens after the blocks. */
  readonly tokensBehind: number;
}

/** The longest sequence of wanted blocks that should be cached behind an anchor. */
export interface PrefixMatch {
  readonly labels: readonly Label[];
  readonly tokens: number;
  /** Child positions from the anchor's root to the node where the match ends. */
  readonly searchPath: readonly number[];
}

/** A node where the blocks of prompts that should be cached end. */
export interface HeldEnd {
  readonly id: NodeId;
  /** How many prompts ended here. */
  readonly live: number;
  readonly lastUsed: number;
  /** Tokens of the whole prompt that ended here last. */
  readonly tokens: number;
}

/** An anchor of a prompt, and the prompt's blocks right behind it. */
export interface PassedAnchor {
  readonly anchor: Digest;
  readonly labels: readonly Label[];
}

/** What changed since the last drain, to be stored in one transaction. */
export interface IndexChanges {
  readonly upserted: readonly IndexNode[];
  readonly removed: readonly NodeId[];
}

/** A node with its search path, for display. */
export interface IndexEntry {
  readonly id: NodeId;
  readonly searchPath: readonly number[];
  readonly labels: readonly Label[];
  readonly uses: number;
  readonly live: number;
  readonly lastUsed: number;
}
