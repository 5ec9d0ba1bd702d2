/*
 * api/: the contract of a store, and no SQL; `service/` imports this file only.
 * In: scopes, what a commit stores (`ComposeRecord`, `ForgetRecord`, `ExpiryRecord`) and the version that it builds on.
 * Out: loaded scopes, answers and reports; `StaleScopeError` where another process was first, `StoreUnavailableError` for disks and locks.
 * `user-data.ts` holds what is exported, forgotten, deleted and expires; `store-faults.ts` names SQLite's errors.
 */

import type {
  ChatMessage,
  ComposedPrompt,
  ConversationId,
  Digest,
  FirstTokenTime,
  MemoryId,
  NodeId,
  PlacedMemory,
  Plan,
  ReportGrounds,
  RequestId,
  RestatedTurn,
  Scope,
  ScopeChanges,
  StoredScope,
  Turn,
  TurnId,
  UserId,
  Warning,
} from "../../core/index.js";
import type {
  DeletionCounts,
  ExpiredTurns,
  ExpiryRecord,
  ExportedUser,
  ForgetRecord,
  FoundQuotes,
  PendingSourceDeletions,
  ScannedTurns,
} from "./user-data.js";

export type * from "./user-data.js";

/** Which state of a scope a process has loaded: grows with every commit, and a deleted scope's never comes back. */
export interface StoredVersion {
  readonly scopeId: number;
  readonly commits: number;
}

/** A scope as it is stored, with the version that the next commit has to name. */
export interface LoadedScope {
  readonly scope: StoredScope;
  /** Null: nothing is stored yet. */
  readonly version: StoredVersion | null;
}

/** The part of an answer that cannot be built again from the turns. */
export interface StoredAnswer {
  readonly memories: readonly PlacedMemory[];
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
  /** What the engine's report of it will be judged by; null in answers of before it was kept. */
  readonly grounds: ReportGrounds | null;
}

/** One compose, to be stored whole or not at all. */
export interface ComposeRecord {
  readonly changes: ScopeChanges;
  readonly turn: Turn;
  readonly given: readonly ChatMessage[];
  /** Turns that it goes on from and that were said again with it, first to last. */
  readonly restated: readonly RestatedTurn[];
  readonly head: readonly ChatMessage[];
  /** Digests of the sections that the turn sent and that later ones replay. */
  readonly sections: readonly Digest[];
  readonly request: {
    readonly id: RequestId;
    readonly leaf: NodeId;
    readonly body: Digest;
    readonly answer: StoredAnswer;
  };
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A request that was answered before. */
export interface AnsweredRequest {
  readonly body: Digest;
  readonly answer: StoredAnswer;
  readonly head: readonly ChatMessage[];
  /** The turns of its prompt, first to last, each with the plain messages it added. */
  readonly turns: readonly { readonly turn: Turn; readonly given: readonly ChatMessage[] }[];
}

/** What the engine reported of a request. Token counts; absent means unknown, not zero. */
export interface EngineReport {
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly ttftMs?: number;
}

/** A request as far as an engine's report of it needs it. */
export interface ServedRequest {
  readonly leaf: NodeId;
  readonly turn: TurnId;
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  readonly plan: Plan;
  readonly grounds: ReportGrounds | null;
  readonly evicted: boolean;
  /** Everything that the engine reported so far; null for nothing. */
  readonly observed: EngineReport | null;
}

/**
 * A prompt among those composed before it, for explaining it. Bounded: the 200 newest of the scope before it, the 100 newest of its own
 * conversation before it, and what it goes on from; of other conversations' prompts only as many as 5,000 turns make up.
 */
export interface PromptHistory {
  readonly prompt: ComposedPrompt;
  /** Newest first. */
  readonly earlier: readonly ComposedPrompt[];
  /** Whether those are all the scope's earlier prompts. */
  readonly isComplete: boolean;
}

/** Scopes found on the way through all of a table. */
export interface ScopesFound {
  readonly scopes: readonly Scope[];
  /** What the next call goes on after; null at the end. */
  readonly next: number | null;
}

/** Sizes of one scope. */
export interface ScopeCounts {
  readonly conversations: number;
  readonly turns: number;
  readonly requests: number;
}

/** The scope was changed by another process since it was loaded. Load it again and repeat. */
export class StaleScopeError extends Error {
  override readonly name = "StaleScopeError";
}

/** Why a store cannot do its work: another process holds it, there is no room, it cannot be written, the disk fails, it is damaged. */
export type StoreFault = "busy" | "full" | "read-only" | "failing" | "damaged";

const FAULTS: Readonly<Record<StoreFault, string>> = {
  busy: "another process holds the database locked",
  full: "the disk is full",
  "read-only": "the database cannot be written: its file, directory or file system is read-only",
  failing: "the disk fails: the database could not be read or written",
  damaged: "the database is damaged: `memstem check` says where",
};

/** What was asked for could not be done, for a reason outside of it, and nothing of it was. Never quotes what was asked for. */
export class StoreUnavailableError extends Error {
  override readonly name = "StoreUnavailableError";
  constructor(
    readonly fault: StoreFault,
    options?: ErrorOptions,
  ) {
    super(FAULTS[fault], options);
  }
}

/**
 * Where scopes live. Every implementation passes `test/store/api/store.suite.ts`. Calls are synchronous: a commit that threw has changed
 * nothing, and one that returned is what every later call sees. It is stored for good when it returns; those of composes and reports when
 * {@link Store.settled} says so. The commits throw {@link StaleScopeError} where `version` is not the stored one, and
 * return the new version. A store that is opened for a service throws {@link StoreUnavailableError} where its disk does not play along.
 */
export interface Store {
  /**
   * Resolves when every commit so far is stored for good: not before is anything answered of it. Rejects where it could not be: then
   * composes and reports since the last time that it resolved may be gone, and scopes have to be loaded again.
   */
  readonly settled: Promise<void>;

  /** Throws where nothing can be committed now: another process is writing, or the file cannot be written at all. Stores nothing. */
  begin(): void;
  /** The version of a scope now; null for one that is not stored. For noticing what other processes did, before anything is sent. */
  versionOf(scope: Scope): StoredVersion | null;
  /** See {@link DeletionCounts}. */
  deletionsOf(tenant: string, userId: UserId): DeletionCounts;
  loadScope(scope: Scope): LoadedScope;
  /** A conversation's turns, oldest first. */
  loadConversation(scope: Scope, id: ConversationId): Turn[];
  commitCompose(scope: Scope, version: StoredVersion | null, record: ComposeRecord): StoredVersion;
  commitEviction(
    scope: Scope,
    version: StoredVersion | null,
    changes: ScopeChanges,
    requestIds: readonly RequestId[],
  ): StoredVersion;
  /** A turn goes with its request, as if it had never been composed, unless another goes on from it. */
  commitWithdrawal(scope: Scope, version: StoredVersion | null, changes: ScopeChanges, turn: TurnId): StoredVersion;
  /** How many first-token times an engine has reported so far. */
  countFirstTokenTimes(engine: string): number;
  /** Its first-token times up to the `count`th, the last `most` of them, oldest first. */
  firstTokenTimes(engine: string, count: number, most: number): FirstTokenTime[];
  /** Keeps one more; of those before the last `most` none needs to stay. */
  keepFirstTokenTime(engine: string, time: FirstTokenTime, most: number): void;
  /** Keeps what changed in a scope beside any request. */
  commitChanges(scope: Scope, version: StoredVersion | null, changes: ScopeChanges): StoredVersion;
  /** Keeps what the engine reported of a request, in place of what it reported before, and what that corrected. */
  commitReport(
    scope: Scope,
    version: StoredVersion | null,
    changes: ScopeChanges,
    report: { readonly id: RequestId; readonly observed: EngineReport },
  ): StoredVersion;
  commitForgetting(scope: Scope, version: StoredVersion | null, record: ForgetRecord): StoredVersion;
  /**
   * What a memory says, or said, with any agent of a user, or in `texts`, and where their applications quoted it, in any encoding. Reads in
   * pieces: `pause` is awaited between two.
   */
  findQuotes(
    tenant: string,
    userId: UserId,
    memoryId: MemoryId,
    texts: readonly string[],
    pause: () => Promise<void>,
  ): Promise<FoundQuotes>;
  /**
   * Erases all of a memory's quotes, with every agent, in one transaction. To be done first where there are several agents: once one of them
   * has forgotten the memory, nobody could find the others' quotes after a kill.
   */
  eraseQuotes(quotes: FoundQuotes): void;
  /** Scopes of a tenant that have, or had, a memory; looks through some of them and says where to go on. `after` 0 begins. */
  scopesWithMemory(tenant: string, memoryId: MemoryId, after: number): ScopesFound;
  /** Scopes with turns from before a time (milliseconds since the epoch), of all tenants; `after` 0 begins at the oldest. */
  scopesWithOldTurns(before: number, after: number): ScopesFound;
  /** A scope's turns after one, at most so many, told apart by whether anybody used them since a time. `after` 0 begins. */
  scanTurns(scope: Scope, before: number, after: TurnId | 0, most: number): ScannedTurns;
  /** Those of some turns that nobody used since a time. */
  findExpired(scope: Scope, before: number, among: readonly TurnId[]): ExpiredTurns;
  /** Turns go, and conversations of which nothing is left. What goes on from a turn has to go with it, or before. */
  commitExpiry(scope: Scope, version: StoredVersion | null, record: ExpiryRecord): StoredVersion;
  /** A scope goes with everything in it; what was forgotten of its user stays forgotten. */
  commitEnd(scope: Scope, version: StoredVersion): void;
  /** Writes the log back into the file and empties it, so that what was dropped is not read there. */
  emptyLog(): void;
  /** A request answered before; null where there is none, or where what it quoted was erased since. */
  findRequest(scope: Scope, id: RequestId): AnsweredRequest | null;
  /** Requests of a tenant that have one of these ids and were not evicted, whoever the user is. */
  findLiveRequests(
    tenant: string,
    ids: readonly RequestId[],
  ): { scope: Scope; requestId: RequestId; leaf: NodeId; turn: TurnId }[];
  /** How many requests that were not evicted ended at this node and were composed after a turn; counts no further than `most`. */
  countServedSince(scope: Scope, leaf: NodeId, turn: TurnId, most: number): number;
  /** A request and what was reported of it; null where there is none. */
  findServed(scope: Scope, id: RequestId): ServedRequest | null;
  /** Of the requests composed before a turn the last one whose engine said how much was cached; of the 32 before it, null for none. */
  findReportedBefore(scope: Scope, turn: TurnId): ServedRequest | null;
  /**
   * Since when requests of this scope have been under way that were composed after `since`, in milliseconds since the epoch: neither
   * reported nor evicted. Null for none. Where there are more than 32 it may be `since`.
   */
  underWaySince(scope: Scope, since: number): number | null;
  /** A request's prompt and those composed before it that it may be compared with; null where there is no such request. */
  findPromptHistory(scope: Scope, id: RequestId): PromptHistory | null;
  /** Whether a section with this digest was ever sent to this scope. */
  knowsSection(scope: Scope, section: Digest): boolean;
  counts(scope: Scope): ScopeCounts;
  /** Requests of a scope that were not evicted, newest first. */
  liveRequests(scope: Scope, limit: number): { requestId: RequestId; leaf: NodeId }[];
  /** Every scope kept for a user: one per agent, and the one without. */
  scopesOf(tenant: string, userId: UserId): Scope[];
  /**
   * Everything kept for a user, with every agent, is gone when this returns. Returns how many scopes there were.
   *
   * @param isInSource whether the memory source has to delete the user too; pending until {@link Store.deletedFromSource}
   */
  deleteUser(tenant: string, userId: UserId, isInSource: boolean): number;
  /** What the memory source has yet to delete of a user; null for nothing. */
  pendingInSource(tenant: string, userId: UserId): PendingSourceDeletions | null;
  /** The memory source has deleted a memory, or (null) everything that the user had. */
  deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): void;
  /** Users of whom the memory source has yet to delete something. */
  usersPendingInSource(): Pick<Scope, "tenant" | "userId">[];
  /** Everything kept for a user; read in pieces, with `pause` awaited between two. */
  exportUser(tenant: string, userId: UserId, pause: () => Promise<void>): Promise<ExportedUser>;
  /**
   * Resolves when all text that was deleted so far is out of the files, also where nothing reads it; or when that is put off: then it is
   * done later, by another process if need be.
   */
  erased(): Promise<void>;
  /** Whether the database answers; throws where it does not. */
  ping(): void;
  close(): void;
}
