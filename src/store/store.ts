/*
 * store: what is stored of users, in tables that a reader can query (docs/internals/store.md). `service/` imports only this contract from the
 * room. Its two forms, SQLite and PostgreSQL, are a `Database` each; everything above that is shared code.
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
  SentAfter,
  StoredPrompt,
  StoredScope,
  Turn,
  TurnId,
  Warning,
} from "../core/index.js";
import type { PromptTable } from "./prompt-figures.js";

/** The unit of a lock, a queue and a deletion. */
export type User = Pick<Scope, "tenant" | "userId">;

/** A scope's row as a state in memory knows it. */
export interface ScopeVersion {
  /** The row in `scopes`; never reused. */
  readonly scopeId: number;
  readonly version: number;
  /** The version of the stored snapshot; later changes are in `changes`. */
  readonly snapshotVersion: number;
}

export interface KnownScope {
  readonly version: ScopeVersion;
  readonly userNumber: number;
  /** Its state, to apply other processes' commits to; null: it is not the committed one. */
  readonly stored: (() => StoredScope) | null;
}

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
  readonly worker?: string | undefined;
}

/** One compose, stored in one transaction. */
export interface ComposeRecord {
  /** The stored part; its messages are rebuilt from its turns. */
  readonly composition: Pick<Composition, "turn" | "given" | "restated" | "head" | "sections" | "leaf">;
  /** Text of its newest section, for readers of the table; null: none. */
  readonly section: string | null;
  readonly delta: ScopeDelta;
  readonly request: { readonly id: RequestId; readonly body: Digest; readonly answer: StoredAnswer };
  readonly prompt: NewPrompt | null;
  /** What the conversation's prompt is sent after; null: as stored, or no conversation. */
  readonly sentAfter: SentAfter | null;
  readonly at: number;
}

export interface ReportRecord {
  readonly id: RequestId;
  readonly turn: TurnId;
  /** Everything reported so far. */
  readonly observed: EngineReport;
  /** Its prompt's new figures; null: unchanged. */
  readonly prompt: PromptFigures | null;
}

/**
 * A scope that no other call changes until {@link Store.hold} resolves. Commits at most once, and gives the scope's new version. A commit that
 * rejects has changed nothing; one that resolves is durable and visible to every later call in any process.
 */
export interface HeldScope {
  readonly version: ScopeVersion | null;
  /** The row of the scope's user; it changes with a deletion. 0: none. */
  readonly userNumber: number;
  /** The stored state; null: the known one is current. */
  readonly newer: StoredScope | null;
  commitCompose(record: ComposeRecord): Promise<ScopeVersion>;
  commitReport(delta: ScopeDelta, report: ReportRecord): Promise<ScopeVersion>;
  commitEviction(delta: ScopeDelta, ids: readonly RequestId[]): Promise<ScopeVersion>;
  /** Removes a turn and its request, unless another turn continues it. */
  commitWithdrawal(delta: ScopeDelta, turn: TurnId): Promise<ScopeVersion>;
  /** Stores changes of a scope that belong to no request. */
  commitChanges(delta: ScopeDelta): Promise<ScopeVersion>;
}

export interface LoadedConversation {
  /** Its last thousand turns and those of its newest epoch, oldest first. */
  readonly turns: readonly Turn[];
  /** Whether its end was removed since its newest prompt, because a memory was forgotten. */
  readonly isCut: boolean;
  /** Null: unknown. */
  readonly sentAfter: SentAfter | null;
  /** Instructions of its newest prompt; null: it has no prompt. */
  readonly instructions: readonly ChatMessage[] | null;
}

/** The messages of a conversation's newest epoch, without what memprefix injected. */
export interface StoredHistory {
  readonly head: readonly ChatMessage[];
  readonly messages: readonly ChatMessage[];
  /** How many of them the newest turn added. */
  readonly newest: number;
  /** The prompts of those turns, oldest first. */
  readonly prompts: readonly PromptTokens[];
  /** Whether its memories are in their own message before the others. */
  readonly hasOwnHead: boolean;
  /** Digest of the meaning of the message before the first, which memprefix left out; null: none. */
  readonly behind: Digest | null;
}

export interface AnsweredRequest {
  readonly body: Digest;
  readonly answer: StoredAnswer;
  readonly head: readonly ChatMessage[];
  /** The turns of its prompt, first to last, each with the plain messages it added. */
  readonly turns: readonly { readonly turn: Turn; readonly given: readonly ChatMessage[] }[];
}

/** A request, as far as an engine's report needs it. */
export interface ServedRequest {
  readonly leaf: NodeId;
  readonly turn: TurnId;
  readonly at: number;
  readonly plan: Plan;
  readonly grounds: ReportGrounds;
  readonly evicted: boolean;
  /** Everything reported so far; null: nothing. */
  readonly observed: EngineReport | null;
}

export interface ContinuedPrompt {
  readonly prompt: StoredPrompt;
  /** Its parent if that was sent, else the newest prompt before it in its conversation, or without one. Null: none. */
  readonly continued: StoredPrompt | null;
}

/** A request that its engine may still have cached. */
export interface LiveRequest {
  readonly scope: Scope;
  readonly requestId: RequestId;
  readonly leaf: NodeId;
  readonly turn: TurnId;
}

/** A page of a walk through users. The cursor is a row's number, or a user's name. */
export interface UsersFound<Cursor extends number | string = number> {
  readonly users: readonly User[];
  readonly next: Cursor | null;
}

export interface ForgottenMemory {
  /** Labels whose text is gone, of all agents. */
  readonly labels: readonly Label[];
  /** Memories with the same text, which keep it. */
  readonly keptBy: readonly MemoryId[];
  /** Conversations whose stored history ends before the first turn that had the memory or quotes it. */
  readonly conversations: readonly { readonly agentId: Scope["agentId"]; readonly conversationId: ConversationId }[];
  readonly prompts: number;
  /** No prompt with the memory was composed after it, in milliseconds since the epoch; null: none was. */
  readonly newestAt: number | null;
  /** Ids of the engine's responses to prompts with the memory: the engine still has them. */
  readonly responses: readonly string[];
  /** Whether its text is out of the files. `pending`: something reads them, and it is done later. */
  readonly files: "erased" | "pending";
}

/** Deleted here, but perhaps not yet in the memory source. */
export interface PendingSourceDeletions {
  /** Whether a deleted user's memories are all pending. */
  readonly everything: boolean;
  readonly memoryIds: readonly MemoryId[];
}

/** Column names, and values with JSON parsed. */
export type ExportedRow = Readonly<Record<string, unknown>>;

export interface ExportedUser {
  /** Every table that belongs to scopes, by name. `agentId` null: no agent. */
  readonly scopes: readonly {
    readonly agentId: string | null;
    readonly tables: Readonly<Record<string, readonly ExportedRow[]>>;
  }[];
  readonly forgottenMemories: readonly string[];
}

/** The rows of one queue are written in order. */
export interface WriteQueue {
  readonly scope: Scope;
  readonly scopeId: number;
  readonly queue: string;
}

export interface NewWrite {
  readonly queue: string;
  /** What is added: JSON that the store does not read. */
  readonly addition: unknown;
  /** How many exchanges it has, at least 1. */
  readonly exchanges: number;
  /** The request that it answers, which must still be stored; null: none. */
  readonly requestId: RequestId | null;
  readonly at: number;
}

export type StoredWrite = Pick<NewWrite, "addition" | "exchanges"> & { readonly id: number };

/** The table `writes`: exchanges that the memory source has not been given yet. Times are in milliseconds since the epoch. */
export interface WaitingWrites {
  /** Stores an exchange. Gives its queue, and how many exchanges wait there now; null: its user or its request was deleted. */
  keep(scope: Scope, write: NewWrite): Promise<(WriteQueue & { readonly waiting: number }) | null>;
  /** Queues that nobody holds, with at least `enough` exchanges or with none since `idleSince`; oldest first, 100 at most. */
  due(now: number, enough: number, idleSince: number): Promise<readonly WriteQueue[]>;
  /** Holds a queue until a time. False: it is empty, or held in any process. */
  claim(queue: WriteQueue, now: number, until: number): Promise<boolean>;
  /** Ends holds of earlier processes, where only this one writes. */
  release(): Promise<void>;
  /** The first rows of a queue. */
  first(queue: WriteQueue, limit: number): Promise<readonly StoredWrite[]>;
  /** Ends a hold. */
  unhold(queue: WriteQueue): Promise<void>;
  /** Removes a queue's rows up to an id. */
  remove(queue: WriteQueue, upTo: number): Promise<void>;
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
 * Where users are stored. Both forms pass `test/store/store.suite.ts`. Within one process, the service's queues order the calls about one user;
 * `hold` excludes other processes. Reads see every commit that resolved before. Nothing found is null. Rejects with
 * {@link StoreUnavailableError} for faults of disks, locks and connections.
 */
export interface Store {
  /** Creates missing rows of a scope and its user. Gives the number of the user's row, which changes with a deletion. */
  begin(scope: Scope, at: number): Promise<number>;
  /** The number of a user's row; 0: none. */
  userNumber(user: User): Promise<number>;
  /** The number of a stored scope. */
  find(scope: Scope): Promise<number | null>;
  /** Runs `work` while no other process changes anything of the scope's user. */
  hold<T>(scope: Scope, known: KnownScope | null, work: (held: HeldScope) => Promise<T>): Promise<T>;

  loadConversation(scopeId: number, id: ConversationId): Promise<LoadedConversation>;
  /** A conversation's messages up to its newest turn. */
  findHistory(scopeId: number, id: ConversationId): Promise<StoredHistory | null>;
  /** Conversations whose first message has this meaning, at most `most` of those that were used last. */
  conversationsWith(scopeId: number, opening: Digest, most: number): Promise<readonly ConversationId[]>;
  findRequest(scopeId: number, id: RequestId): Promise<AnsweredRequest | null>;
  findServed(scopeId: number, id: RequestId): Promise<ServedRequest | null>;
  /** The request that led to an engine's response, or to the newest one of an engine's conversation. */
  findResponse(scopeId: number, id: string): Promise<RequestId | null>;
  /** Stores which request led to a response, and in which of the engine's conversations; only if the request is stored. */
  keepResponse(scopeId: number, requestId: RequestId, id: string, engineConversation: string | null): Promise<void>;
  /** Requests of a tenant with one of these ids that were not evicted. */
  findLiveRequests(tenant: string, ids: readonly RequestId[]): Promise<readonly LiveRequest[]>;
  /** How many live requests composed after a turn end at this node; counted up to `most`. */
  countServedSince(scopeId: number, leaf: NodeId, turn: TurnId, most: number): Promise<number>;
  findWorker(scopeId: number, turn: TurnId): Promise<string | null>;
  /** The newest of the 32 requests before a turn whose engine reported cached tokens. */
  findReportedBefore(scopeId: number, turn: TurnId): Promise<ServedRequest | null>;
  /** A request's prompt and the one that it continued. */
  findContinued(scopeId: number, id: RequestId): Promise<ContinuedPrompt | null>;
  /** Those of the digests whose sections were sent in this scope, and are still stored. */
  knownSections(scopeId: number, sections: readonly Digest[]): Promise<readonly Digest[]>;

  /**
   * Forgets a user's memory for good, with every agent, in one transaction: its text leaves the snapshots; each conversation ends before the
   * first turn whose section, carried head or line had it, or the first message that quotes it; its id is never sent again.
   *
   * @param texts further texts of it, which no scope may know
   * @param isInSource whether the memory source must delete it too; pending until {@link Store.deletedFromSource}
   */
  forget(
    user: User,
    memoryId: MemoryId,
    of: { readonly texts: readonly string[]; readonly isInSource: boolean; readonly at: number },
  ): Promise<ForgottenMemory>;
  /** Removes what a user's scopes did not use since a time, and memories that nothing refers to any more. Gives how many turns. */
  expire(user: User, before: number): Promise<number>;
  /** Deletes everything of a user, with every agent. Gives how many scopes there were. `isInSource`: as for {@link Store.forget}. */
  deleteUser(user: User, isInSource: boolean, at: number): Promise<number>;
  exportUser(user: User): Promise<ExportedUser>;
  /** What the memory source must still delete of a user. */
  pendingInSource(user: User): Promise<PendingSourceDeletions | null>;
  /** The memory source has deleted a memory, or (null) everything of the user. */
  deletedFromSource(user: User, memoryId: MemoryId | null): Promise<void>;

  readonly prompts: PromptTable;
  readonly writes: WaitingWrites;

  /** Every scope stored for a user: one per agent, and the one without. */
  scopesOf(user: User): Promise<Scope[]>;
  /** Users of all tenants, page by page. `after` 0 begins. */
  users(after: number): Promise<UsersFound>;
  /** Users of a tenant who have, or had, a memory. Reads no other tenant's rows. `after` "" begins. */
  usersWithMemory(tenant: string, memoryId: MemoryId, after: string): Promise<UsersFound<string>>;
  /** Users of all tenants with turns from before a time (milliseconds since the epoch). */
  usersWithOldTurns(before: number, after: number): Promise<UsersFound>;
  usersPendingInSource(after: number): Promise<UsersFound>;

  /** Rejects where the database does not answer. */
  ping(): Promise<void>;
  /** Stores pending writes, and closes. */
  close(): Promise<void>;
}
