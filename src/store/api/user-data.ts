import type {
  Digest,
  Label,
  MemoryId,
  NodeId,
  QuoteSearch,
  ScopeChanges,
  StoredScope,
  Turn,
  TurnId,
} from "../../core/index.js";

/** What a commit changed in a scope, and the scope as it is now. */
export interface ScopeDelta {
  readonly changes: ScopeChanges;
  /** The whole state, `changes` included, for a snapshot. Called at most once, before the commit returns its promise. */
  readonly whole: () => StoredScope;
}

/** Where a memory is quoted, searched before it is forgotten. */
export interface FoundQuotes {
  /** The memory's own words in all of its versions, with any agent. */
  readonly texts: readonly string[];
  /** Texts of its blocks that have more than those: what a block template put around them is to be erased too. */
  readonly rendered: readonly string[];
  readonly scopes: ReadonlyMap<number, ScopeQuotes>;
}

/** The same in one scope. */
export interface ScopeQuotes {
  readonly search: QuoteSearch;
  /** Searched messages: digest by id, as ids may be reused. */
  readonly looked: Map<number, string>;
  readonly quoting: Set<number>;
}

/** A memory to forget; `delta` has already dropped its blocks. */
export interface ForgetRecord {
  readonly delta: ScopeDelta;
  readonly memoryId: MemoryId;
  /** Labels of its blocks. */
  readonly gone: ReadonlySet<Label>;
  /** Messages that quote it; erased too. */
  readonly quotes: FoundQuotes;
  /** Digests of the sections that a turn's injection now renders to, as it was sent and as it is replayed. */
  readonly sectionsOf: (turn: Pick<Turn, "injection" | "retention">) => readonly Digest[];
  /** Whether the memory source has to delete it too; pending until `Store.deletedFromSource`. */
  readonly isInSource: boolean;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * How often a user, and memories of theirs, were deleted by any process. Another user's deletion may be counted here too: equal counts
 * mean that nothing was deleted, different ones that something may have been.
 */
export interface DeletionCounts {
  readonly users: number;
  readonly memories: number;
}

/** Deleted here, and not yet known to be deleted from the memory source. */
export interface PendingSourceDeletions {
  /** Whether that is all memories of a deleted user. */
  readonly everything: boolean;
  readonly memoryIds: readonly MemoryId[];
}

/** Identifies a message that is stored apart from the turns that were given it. */
export type MessageId = (number | string) & { readonly __message: never };

/** A turn, as far as it refers to what has to be kept for it. */
export interface NamingTurn
  extends Pick<Turn, "id" | "conversationId" | "injection" | "retention" | "requested" | "head"> {
  /** Those of its given messages, and of its instructions, that are stored apart. */
  readonly messages: readonly MessageId[];
}

/** Some of a scope's turns, in composed order. */
export interface ScannedTurns {
  /** Not used since a time: turns of conversations whose last turn is older, and older single prompts. */
  readonly expired: readonly NamingTurn[];
  readonly remaining: readonly NamingTurn[];
  /** The next call's `after`; null at the end. */
  readonly next: TurnId | null;
}

/** Turns that were not used since a time. */
export interface ExpiredTurns {
  readonly expired: readonly NamingTurn[];
  /** Their requests that were not evicted. */
  readonly live: readonly { readonly leaf: NodeId; readonly turn: TurnId }[];
}

/** What is removed with expired turns; `delta` has already dropped their blocks. */
export interface ExpiryRecord {
  readonly delta: ScopeDelta;
  readonly turns: ExpiredTurns;
  /** Digests of instructions that no other turn begins with. */
  readonly heads: readonly Digest[];
  /** Digests of sections that no other turn sent. */
  readonly sections: readonly Digest[];
  /** Messages that no other turn was given. */
  readonly messages: readonly MessageId[];
}

/** An exported row: column names, and values with JSON parsed. */
export type ExportedRow = Readonly<Record<string, unknown>>;

/** Everything stored in one scope. */
export interface ExportedScope {
  /** Null: no agent. */
  readonly agentId: string | null;
  /** The scope's own counters and when it was created. */
  readonly scope: ExportedRow;
  /** Every table that belongs to scopes, by name. */
  readonly tables: Readonly<Record<string, readonly ExportedRow[]>>;
}

/** Everything stored of a user, with every agent. */
export interface ExportedUser {
  readonly scopes: readonly ExportedScope[];
  /** Ids of forgotten memories. */
  readonly forgottenMemories: readonly string[];
}
