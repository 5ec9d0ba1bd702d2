/*
 * Where memories come from: Mem0 inside this process, Mem0's hosted platform, or its self-hosted server, with one interface.
 *
 * Enters: a scope (tenant, user, agent) with a query, or memories to keep or delete.
 * Leaves: memories, best first, or a `MemorySourceError` that says how the source failed and quotes neither memory nor key.
 * This file is the contract, which `service` and `eval` may import; nothing else of the room is known to them but Mem0's answer shapes.
 */

import type { RetrievedMemory } from "../core/blocks/context-block.js";
import { withoutFilePaths } from "../core/text/file-paths.js";
import type { AgentId, MemoryId, Scope } from "../core/text/ids.js";

/** What to search for, in whose memories. */
export interface MemoryQuery {
  readonly scope: Scope;
  readonly query: string;
  /** Most memories wanted, 1 to 1,000. */
  readonly topK: number;
  /** Absent: Mem0's own defaults. */
  readonly options?: SearchOptions | undefined;
}

/** Mem0's own options of a search. Nullish: its default. Whatever they are, memories that belong to a run are not found. */
export interface SearchOptions {
  /** Conditions on metadata in Mem0's form, which name no user, agent, run or application. */
  readonly filters?: Readonly<Record<string, unknown>> | null | undefined;
  /** Whether what was found is checked once more for `filters`, as far as it shows its metadata: where some of them are the operator's. */
  readonly isChecked?: boolean;
  /** Whether those are given too whose expiration date is past. */
  readonly showExpired?: boolean | null | undefined;
  /** Whether Mem0 ranks what it found once more. */
  readonly rerank?: boolean | null | undefined;
  /** From when relative times are read: a date, or seconds since the epoch. Default: from now. */
  readonly referenceDate?: string | number | null | undefined;
  /** Least similarity to the query, 0 to 1. */
  readonly threshold?: number | null | undefined;
}

/** A memory to keep, for `POST /memories`. */
export interface NewMemory {
  readonly text: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** A memory as a source keeps it. */
export interface KeptMemory {
  readonly id: MemoryId;
  readonly text: string;
  /** Null: no agent. */
  readonly agentId: AgentId | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** As the source writes times; null where it keeps none. */
  readonly createdAt: string | null;
  readonly updatedAt: string | null;
}

/** What a source has under some ids. What it does not say anything of is in neither list. */
export interface CurrentMemories {
  /** As they are now. */
  readonly kept: readonly RetrievedMemory[];
  /** Those that it says it does not have. */
  readonly gone: readonly MemoryId[];
}

/** Why a memory source gave no answer. */
export type MemorySourceFailure =
  | { readonly kind: "timeout"; readonly afterMs: number }
  /** The caller's own signal aborted. */
  | { readonly kind: "aborted" }
  | { readonly kind: "unreachable"; readonly cause: string }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly body: string;
      /** What the source says of it, as one line that may be shown to the caller; null or absent: nothing. */
      readonly says?: string | null;
    }
  | { readonly kind: "unreadable"; readonly cause: string }
  | { readonly kind: "unsupported"; readonly operation: string };

/** A memory source failed. `failure` says how; the message names the source and is safe to show (no memory text, no key, no path of a file). */
export class MemorySourceError extends Error {
  override readonly name = "MemorySourceError";
  constructor(
    readonly source: string,
    readonly failure: MemorySourceFailure,
  ) {
    super(describeFailure(source, failure));
  }

  /** The message without what the source said itself, which may name the caller's user. */
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

/**
 * Where memories come from. Every implementation passes `test/memory/memory-source.suite.ts`.
 * A method rejects with {@link MemorySourceError} and nothing else; it stops early when `signal` aborts.
 */
export interface MemorySource {
  /** Short name for logs, warnings and `/healthz`. */
  readonly name: string;
  /**
   * True where memprefix itself keeps the memories (the embedded source): forgetting then reaches into the source too. False where
   * another system owns them: forgetting there is that system's, and memprefix only never sends them again.
   */
  readonly owned: boolean;
  /**
   * Loads now what the first call would load: packages, a model. There where something is. A failure is tried again by the next call.
   */
  load?(): Promise<void>;
  /** The user's id in a source that memprefix does not own, under which it is searched. There where it may differ from the caller's. */
  sourceUserId?(scope: Pick<Scope, "tenant" | "userId">): string;
  /** The memories most relevant to the query, best first, at most `topK`; those among them that have ceased to hold do not count. */
  search(query: MemoryQuery, signal: AbortSignal): Promise<readonly RetrievedMemory[]>;
  /**
   * What became of memories that a search found before. There where another system, which owns them, may change and delete them.
   *
   * @param filters conditions of every search; of a memory that breaks them by now nothing is said. Nullish: none
   */
  current?(
    scope: Scope,
    ids: readonly MemoryId[],
    filters: SearchOptions["filters"],
    signal: AbortSignal,
  ): Promise<CurrentMemories>;
  /**
   * Keeps new memories as they are (no extraction), one after the other; gives back those whose ids are known, in order. A source
   * that stores later (the hosted platform queues) gives back fewer, or none. When it rejects half way, the earlier ones are kept.
   */
  add(scope: Scope, memories: readonly NewMemory[], signal: AbortSignal): Promise<readonly RetrievedMemory[]>;
  /** Deletes one memory of this scope (without an agent: of this user); false where it does not exist or is another's. */
  delete(scope: Scope, id: MemoryId, signal: AbortSignal): Promise<boolean>;
  /** Deletes everything kept for this user, whatever the agent. */
  deleteUser(scope: Pick<Scope, "tenant" | "userId">, signal: AbortSignal): Promise<void>;
  /** Everything kept for this user, whatever the agent, oldest first. There where memprefix owns the memories. */
  list?(scope: Pick<Scope, "tenant" | "userId">, signal: AbortSignal): Promise<readonly KeptMemory[]>;
  /** Waits for pending writes and closes files; every later call rejects as unreachable. */
  close(): Promise<void>;
}

/** A call of a source. */
export interface SourceCall {
  readonly name: "search" | "current" | "add" | "delete" | "deleteUser" | "list";
  readonly scope: Pick<Scope, "tenant" | "userId">;
  /** The memory to delete. */
  readonly id?: MemoryId;
}

/** Makes a source's call, with something before, beside or after it. */
export type AroundCall = <T>(
  call: SourceCall,
  signal: AbortSignal,
  make: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

/** The same source, each of whose calls `around` makes. */
export function wrappedSource(source: MemorySource, around: AroundCall): MemorySource {
  const current = source.current?.bind(source);
  const list = source.list?.bind(source);
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
    delete: (scope, id, signal) =>
      around({ name: "delete", scope, id }, signal, (own) => source.delete(scope, id, own)),
    deleteUser: (scope, signal) =>
      around({ name: "deleteUser", scope }, signal, (own) => source.deleteUser(scope, own)),
    ...(list && { list: (scope, signal) => around({ name: "list", scope }, signal, (own) => list(scope, own)) }),
    close: () => source.close(),
  };
}

/** How long a source may take, in milliseconds. */
export interface DeadlineLimits {
  /** A search, or a look at memories found before: the prompt waits for it. */
  readonly searchMs: number;
  /** Adding, deleting and listing, where nobody waits for a first token: usually larger. One limit a call, however many memories it adds. */
  readonly writeMs: number;
}

/** A longer delay overflows the timer, which then fires at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

/**
 * The same source, with a time-out for every call: it rejects with {@link MemorySourceError} `timeout` after its time, and with `aborted`
 * when the caller's signal aborts, even if the source ignores signals. The source's own signal is aborted as well; a late answer is
 * dropped. A write that timed out may have happened. `close` has no limit. Throws a `RangeError` for limits that are not valid delays.
 */
export function withDeadline(source: MemorySource, limits: DeadlineLimits): MemorySource {
  for (const [name, ms] of Object.entries(limits)) {
    if (!(ms > 0 && ms <= LONGEST_DELAY_MS))
      throw new RangeError(`${name} must be over 0 and at most ${LONGEST_DELAY_MS}`);
  }
  const { searchMs, writeMs } = limits;
  return wrappedSource(source, ({ name }, signal, make) =>
    within(source.name, name === "search" || name === "current" ? searchMs : writeMs, signal, make),
  );
}

/**
 * Settles as a call does, or rejects with {@link MemorySourceError}: `aborted` as soon as the caller's signal aborts, `timeout` after its
 * time, if it has one. The signal that it gets is aborted then as well; an outcome that comes later is dropped.
 */
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
    // `race` listens to both, so a call that fails after the time-out is no unhandled rejection.
    return await Promise.race([call(inner.signal), end]);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener("abort", abandon);
  }
}
