/*
 * store: what is kept of users, in tables that a reader can query (docs/internals/store.md). This file is the contract; `service/` imports
 * nothing else of the room. Its two forms, SQLite and PostgreSQL, are a `Database` each; everything above that is the same code.
 */

import type {
  ChatMessage,
  Composition,
  ConversationId,
  Digest,
  EngineReport,
  Label,
  MemoryId,
  NewPrompt,
  NodeId,
  PlacedMemory,
  Plan,
  PromptFigures,
  PromptTokens,
  ReportGrounds,
  RequestId,
  Scope,
  ScopeChanges,
  StoredPrompt,
  StoredScope,
  Turn,
  TurnId,
  Warning,
} from "../core/index.js";
import type { PromptTable } from "./prompt-figures.js";

/** A user of a tenant: what one lock, one queue and one deletion are of. */
export type User = Pick<Scope, "tenant" | "userId">;

/** A scope's row as some state in memory knows it. */
export interface ScopeVersion {
  /** Of the row in `scopes`; never given twice. */
  readonly scopeId: number;
  /** Grows with every commit. */
  readonly version: number;
  /** The version that the stored snapshot is of; the changes after it stand in `changes`. */
  readonly snapshotVersion: number;
}

/** A scope in memory, as {@link Store.hold} compares it with what is stored. */
export interface KnownScope {
  readonly version: ScopeVersion;
  /** See {@link HeldScope.userNumber}. */
  readonly userNumber: number;
  /** Its state, where another process has committed since; null: it is not the one that was committed. */
  readonly stored: (() => StoredScope) | null;
}

/** What a commit changed in a scope, and the scope as it is now. */
export interface ScopeDelta {
  readonly changes: ScopeChanges;
  /** The whole state, `changes` included, for a snapshot. Called at most once, before the commit returns its promise. */
  readonly whole: () => StoredScope;
}

/** The part of an answer that cannot be rebuilt from its turns. */
export interface StoredAnswer {
  readonly memories: readonly PlacedMemory[];
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
  /** What the engine's report will be compared with. */
  readonly grounds: ReportGrounds;
  /** The worker that the prompt was routed to; absent: none. */
  readonly worker?: string | undefined;
}

/** One compose, stored in one transaction. */
export interface ComposeRecord {
  /** What was composed, as far as it is stored; its messages are built again from its turns. */
  readonly composition: Pick<Composition, "turn" | "given" | "restated" | "head" | "sections" | "leaf">;
  /** The text of its newest section, as it was sent; null: it has none. For readers of the table. */
  readonly section: string | null;
  readonly delta: ScopeDelta;
  readonly request: { readonly id: RequestId; readonly body: Digest; readonly answer: StoredAnswer };
  /** Its figures; null: they are not counted. */
  readonly prompt: NewPrompt | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** An engine's report, as it is stored. */
export interface ReportRecord {
  readonly id: RequestId;
  readonly turn: TurnId;
  /** Everything that it reported so far. */
  readonly observed: EngineReport;
  /** Its prompt's figures from now on; null: they stay. */
  readonly prompt: PromptFigures | null;
}

/**
 * A scope that no other call changes until {@link Store.hold} resolves. Commits once at most; a commit that rejects has changed nothing, one
 * that resolves is durable and visible to every later call of any process, and gives the scope's new version.
 */
export interface HeldScope {
  /** Null: the scope is not stored. */
  readonly version: ScopeVersion | null;
  /** The row of the scope's user: another number after the user was deleted. 0: there is none. */
  readonly userNumber: number;
  /** The state as it is stored; null: as the known one. */
  readonly newer: StoredScope | null;
  commitCompose(record: ComposeRecord): Promise<ScopeVersion>;
  commitReport(delta: ScopeDelta, report: ReportRecord): Promise<ScopeVersion>;
  commitEviction(delta: ScopeDelta, ids: readonly RequestId[]): Promise<ScopeVersion>;
  /** Removes a turn and its request, unless another turn continues it. */
  commitWithdrawal(delta: ScopeDelta, turn: TurnId): Promise<ScopeVersion>;
  /** Stores changes of a scope that belong to no request. */
  commitChanges(delta: ScopeDelta): Promise<ScopeVersion>;
}

/** A conversation as it is stored. */
export interface LoadedConversation {
  /** Its last thousand turns and those of its newest epoch, oldest first. */
  readonly turns: readonly Turn[];
  /** Whether it lost its end since its newest prompt, because a memory was forgotten. */
  readonly isCut: boolean;
}

/** What was said in a conversation's newest epoch, without what memprefix injected. */
export interface StoredHistory {
  /** The instructions of its newest prompt. */
  readonly head: readonly ChatMessage[];
  /** The messages of its turns, first to last. */
  readonly messages: readonly ChatMessage[];
  /** How many of them the newest turn added. */
  readonly newest: number;
  /** The prompts that were sent of those turns, oldest first. */
  readonly prompts: readonly PromptTokens[];
  /** Whether its memories stand in a message of their own in front of the others. */
  readonly hasOwnHead: boolean;
  /** Digest of the meaning of the message before the first, which memprefix left out; null: none. */
  readonly behind: Digest | null;
}

/** A request that was answered before. */
export interface AnsweredRequest {
  readonly body: Digest;
  readonly answer: StoredAnswer;
  readonly head: readonly ChatMessage[];
  /** The turns of its prompt, first to last, each with the plain messages it added. */
  readonly turns: readonly { readonly turn: Turn; readonly given: readonly ChatMessage[] }[];
}

/** What handling an engine's report reads of a request. */
export interface ServedRequest {
  readonly leaf: NodeId;
  readonly turn: TurnId;
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  readonly plan: Plan;
  readonly grounds: ReportGrounds;
  readonly evicted: boolean;
  /** Everything the engine reported so far; null: nothing. */
  readonly observed: EngineReport | null;
}

/** A prompt, and the earlier one that it continued. */
export interface ContinuedPrompt {
  readonly prompt: StoredPrompt;
  /** Its parent where that was sent; else the newest before it of its conversation, or of no conversation. Null: none. */
  readonly continued: StoredPrompt | null;
}

/** A request that its engine may still have cached. */
export interface LiveRequest {
  readonly scope: Scope;
  readonly requestId: RequestId;
  readonly leaf: NodeId;
  readonly turn: TurnId;
}

/** A page of a walk through users: those on it that were looked for. The cursor is a row's number, or a user's name. */
export interface UsersFound<Cursor extends number | string = number> {
  readonly users: readonly User[];
  /** The next call's `after`; null at the end. */
  readonly next: Cursor | null;
}

/** Sizes of one scope. */
export interface ScopeCounts {
  readonly conversations: number;
  readonly turns: number;
  readonly requests: number;
}

/** What forgetting a memory removed. */
export interface ForgottenMemory {
  /** Labels whose text is gone, of all agents. */
  readonly labels: readonly Label[];
  /** Conversations whose stored history ends before the first turn that was given it, or that says it. */
  readonly conversations: readonly { readonly agentId: Scope["agentId"]; readonly conversationId: ConversationId }[];
  /** How many stored prompts were removed with it. */
  readonly prompts: number;
  /** When the newest of them was composed, in milliseconds since the epoch; null: none was. */
  readonly newestAt: number | null;
  /** Ids of the engine's responses that were given it: the engine still has them. */
  readonly responses: readonly string[];
  /** Whether its text is out of the files: `pending` while something reads them, and then it is done later. */
  readonly files: "erased" | "pending";
}

/** Deleted here, and not yet known to be deleted from the memory source. */
export interface PendingSourceDeletions {
  /** Whether that is all memories of a deleted user. */
  readonly everything: boolean;
  readonly memoryIds: readonly MemoryId[];
}

/** An exported row: column names, and values with JSON parsed. */
export type ExportedRow = Readonly<Record<string, unknown>>;

/** Everything stored of a user. */
export interface ExportedUser {
  /** Null: no agent. Every table that belongs to scopes, by name. */
  readonly scopes: readonly {
    readonly agentId: string | null;
    readonly tables: Readonly<Record<string, readonly ExportedRow[]>>;
  }[];
  /** Ids of forgotten memories. */
  readonly forgottenMemories: readonly string[];
}

/** Why a store is unavailable: locked by another process, disk full, not writable, I/O errors, damaged, or no connection to its server. */
export type StoreFault = "busy" | "full" | "read-only" | "failing" | "damaged" | "unreachable";

const FAULTS: Readonly<Record<StoreFault, string>> = {
  busy: "another process holds the database locked",
  full: "the disk is full",
  "read-only": "the database cannot be written: its file, directory or file system is read-only",
  failing: "the disk fails: the database could not be read or written",
  damaged: "the database is damaged: `memprefix doctor` says where",
  unreachable: "the database's server cannot be reached, or takes no connection",
};

/** The disk, a lock or a connection made a call fail; nothing was changed. The message quotes nothing of the call. */
export class StoreUnavailableError extends Error {
  override readonly name = "StoreUnavailableError";
  constructor(
    readonly fault: StoreFault,
    options?: ErrorOptions,
  ) {
    super(FAULTS[fault], options);
  }
}

/** The error that a store rejects with. */
export function namedFault(error: unknown, fault: StoreFault | null): unknown {
  const isNamed = fault === null || error instanceof StoreUnavailableError;
  return isNamed ? error : new StoreUnavailableError(fault, { cause: error });
}

/**
 * Where users are stored. Both forms pass `test/store/store.suite.ts`. Within one process, calls about one user come one after the other
 * (the service's queues); `hold` keeps other processes out. Reads see every commit that resolved before. Rejects with
 * {@link StoreUnavailableError} for faults of disks, locks and connections.
 */
export interface Store {
  /**
   * Makes sure that a scope and its user have rows. Gives the number of the user's row: it is another one once the user was deleted.
   */
  begin(scope: Scope, at: number): Promise<number>;
  /** The number of a user's row; 0: there is none. */
  userNumber(user: User): Promise<number>;
  /** The scope's number; null where it is not stored. */
  find(scope: Scope): Promise<number | null>;
  /** Runs `work` while no other process changes anything of the scope's user. */
  hold<T>(scope: Scope, known: KnownScope | null, work: (held: HeldScope) => Promise<T>): Promise<T>;

  loadConversation(scopeId: number, id: ConversationId): Promise<LoadedConversation>;
  /** What was said in a conversation up to its newest turn; null where it has none. */
  findHistory(scopeId: number, id: ConversationId): Promise<StoredHistory | null>;
  /** A request answered before; null where there is none. */
  findRequest(scopeId: number, id: RequestId): Promise<AnsweredRequest | null>;
  /** A request with its report; null where there is none. */
  findServed(scopeId: number, id: RequestId): Promise<ServedRequest | null>;
  /** The request that led to an engine's response, or to the newest of an engine's conversation; null where none is kept of this scope. */
  findResponse(scopeId: number, id: string): Promise<RequestId | null>;
  /** Keeps which request led to a response, and in which of the engine's conversations, where that request is stored. */
  keepResponse(scopeId: number, requestId: RequestId, id: string, engineConversation: string | null): Promise<void>;
  /** Requests of a tenant's users with one of these ids that were not evicted. */
  findLiveRequests(tenant: string, ids: readonly RequestId[]): Promise<readonly LiveRequest[]>;
  /** How many live requests composed after a turn end at this node; counted up to `most`. */
  countServedSince(scopeId: number, leaf: NodeId, turn: TurnId, most: number): Promise<number>;
  /** The worker that a turn's prompt was routed to; null for none. */
  findWorker(scopeId: number, turn: TurnId): Promise<string | null>;
  /** The last of the 32 requests before a turn whose engine reported cached tokens; null for none. */
  findReportedBefore(scopeId: number, turn: TurnId): Promise<ServedRequest | null>;
  /**
   * When the oldest open request (neither reported nor evicted) composed after `since` was composed, in milliseconds since the epoch; null
   * for none. With more than 32 requests since then it may be `since`.
   */
  underWaySince(scopeId: number, since: number): Promise<number | null>;
  /** A request's prompt and the one that it continued; null where there is no such request. */
  findContinued(scopeId: number, id: RequestId): Promise<ContinuedPrompt | null>;
  /** Those of some digests that are of sections that were ever sent in this scope, and are still stored. */
  knownSections(scopeId: number, sections: readonly Digest[]): Promise<readonly Digest[]>;
  counts(scopeId: number): Promise<ScopeCounts>;
  /** Requests of a scope that were not evicted, newest first. */
  liveRequests(scopeId: number, limit: number): Promise<readonly { requestId: RequestId; leaf: NodeId }[]>;

  /**
   * Forgets a memory of a user for good, with every agent, in one transaction: its text leaves the snapshots, each conversation ends before
   * the first turn whose section, carried head or line held it, or the first message that says it word for word; its id is never sent again.
   *
   * @param texts texts of it that no scope need know
   * @param isInSource whether the memory source has to delete it too; pending until {@link Store.deletedFromSource}
   * @param at milliseconds since the epoch
   */
  forget(
    user: User,
    memoryId: MemoryId,
    of: { readonly texts: readonly string[]; readonly isInSource: boolean; readonly at: number },
  ): Promise<ForgottenMemory>;
  /** Removes what a user's scopes did not use since a time, and memories that nothing left refers to. Gives how many turns. */
  expire(user: User, before: number): Promise<number>;
  /**
   * Deletes everything of a user, with every agent. Gives how many scopes there were.
   *
   * @param isInSource whether the memory source has to delete the user too; pending until {@link Store.deletedFromSource}
   */
  deleteUser(user: User, isInSource: boolean, at: number): Promise<number>;
  /** Everything stored for a user. */
  exportUser(user: User): Promise<ExportedUser>;
  /** What the memory source has yet to delete of a user; null for nothing. */
  pendingInSource(user: User): Promise<PendingSourceDeletions | null>;
  /** The memory source has deleted a memory, or (null) everything that the user had. */
  deletedFromSource(user: User, memoryId: MemoryId | null): Promise<void>;

  /** Figures of prompts. */
  readonly prompts: PromptTable;

  /** Every scope stored for a user: one per agent, and the one without. */
  scopesOf(user: User): Promise<Scope[]>;
  /** Users of all tenants, page by page. `after` 0 begins. */
  users(after: number): Promise<UsersFound>;
  /** Users of a tenant who have, or had, a memory. Reads no other tenant's rows. `after` "" begins. */
  usersWithMemory(tenant: string, memoryId: MemoryId, after: string): Promise<UsersFound<string>>;
  /** Users of all tenants with turns from before a time (milliseconds since the epoch). */
  usersWithOldTurns(before: number, after: number): Promise<UsersFound>;
  /** Users of whom the memory source has yet to delete something. */
  usersPendingInSource(after: number): Promise<UsersFound>;

  /** Rejects where the database does not answer. */
  ping(): Promise<void>;
  /** Stores what was handed over, and closes. */
  close(): Promise<void>;
}
