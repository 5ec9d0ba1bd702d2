import type { Digest, Label, MemoryId, NodeId, QuoteSearch, ScopeChanges, Turn, TurnId } from "../../core/index.js";

/** Where a memory is quoted, found before it is forgotten. */
export interface FoundQuotes {
  /** What the memory says, or said, with any agent. */
  readonly texts: readonly string[];
  readonly scopes: ReadonlyMap<number, ScopeQuotes>;
}

/** The same in one scope, by its number. */
export interface ScopeQuotes {
  readonly search: QuoteSearch;
  /** Messages that were looked at, by id, with their digests: an id may be given again. */
  readonly looked: Map<number, string>;
  readonly quoting: Set<number>;
}

/** A memory to be forgotten; `changes` has dropped its blocks already. */
export interface ForgetRecord {
  readonly changes: ScopeChanges;
  readonly memoryId: MemoryId;
  /** Labels whose text is gone. */
  readonly gone: ReadonlySet<Label>;
  /** What quotes the texts that are gone; erased too. */
  readonly quotes: FoundQuotes;
  /** Digests of the sections that a turn's injection now renders to, as it was sent and as it is replayed. */
  readonly sectionsOf: (turn: Pick<Turn, "injection" | "retention">) => readonly Digest[];
  /** Whether the memory source has to delete it too; then that is pending until {@link Store.deletedFromSource}. */
  readonly isInSource: boolean;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * How often a user, and a memory of theirs, was deleted so far, by any process. Now and then another user's deletion is counted here too:
 * equal counts mean that nothing was deleted, different ones that something may have been.
 */
export interface DeletionCounts {
  readonly users: number;
  readonly memories: number;
}

/** What was deleted here and the memory source has yet to delete. */
export interface PendingSourceDeletions {
  /** All memories that the user had when it was deleted. */
  readonly everything: boolean;
  readonly memoryIds: readonly MemoryId[];
}

/** Numbers what the application said in one scope. */
export type MessageId = number & { readonly __message: never };

/** A turn as far as it names what has to stay for it. */
export interface NamingTurn
  extends Pick<Turn, "id" | "conversationId" | "injection" | "retention" | "requested" | "head"> {
  /** What it was given, and its instructions. */
  readonly messages: readonly MessageId[];
}

/** Some of a scope's turns, in the order in which they were composed. */
export interface ScannedTurns {
  /** Those that nobody used since a time: of conversations whose last turn is older, and single prompts that are. */
  readonly expired: readonly NamingTurn[];
  readonly remaining: readonly NamingTurn[];
  /** What the next call goes on after; null at the end. */
  readonly next: TurnId | null;
}

/** Turns that nobody used since a time. */
export interface ExpiredTurns {
  readonly expired: readonly NamingTurn[];
  /** Requests of theirs that were not evicted. */
  readonly live: readonly { readonly leaf: NodeId; readonly turn: TurnId }[];
}

/** What goes with turns that expired; `changes` has dropped their blocks already. */
export interface ExpiryRecord {
  readonly changes: ScopeChanges;
  readonly turns: ExpiredTurns;
  /** Digests of instructions that no other turn begins with. */
  readonly heads: readonly Digest[];
  /** Digests of sections that no other turn sent. */
  readonly sections: readonly Digest[];
  /** Messages that no other turn was given. */
  readonly messages: readonly MessageId[];
}

/** A row as it is exported: column names, values with JSON taken apart. */
export type ExportedRow = Readonly<Record<string, unknown>>;

/** Everything kept in one scope. */
export interface ExportedScope {
  /** Null: no agent. */
  readonly agentId: string | null;
  /** The scope's own counters and when it was created. */
  readonly scope: ExportedRow;
  /** Every table that belongs to scopes, by name. */
  readonly tables: Readonly<Record<string, readonly ExportedRow[]>>;
}

/** Everything kept of a user, with every agent. */
export interface ExportedUser {
  readonly scopes: readonly ExportedScope[];
  /** Ids of memories that are never to be sent again. */
  readonly forgottenMemories: readonly string[];
}
