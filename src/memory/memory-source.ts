/*
 * Sources of memories, with one interface. This file is the contract; `service` and `eval` import little else of the room.
 * Enters: a scope (tenant, user, agent) with a query, or memories to keep or delete.
 * Leaves: memories, best first, or a `MemorySourceError`, which quotes neither memory nor key.
 */

import { setTimeout as passed } from "node:timers/promises";
import type { RetrievedMemory } from "../core/blocks/context-block.js";
import { withoutFilePaths } from "../core/text/file-paths.js";
import type { AgentId, MemoryId, Scope } from "../core/text/ids.js";

/** `topK`: 1 to 1,000. */
export interface MemoryQuery {
  readonly scope: Scope;
  readonly query: string;
  readonly topK: number;
  readonly options?: SearchOptions | undefined;
}

/** Mem0's options of a search; nullish: its default. Memories that belong to a run are never found. */
export interface SearchOptions {
  /** Conditions on metadata in Mem0's form, which name no user, agent, run or application. */
  readonly filters?: Readonly<Record<string, unknown>> | null | undefined;
  /** Whether results are checked against `filters` again, as far as they show metadata: some filters are the operator's. */
  readonly isChecked?: boolean;
  readonly showExpired?: boolean | null | undefined;
  readonly rerank?: boolean | null | undefined;
  /** Where relative times start: a date, or seconds since the epoch. Default: now. */
  readonly referenceDate?: string | number | null | undefined;
  /** Least similarity to the query, 0 to 1. */
  readonly threshold?: number | null | undefined;
}

export interface NewMemory {
  readonly text: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Messages of one or more exchanges, with Mem0's options of an `add`. */
export interface MessageAddition {
  readonly messages: readonly AddedMessage[];
  readonly runId?: string | null | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** Whether a model extracts the memories. Default: Mem0's, true. */
  readonly infer?: boolean | null | undefined;
}

export interface AddedMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export interface KeptMemory {
  readonly id: MemoryId;
  readonly text: string;
  readonly agentId: AgentId | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** As the source writes times; null if it keeps none. */
  readonly createdAt: string | null;
  readonly updatedAt: string | null;
}

/** What a source has under some ids: `kept` as they are now, `gone` if it says so. Unknown ids are in neither. */
export interface CurrentMemories {
  readonly kept: readonly RetrievedMemory[];
  readonly gone: readonly MemoryId[];
}

export type MemorySourceFailure =
  | { readonly kind: "timeout"; readonly afterMs: number }
  | { readonly kind: "aborted" }
  | { readonly kind: "unreachable"; readonly cause: string }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly body: string;
      /** The source's own words, as one line that may be shown to the caller; null or absent: none. */
      readonly says?: string | null;
      /** When to try again, as the source says; null or absent: it does not say. */
      readonly retryAfterMs?: number | null;
    }
  | { readonly kind: "unreadable"; readonly cause: string }
  | { readonly kind: "unsupported"; readonly operation: string };

/** The message names the source and is safe to show: no memory text, no key, no file path. */
export class MemorySourceError extends Error {
  override readonly name = "MemorySourceError";
  constructor(
    readonly source: string,
    readonly failure: MemorySourceFailure,
  ) {
    super(describeFailure(source, failure));
  }

  /** The message without the source's own words, which may name the caller's user. */
  get unquoted(): string {
    const { failure } = this;
    return failure.kind === "refused"
      ? describeFailure(this.source, { ...failure, says: null })
      : describeFailure(this.source, failure);
  }
}

function describeFailure(source: string, failure: MemorySourceFailure): string {
  switch (failure.kind) {
    case "timeout":
      return `memory source "${source}" did not answer within ${failure.afterMs} ms`;
    case "aborted":
      return `memory source "${source}" was aborted by the caller`;
    case "unreachable":
      return `memory source "${source}" could not be reached: ${withoutFilePaths(failure.cause)}`;
    case "refused":
      return `memory source "${source}" answered with status ${failure.status}${failure.says ? `: ${failure.says}` : ""}`;
    case "unreadable":
      return `memory source "${source}" gave an unreadable answer: ${withoutFilePaths(failure.cause)}`;
    case "unsupported":
      return `memory source "${source}" cannot ${failure.operation}`;
  }
}

/** Every implementation passes `test/memory/memory-source.suite.ts`. Methods reject with {@link MemorySourceError} only, early if `signal` aborts. */
export interface MemorySource {
  readonly name: string;
  /** Whether memprefix itself keeps the memories: forgetting then deletes them. Otherwise memprefix only stops sending them. */
  readonly owned: boolean;
  /** Loads packages and a model before the first call does. After a failure the next call tries again. */
  load?(): Promise<void>;
  /** The user's id in a source that memprefix does not own. Throws for a name that the source could not be given. */
  sourceUserId?(scope: Pick<Scope, "tenant" | "userId">): string;
  /** The most relevant memories, best first, at most `topK`; ended ones among them do not count. */
  search(query: MemoryQuery, signal: AbortSignal): Promise<readonly RetrievedMemory[]>;
  /** What became of memories found before; those that break `filters` now are in neither list. Present if another system may change them. */
  current?(
    scope: Scope,
    ids: readonly MemoryId[],
    filters: SearchOptions["filters"],
    signal: AbortSignal,
  ): Promise<CurrentMemories>;
  /** Keeps memories unmodified, one after the other; returns those with known ids. After a rejection half way, the earlier ones are kept. */
  add(scope: Scope, memories: readonly NewMemory[], signal: AbortSignal): Promise<readonly RetrievedMemory[]>;
  /** Keeps what the source's model extracts from messages; returns the memories with known ids. Absent: it has no model. */
  addMessages?(scope: Scope, addition: MessageAddition, signal: AbortSignal): Promise<readonly RetrievedMemory[]>;
  /** False if the memory does not exist in this scope (without an agent: for this user). */
  delete(scope: Scope, id: MemoryId, signal: AbortSignal): Promise<boolean>;
  /** Deletes everything of this user, whatever the agent. */
  deleteUser(scope: Pick<Scope, "tenant" | "userId">, signal: AbortSignal): Promise<void>;
  /** All memories of a user, whatever the agent, oldest first. Present if memprefix owns the memories. */
  list?(scope: Pick<Scope, "tenant" | "userId">, signal: AbortSignal): Promise<readonly KeptMemory[]>;
  /** Waits for pending writes; every later call rejects as unreachable. */
  close(): Promise<void>;
}

export interface SourceCall {
  readonly name: "search" | "current" | "add" | "delete" | "deleteUser" | "list";
  readonly scope: Pick<Scope, "tenant" | "userId">;
  readonly id?: MemoryId;
}

export type AroundCall = <T>(
  call: SourceCall,
  signal: AbortSignal,
  make: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

/** The same source, with `around` called for every call. */
export function wrappedSource(source: MemorySource, around: AroundCall): MemorySource {
  const current = source.current?.bind(source);
  const list = source.list?.bind(source);
  const addMessages = source.addMessages?.bind(source);
  return {
    name: source.name,
    owned: source.owned,
    ...(source.load && { load: source.load.bind(source) }),
    ...(source.sourceUserId && { sourceUserId: source.sourceUserId.bind(source) }),
    search: (query, signal) =>
      around({ name: "search", scope: query.scope }, signal, (own) => source.search(query, own)),
    ...(current && {
      current: (scope, ids, filters, signal) =>
        around({ name: "current", scope }, signal, (own) => current(scope, ids, filters, own)),
    }),
    add: (scope, memories, signal) => around({ name: "add", scope }, signal, (own) => source.add(scope, memories, own)),
    ...(addMessages && {
      addMessages: (scope, addition, signal) =>
        around({ name: "add", scope }, signal, (own) => addMessages(scope, addition, own)),
    }),
    delete: (scope, id, signal) =>
      around({ name: "delete", scope, id }, signal, (own) => source.delete(scope, id, own)),
    deleteUser: (scope, signal) =>
      around({ name: "deleteUser", scope }, signal, (own) => source.deleteUser(scope, own)),
    ...(list && { list: (scope, signal) => around({ name: "list", scope }, signal, (own) => list(scope, own)) }),
    close: () => source.close(),
  };
}

export interface DeadlineLimits {
  /** A search, or a look at memories found before: the prompt waits for it. */
  readonly searchMs: number;
  /** For a whole call that adds, deletes or lists: usually longer, because no first token waits for it. */
  readonly writeMs: number;
}

/**
 * The same source, with a timeout for every call but `close`, and a second try of a search of another system within it. Rejects with {@link MemorySourceError} `timeout`, or `aborted` when the caller's
 * signal aborts, even if the source ignores signals. A write that timed out may have happened.
 */
export function withDeadline(source: MemorySource, { searchMs, writeMs }: DeadlineLimits): MemorySource {
  return wrappedSource(source, ({ name }, signal, make) => {
    const isTriedTwice = name === "search" && !source.owned;
    const limitMs = name === "search" || name === "current" ? searchMs : writeMs;
    return within(source.name, limitMs, signal, isTriedTwice ? (own) => triedTwice(make, limitMs, own) : make);
  });
}

/** Statuses that pass: too slow, too early, too many, a gateway's, overload; and a redirect that was not followed. */
const PASSING: ReadonlySet<number> = new Set([307, 308, 408, 425, 429, 502, 503, 504]);
const PAUSE_MS = 100;

/** Calls again if the first failure may pass, unless that is later than the whole call may take. */
async function triedTwice<T>(
  make: (signal: AbortSignal) => Promise<T>,
  limitMs: number,
  signal: AbortSignal,
): Promise<T> {
  const start = performance.now();
  try {
    return await make(signal);
  } catch (error) {
    const pauseMs = error instanceof MemorySourceError ? pauseAfter(error.failure) : null;
    if (pauseMs === null || performance.now() - start + pauseMs >= limitMs) throw error;
    await passed(pauseMs, undefined, { signal });
    return await make(signal);
  }
}

/** Milliseconds to wait before a second try; null: it would fail too. */
function pauseAfter(failure: MemorySourceFailure): number | null {
  if (failure.kind === "unreachable") return PAUSE_MS;
  if (failure.kind !== "refused" || !PASSING.has(failure.status)) return null;
  return failure.retryAfterMs ?? PAUSE_MS;
}

/** Settles as a call does, or rejects with {@link MemorySourceError} `aborted` or `timeout`. A later outcome is dropped. */
export async function within<T>(
  name: string,
  afterMs: number | null,
  outer: AbortSignal,
  call: (inner: AbortSignal) => Promise<T>,
): Promise<T> {
  if (outer.aborted) throw new MemorySourceError(name, { kind: "aborted" });
  const inner = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let abandon = () => {};
  const end = new Promise<never>((_, reject) => {
    const stop = (error: MemorySourceError) => {
      reject(error);
      inner.abort(error);
    };
    abandon = () => stop(new MemorySourceError(name, { kind: "aborted" }));
    outer.addEventListener("abort", abandon, { once: true });
    if (afterMs === null) return;
    timer = setTimeout(() => stop(new MemorySourceError(name, { kind: "timeout", afterMs })), afterMs);
  });
  try {
    // `race` listens to both, so a call that fails after the timeout is no unhandled rejection.
    return await Promise.race([call(inner.signal), end]);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener("abort", abandon);
  }
}
