/*
 * api/: the contract of a store, and no SQL; `service/` imports this file only.
 * In: scopes, what a commit stores (`ComposeRecord`, `ForgetRecord`, `ExpiryRecord`) and the version that it builds on.
 * Out: loaded scopes, answers and reports; `StaleScopeError` where another process was first, `StoreUnavailableError` for disks and locks.
 */

import type {
  ChatMessage,
  Composition,
  ConversationId,
  Digest,
  FirstTokenTime,
  Label,
  MemoryId,
  NodeId,
  PlacedMemory,
  Plan,
  PromptTokens,
  QuoteSearch,
  ReportGrounds,
  RequestId,
  Scope,
  ScopeChanges,
  StoredPrompt,
  StoredScope,
  Turn,
  TurnId,
  UserId,
  Warning,
} from "../../core/index.js";

/** The state of a scope that a process has loaded. `commits` grows with every commit; a deleted scope's `scopeId` is never given again. */
export interface StoredVersion {
  readonly scopeId: number;
  readonly commits: number;
  /**
   * Checksum of the newest commit's record; 0: there is none. Where all else is equal and this is not, the database went back to an earlier
   * state (a backup, a standby that had not received everything) and was written to since. Absent: not known, and not compared.
   */
  readonly sum?: number | undefined;
}

/** Whether two versions are of one state of one scope; null: never stored. */
export function isSameVersion(a: StoredVersion | null, b: StoredVersion | null): boolean {
  if (a === null || b === null) return a === b;
  if (a.scopeId !== b.scopeId || a.commits !== b.commits) return false;
  return a.sum === undefined || b.sum === undefined || a.sum === b.sum;
}

/** A stored scope, with the version that the next commit has to pass. */
export interface LoadedScope {
  readonly scope: StoredScope;
  /** Null: nothing stored yet. */
  readonly version: StoredVersion | null;
  /** Deletions at the time of reading. A scope that was never stored has no version that a later deletion would change. */
  readonly deletions: DeletionCounts;
  /** When its newest request was composed, milliseconds since the epoch; 0: none was, or it is not known. */
  readonly newestAt: number;
  /** {@link Store.loadConversation} of the one that was asked for, at this version; null: none was, or it was not read. */
  readonly conversation: readonly Turn[] | null;
}

/** What a commit builds on: it is rejected with {@link StaleScopeError} where another process has changed either since. */
export interface CommitBase {
  readonly version: StoredVersion | null;
  readonly deletions: DeletionCounts;
}

/** The part of an answer that cannot be rebuilt from its turns. */
export interface StoredAnswer {
  readonly memories: readonly PlacedMemory[];
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
  /** What the engine's report will be compared with; null in rows from before it was stored. */
  readonly grounds: ReportGrounds | null;
  /** The worker that the prompt was routed to; absent: none. */
  readonly worker?: string | undefined;
}

/** One compose, stored in one transaction. */
export interface ComposeRecord {
  /** What was composed, as far as it is stored; its messages are built again from its turns. */
  readonly composition: Pick<Composition, "turn" | "given" | "restated" | "head" | "sections" | "leaf">;
  readonly delta: ScopeDelta;
  readonly request: { readonly id: RequestId; readonly body: Digest; readonly answer: StoredAnswer };
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** What was said in a conversation's newest epoch, without what memprefix injected. */
export interface StoredHistory {
  /** The instructions of its newest prompt; null where they were erased. */
  readonly head: readonly ChatMessage[] | null;
  /** The messages of its turns, first to last; those before one that was erased are left out. */
  readonly messages: readonly ChatMessage[];
  /** How many of them the newest turn added. */
  readonly newest: number;
  /** Whether `messages` goes back to the epoch's first turn. */
  readonly isWhole: boolean;
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

/** What the engine reported of a request: tokens, milliseconds. Absent: unknown, not zero. */
export interface EngineReport {
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly ttftMs?: number;
}

/** Ids of responses whose prompts were given some memories, and those of all others, least recently used first. */
export interface GivenResponses {
  readonly given: readonly string[];
  readonly others: readonly string[];
}

/** What handling an engine's report reads of a request. */
export interface ServedRequest {
  readonly leaf: NodeId;
  readonly turn: TurnId;
  /** When it was composed, in milliseconds since the epoch. */
  readonly at: number;
  readonly plan: Plan;
  readonly grounds: ReportGrounds | null;
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

/** One page of a walk through a table. */
export interface ScopesFound {
  readonly scopes: readonly Scope[];
  /** The next call's `after`; null at the end. */
  readonly next: number | null;
}

/** Sizes of one scope. */
export interface ScopeCounts {
  readonly conversations: number;
  readonly turns: number;
  readonly requests: number;
}

/** Another process changed the scope since it was loaded. Load it again and retry. */
export class StaleScopeError extends Error {
  override readonly name = "StaleScopeError";
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

/** The disk or a lock made a call fail; nothing was changed. The message quotes nothing of the call. */
export class StoreUnavailableError extends Error {
  override readonly name = "StoreUnavailableError";
  constructor(
    readonly fault: StoreFault,
    options?: ErrorOptions,
  ) {
    super(FAULTS[fault], options);
  }
}

/** Attempts at work on a scope that other processes change meanwhile, before that counts as a lock of theirs. */
export const MAX_ATTEMPTS = 5;

/** Repeats work that begins with a scope as it is then while others are first; again and again, and that is a lock of theirs, to be waited for. */
export async function retriedWhileStale<T>(work: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      if (!(error instanceof StaleScopeError)) throw error;
      if (attempt === MAX_ATTEMPTS) throw new StoreUnavailableError("busy", { cause: error });
    }
  }
}

/**
 * Where scopes are stored. Every implementation passes `test/store/api/store.suite.ts`. A commit that rejects has changed nothing; one that
 * resolves is durable, visible to every later call of any process, and gives the scope's new version. Commits reject with
 * {@link StaleScopeError} where their base is not what is stored. Reads see every commit that resolved before. A store of a service rejects
 * with {@link StoreUnavailableError} for faults of disks, locks and connections.
 */
export interface Store {
  /** Resolves when everything that was handed over so far is stored, or has failed. */
  idle(): Promise<void>;
  /** The stored version of a scope, null for none: to detect other processes' commits before anything is sent. */
  versionOf(scope: Scope): Promise<StoredVersion | null>;
  /** See {@link DeletionCounts}. */
  deletionsOf(tenant: string, userId: UserId): Promise<DeletionCounts>;
  /** @param conversationId a conversation whose turns are wanted too, which takes no question more */
  loadScope(scope: Scope, conversationId?: ConversationId | null): Promise<LoadedScope>;
  /** The last thousand turns of a conversation and those of its newest epoch, oldest first. */
  loadConversation(scope: Scope, id: ConversationId): Promise<Turn[]>;
  /** What this process knows of a conversation's history, at a version of its scope; null: nothing. */
  knownHistory(scope: Scope, id: ConversationId, version: StoredVersion): Promise<StoredHistory | null>;
  /** What was said in a conversation up to its newest turn; null where it has none. */
  findHistory(scope: Scope, id: ConversationId): Promise<StoredHistory | null>;
  commitCompose(scope: Scope, base: CommitBase, record: ComposeRecord): Promise<StoredVersion>;
  commitEviction(
    scope: Scope,
    base: CommitBase,
    delta: ScopeDelta,
    requestIds: readonly RequestId[],
  ): Promise<StoredVersion>;
  /** Removes a turn and its request, unless another turn continues it. */
  commitWithdrawal(scope: Scope, base: CommitBase, delta: ScopeDelta, turn: TurnId): Promise<StoredVersion>;
  /** How many first-token times an engine has reported so far. */
  countFirstTokenTimes(engine: string): Promise<number>;
  /** The last `most` first-token times up to the `count`th, oldest first. */
  firstTokenTimes(engine: string, count: number, most: number): Promise<FirstTokenTime[]>;
  /** Stores one more; those before the last `most` may be dropped. */
  keepFirstTokenTime(engine: string, time: FirstTokenTime, most: number): Promise<void>;
  /** Stores changes of a scope that belong to no request. */
  commitChanges(scope: Scope, base: CommitBase, delta: ScopeDelta): Promise<StoredVersion>;
  /** Stores an engine's report, replacing the request's earlier one, and the changes that it caused. */
  commitReport(
    scope: Scope,
    base: CommitBase,
    delta: ScopeDelta,
    report: { readonly id: RequestId; readonly observed: EngineReport },
  ): Promise<StoredVersion>;
  commitForgetting(scope: Scope, base: CommitBase, record: ForgetRecord): Promise<StoredVersion>;
  /**
   * Finds the texts of all versions of a memory, with any agent of a user, and the messages that quote them or `texts`, in any encoding.
   * Reads in pieces: `pause` is awaited in between.
   */
  findQuotes(
    tenant: string,
    userId: UserId,
    memoryId: MemoryId,
    texts: readonly string[],
    pause: () => Promise<void>,
  ): Promise<FoundQuotes>;
  /**
   * Erases all of a memory's quotes, with every agent, in one transaction. With several agents this comes first: once one of them has
   * forgotten the memory, the others' quotes could not be found again after a kill.
   */
  eraseQuotes(quotes: FoundQuotes): Promise<void>;
  /** Scopes of a tenant that have, or had, a memory, page by page. `after` 0 begins. */
  scopesWithMemory(tenant: string, memoryId: MemoryId, after: number): Promise<ScopesFound>;
  /** Scopes of all tenants with turns from before a time (milliseconds since the epoch), page by page. `after` 0 begins at the oldest. */
  scopesWithOldTurns(before: number, after: number): Promise<ScopesFound>;
  /** At most `most` of a scope's turns after one, split by whether they were used since `before`. `after` 0 begins. */
  scanTurns(scope: Scope, before: number, after: TurnId | 0, most: number): Promise<ScannedTurns>;
  /** Which of some turns were not used since `before`. */
  findExpired(scope: Scope, before: number, among: readonly TurnId[]): Promise<ExpiredTurns>;
  /** Removes turns, and conversations left empty. Whatever continues a turn has to be removed with it, or before. */
  commitExpiry(scope: Scope, base: CommitBase, record: ExpiryRecord): Promise<StoredVersion>;
  /** Removes a scope with everything in it; forgotten memories of its user stay forgotten. */
  commitEnd(scope: Scope, base: CommitBase): Promise<void>;
  /** Checkpoints and truncates the write-ahead log, so that deleted text is not left there. */
  emptyLog(): Promise<void>;
  /**
   * A request answered before; null where there is none, or where messages of it were erased since.
   *
   * @param said what its caller says again: erased messages among these are no obstacle
   */
  findRequest(scope: Scope, id: RequestId, said?: readonly ChatMessage[]): Promise<AnsweredRequest | null>;
  /** The request that led to an engine's response; null where none is kept of this scope. */
  findResponse(scope: Scope, id: string): Promise<RequestId | null>;
  /** A scope's responses by whether their prompts were given memories with some labels, in any of their turns. */
  responsesGiven(scope: Scope, labels: ReadonlySet<Label>): Promise<GivenResponses>;
  /**
   * Keeps which request led to a response, where that request is stored, and counts the one that it continues as used. A tenant's least
   * recently used are removed past `most`, a few later. Keeps nothing where `deletions` are not the stored ones.
   */
  keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    id: string,
    requestId: RequestId,
    continued: string | null,
    most: number,
  ): Promise<void>;
  /** Requests of a tenant's users with one of these ids that were not evicted. */
  findLiveRequests(
    tenant: string,
    ids: readonly RequestId[],
  ): Promise<readonly { scope: Scope; requestId: RequestId; leaf: NodeId; turn: TurnId }[]>;
  /** How many live requests composed after a turn end at this node; counted up to `most`. */
  countServedSince(scope: Scope, leaf: NodeId, turn: TurnId, most: number): Promise<number>;
  /** A request with its report; null where there is none. */
  findServed(scope: Scope, id: RequestId): Promise<ServedRequest | null>;
  /** The worker that a turn's prompt was routed to; null for none. */
  findWorker(scope: Scope, turn: TurnId): Promise<string | null>;
  /** The last of the 32 requests before a turn whose engine reported cached tokens; null for none. */
  findReportedBefore(scope: Scope, turn: TurnId): Promise<ServedRequest | null>;
  /**
   * When the oldest open request (neither reported nor evicted) composed after `since` was composed, in milliseconds since the epoch; null
   * for none. With more than 32 requests since then it may be `since`.
   */
  underWaySince(scope: Scope, since: number): Promise<number | null>;
  /** A request's prompt and the one that it continued; null where there is no such request. */
  findContinued(scope: Scope, id: RequestId): Promise<ContinuedPrompt | null>;
  /** Those of some digests that are of sections that were ever sent in this scope. */
  knownSections(scope: Scope, sections: readonly Digest[]): Promise<readonly Digest[]>;
  counts(scope: Scope): Promise<ScopeCounts>;
  /** Requests of a scope that were not evicted, newest first. */
  liveRequests(scope: Scope, limit: number): Promise<readonly { requestId: RequestId; leaf: NodeId }[]>;
  /** The next users with stored scopes, of all tenants, in a fixed order; empty at the end. Two empty names begin. */
  usersAfter(tenant: string, userId: string): Promise<Pick<Scope, "tenant" | "userId">[]>;
  /** Every scope kept for a user: one per agent, and the one without. */
  scopesOf(tenant: string, userId: UserId): Promise<Scope[]>;
  /**
   * Deletes everything of a user, with every agent. Gives how many scopes there were.
   *
   * @param isInSource whether the memory source has to delete the user too; pending until {@link Store.deletedFromSource}
   */
  deleteUser(tenant: string, userId: UserId, isInSource: boolean): Promise<number>;
  /** What the memory source has yet to delete of a user; null for nothing. */
  pendingInSource(tenant: string, userId: UserId): Promise<PendingSourceDeletions | null>;
  /** The memory source has deleted a memory, or (null) everything that the user had. */
  deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void>;
  /** Users of whom the memory source has yet to delete something. */
  usersPendingInSource(): Promise<Pick<Scope, "tenant" | "userId">[]>;
  /** Everything stored for a user; read in pieces, with `pause` awaited in between. */
  exportUser(tenant: string, userId: UserId, pause: () => Promise<void>): Promise<ExportedUser>;
  /**
   * Resolves when all text deleted so far is out of the files, their free space included; or when that is deferred, to be done later, by
   * another process if need be.
   */
  erased(): Promise<void>;
  /** Rejects where the database does not answer. */
  ping(): Promise<void>;
  /** Stores what was handed over, and closes. */
  close(): Promise<void>;
}

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
  /** Texts of its blocks that have more than those: the date before them is to be erased too. */
  readonly rendered: readonly string[];
  /** What is searched for in each scope, by its number. */
  readonly scopes: ReadonlyMap<number, { readonly search: QuoteSearch }>;
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
  /** Ids of the responses that were not given it; all others are removed. */
  readonly keptResponses: readonly string[];
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
