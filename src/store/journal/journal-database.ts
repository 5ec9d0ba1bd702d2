/*
 * journal/: a store as a journal. Every change of a scope is one record; a scope's state is its snapshot and the records after it.
 * In: calls of `Store`. Out: records, snapshots and shared rows in a `JournalDatabase`, which knows rows and their keys, and not what they say.
 * This file is the contract of such a database; it has one behaviour suite (`test/store/journal/journal-database.suite.ts`), which SQLite's
 * and PostgreSQL's pass.
 */

import type { MemoryId, RequestId, Scope, UserId } from "../../core/index.js";
import type { DeletionCounts, Store, StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";

/** Kinds of records by their number in rows; append only. */
export const RECORD_KINDS = [
  /** Turns that no request is kept of: it was removed, or its id names a later one. */
  "said",
  "composed",
  "reported",
  "evicted",
  /** State that belongs to no request: a memory's new text, what a worker processed. */
  "changed",
  "forgotten",
  "expired",
  "withdrawn",
] as const;

export type RecordKind = (typeof RECORD_KINDS)[number];

/** Kinds of records that have turns. */
export const WITH_TURNS: readonly RecordKind[] = ["said", "composed"];

/** What a record is found by. */
export interface RecordKey {
  /** Grows with the time of writing; never reused. Rows that are rewritten keep it. */
  readonly seq: number;
  readonly scopeId: number;
  /** Counts the scope's records from 1: unique, and without gaps when written. */
  readonly n: number;
  readonly kind: RecordKind;
  /** The scope's newest turn when this was written; 0: none. The turns of a record are those after the record before it. */
  readonly turn: number;
  /** How many turns the record has. */
  readonly turns: number;
  /** 48 bits of the sealed digest of the conversation's id: whoever reads has to compare the id itself. Null: a single prompt, or none. */
  readonly conversation: number | null;
  /** The request that was composed, reported or evicted; null: none. */
  readonly requestId: string | null;
  /** Where the composed prompt's blocks end in the context index; null: none. */
  readonly leaf: number | null;
  /** Milliseconds since the epoch; 0: not known. */
  readonly at: number;
}

/** A record as it is written: its key is completed by the database. */
export type NewRecord = Omit<RecordKey, "seq" | "scopeId" | "n"> & RecordBodies;

/** What a record says, as encoded by the store. */
export interface RecordBodies {
  /** What it changed in the scope's state; null: nothing, or a snapshot has it. */
  readonly changes: string | null;
  /** Turns, messages, answers, reports; null: none. */
  readonly said: string | null;
}

/** A whole record. */
export interface JournalRecord extends RecordKey, RecordBodies {}

/** Which records of a scope are listed. */
export interface RecordFilter {
  /** Of these kinds; absent: all. */
  readonly kinds?: readonly RecordKind[];
  /** Only this conversation's. */
  readonly conversation?: number | undefined;
  /** Only those after this number … */
  readonly after?: number;
  /** … and before this one. */
  readonly before?: number;
  readonly newestFirst?: boolean;
  /** At most so many. */
  readonly most: number;
}

/** Records of a conversation that are read together. */
export const CONVERSATION_PAGE = 64;

/** A scope as it is stored, read in one transaction. */
export interface JournalScope {
  readonly version: StoredVersion | null;
  readonly snapshot: Snapshot | null;
  /** The records after the snapshot that changed the state, in order. */
  readonly behind: readonly Pick<JournalRecord, "n" | "kind" | "changes">[];
  readonly deletions: DeletionCounts;
  /** Ids of memories that the user has forgotten, with any agent. */
  readonly forgotten: readonly MemoryId[];
  /** When its newest request was composed, milliseconds since the epoch; 0: none was, or it is not known. */
  readonly newestAt: number;
  /** The newest records with turns of the conversation that was asked for, newest first, {@link CONVERSATION_PAGE} at most. */
  readonly conversation: readonly JournalRecord[];
}

/** A scope's state after its `n`th record. */
export interface Snapshot {
  readonly n: number;
  readonly data: string;
}

/** A stored scope's own row. */
export interface ScopeRow {
  readonly scopeId: number;
  readonly scope: Scope;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/**
 * What records refer to by its digest: instructions at the head of prompts (JSON of a list of messages, null for one that was erased), or a
 * message that turns were given (JSON of it).
 */
export interface SharedRow {
  readonly digest: SealedDigest;
  readonly messages: string;
}

/** A response of the engine's, and the request that led to it. */
export interface ResponseRow {
  readonly id: string;
  readonly requestId: RequestId;
}

/** What of a record is rewritten; absent fields stay. */
export type RewrittenRecord = Partial<
  Pick<NewRecord, "kind" | "turn" | "turns" | "conversation" | "requestId" | "leaf" | "changes" | "said">
>;

/** One change within a unit. */
export type JournalChange =
  | { readonly kind: "append"; readonly records: readonly NewRecord[] }
  /** Hashes (32 bits, keyed) of ids of memories that the scope did not know before. */
  | { readonly kind: "memories"; readonly hashes: readonly number[] }
  /** Replaces the scope's snapshot; `n` is the unit's last record. */
  | { readonly kind: "snapshot"; readonly data: string }
  /** Keeps shared rows; those that are stored stay as they are. */
  | { readonly kind: "keep-shared"; readonly rows: readonly SharedRow[] }
  | { readonly kind: "remove-shared"; readonly digests: readonly SealedDigest[] }
  /** Rewrites what a record says; absent fields stay. */
  | { readonly kind: "rewrite"; readonly seq: number; readonly to: RewrittenRecord }
  | { readonly kind: "remove"; readonly seqs: readonly number[] }
  /** The user has forgotten a memory, with every agent. */
  | { readonly kind: "forget"; readonly memoryId: MemoryId }
  /** Removes all of the scope's responses but these. */
  | { readonly kind: "keep-responses"; readonly ids: readonly string[] }
  | { readonly kind: "end" };

/** Deletions that a unit counts: see `DeletionCounts`. `memoryId` null: the whole user. */
export interface CountedDeletion {
  readonly memoryId: MemoryId | null;
  readonly isInSource: boolean;
}

/**
 * What is written in one transaction. It is applied where `version` and `deletions` are what is stored, else rejected with
 * `StaleScopeError`. A version of null: the scope is created.
 */
export interface JournalUnit {
  readonly scope: Scope;
  readonly version: StoredVersion | null;
  /** Null: not compared. */
  readonly deletions: DeletionCounts | null;
  readonly changes: readonly JournalChange[];
  readonly deletion?: CountedDeletion;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Texts that this unit removed or replaced, so that remains of them can be found in files; absent: none. */
  readonly erased?: readonly string[];
}

/** The outcome of a unit. */
export interface WrittenUnit {
  /** Null: the unit ended the scope. */
  readonly version: StoredVersion | null;
}

/** A page of a walk through all scopes. */
export interface ScopeRowsFound {
  readonly scopes: readonly ScopeRow[];
  /** The next call's `after`; null at the end. */
  readonly next: number | null;
}

/** What a store answers as its database does; of a server of its own, nothing is done for the log and for erased texts. */
export type DirectCalls = Pick<
  Store,
  | ("idle" | "emptyLog" | "erased" | "ping" | "close" | "versionOf" | "deletionsOf")
  | ("countFirstTokenTimes" | "firstTokenTimes" | "keepFirstTokenTime")
  | ("deleteUser" | "usersAfter" | "pendingInSource" | "deletedFromSource" | "usersPendingInSource")
>;

/**
 * Where a journal is stored. Writes of all scopes that are handed over together share a transaction; each resolves when it is durable, and
 * those of one scope are applied in order. Reads see every write that resolved before. Rejects with `StoreUnavailableError` for faults.
 */
export interface JournalDatabase extends DirectCalls {
  /** The key that seals digests, 32 bytes. */
  readonly sealKey: Buffer;

  write(unit: JournalUnit): Promise<WrittenUnit>;
  /** Several units in one transaction: all are applied, or none. */
  writeTogether(units: readonly JournalUnit[]): Promise<readonly WrittenUnit[]>;

  /** @param conversation the number of a conversation whose records are wanted too */
  load(scope: Scope, conversation?: number): Promise<JournalScope>;
  scopesOf(tenant: string, userId: UserId): Promise<readonly ScopeRow[]>;
  forgottenOf(tenant: string, userId: UserId): Promise<readonly MemoryId[]>;

  /** Keys of a scope's records, in order of their numbers. */
  list(scopeId: number, filter: RecordFilter): Promise<readonly RecordKey[]>;
  /** Whole records by their `seq`, in that order; those that are gone are left out. */
  read(seqs: readonly number[]): Promise<readonly JournalRecord[]>;
  /** Keys of the records that have these turns of a scope, in order of their numbers. */
  withTurns(scopeId: number, turns: readonly number[]): Promise<readonly RecordKey[]>;
  /** Keys of all records of requests with these ids, of a tenant, or of one scope; in order of scopes and numbers. */
  withRequests(
    of: { readonly tenant: string } | { readonly scopeId: number },
    ids: readonly string[],
  ): Promise<readonly RecordKey[]>;
  /** Scopes by their numbers; those that are gone are left out. */
  scopesById(ids: readonly number[]): Promise<readonly ScopeRow[]>;
  /** How many records with turns, turns and conversations a scope has. */
  counts(
    scopeId: number,
  ): Promise<{ readonly requests: number; readonly turns: number; readonly conversations: number }>;
  /** A scope's shared rows with these digests, in any order … */
  shared(scopeId: number, digests: readonly SealedDigest[]): Promise<readonly SharedRow[]>;
  /** … and the digests of all. */
  sharedDigests(scopeId: number): Promise<readonly SealedDigest[]>;

  /** Scopes of a tenant with one of whose memories' hashes this is, page by page. `after` 0 begins. */
  withMemory(tenant: string, hash: number, after: number): Promise<ScopeRowsFound>;
  /** Scopes with records that have turns, written before a time, page by page, oldest first. `after` 0 begins. */
  writtenBefore(before: number, after: number): Promise<ScopeRowsFound>;

  /** See `Store.findResponse`. */
  findResponse(scopeId: number, id: string): Promise<RequestId | null>;
  /** Least recently used first. */
  responsesOf(scopeId: number): Promise<readonly ResponseRow[]>;
  /** See `Store.keepResponse`. */
  keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    row: ResponseRow,
    continued: string | null,
    most: number,
  ): Promise<void>;
}
