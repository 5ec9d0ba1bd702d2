/*
 * usage: what answered prompts cost and why they missed, recorded off the request path, and shown.
 * Enters: what a service's observer gets; queries of a tenant. Leaves: batches for the usage log, about one a second. Nothing here waits on a request, and no request waits on it.
 */

import {
  type CacheReport,
  cachedOf,
  type EngineModel,
  isSameReport,
  LruMap,
  modelAfter,
  type RequestId,
  type Scope,
  scopeName,
  type UserId,
} from "../../core/index.js";
import { keptIn, smallest } from "../../core/text/collections.js";
import { StoreUnavailableError } from "../../store/api/store.js";
import {
  type KeptNote,
  type NewNote,
  NO_MODEL,
  type UsageEntry,
  type UsageLog,
  type UsageReport,
} from "../../store/api/usage-log.js";
import type { MemprefixObserver, ObservedCompose, ObservedReport } from "../base/memprefix-observer.js";

/** Milliseconds between two batches. */
const BATCH_MS = 1_000;
/** Most entries that wait to be written; more are left out, and counted. */
const MAX_WAITING = 20_000;
/** Milliseconds for which a report waits whose prompt another process composed, and may not have written yet. */
const LATE_MS = 2 * BATCH_MS;
/** Milliseconds after which a batch that cannot be written is left out: far less than the log remembers deleted users for. */
const GIVEN_UP_MS = 5 * 60_000;
/** What a recorder needs. */
export interface RecorderParts {
  readonly log: UsageLog;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly costs: EngineModel;
  readonly onFault: (error: unknown) => void;
}

/** Entries that are handed over together, again where the log could not be reached. */
interface Batch {
  readonly entries: readonly UsageEntry[];
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Records what a service does, for all tenants. */
export class UsageRecorder implements MemprefixObserver {
  readonly #earlier = new EarlierPrompts();
  readonly #restarts = new EngineRestarts<UsageReport>();
  #waiting: UsageEntry[] = [];
  /** Reports of prompts that this process did not compose, oldest first. */
  #late: { readonly entry: UsageReport; readonly at: number }[] = [];
  /** Not written yet, oldest first. */
  readonly #batches: Batch[] = [];
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();
  #dropped = 0;

  constructor(private readonly parts: RecorderParts) {}

  /** Entries that were left out since the start: too many waited, or they could not be written. */
  get dropped(): number {
    return this.#dropped;
  }

  composed(prompt: ObservedCompose): void {
    const { scope, plan, carriedTokens, conversationId, requestId, at, model, engine, besideTokens } = prompt;
    this.#earlier.take(prompt);
    const { tenant, userId, agentId } = scope;
    this.#add({
      kind: "composed",
      tenant,
      userId,
      agentId,
      requestId,
      conversationId,
      at,
      model: model ?? NO_MODEL,
      engine,
      layout: plan.layout,
      policy: plan.policy,
      retention: plan.retention,
      epoch: plan.epoch === undefined ? null : { began: plan.epoch.began, prompts: plan.epoch.prompts },
      usage: {
        promptTokens: plan.totalTokens,
        expectedTokens: plan.expectedCachedTokens,
        carriedTokens,
        planned: plan.miss,
        miss: plan.miss,
        report: null,
        firstTokenMs: null,
      },
      costs: modelAfter(this.parts.costs, besideTokens),
    });
  }

  reported(observed: ObservedReport): void {
    const { scope, feedback, report, besideTokens, model } = observed;
    const entry = (because: UsageReport["facts"]["because"]): UsageReport => ({
      kind: "reported",
      ...keyOf(scope, feedback.requestId),
      model,
      facts: { report: cacheReport(observed), firstTokenMs: report.ttftMs ?? null, because },
      costs: modelAfter(this.parts.costs, besideTokens),
    });
    const isOwn = this.#earlier.get(scope, feedback.requestId) !== null;
    if (isOwn) this.#add(entry(this.#reasonOf(observed, entry("restarted"))));
    else this.#addLate(entry(null));
  }

  evicted(scope: Scope, ids: readonly RequestId[]): void {
    this.#earlier.evicted(scope, ids);
  }

  withdrawn(scope: Scope, id: RequestId): void {
    this.#add({ kind: "withdrawn", ...keyOf(scope, id) });
  }

  note(note: NewNote): Promise<KeptNote> {
    return this.parts.log.note(note);
  }

  /** Drops what waits of a user, and waits for what is being written. */
  async forget(tenant: string, userId: UserId): Promise<void> {
    const isOthers = (entry: UsageEntry) => entry.tenant !== tenant || entry.userId !== userId;
    this.#waiting = this.#waiting.filter(isOthers);
    this.#late = this.#late.filter(({ entry }) => isOthers(entry));
    await this.#writing;
  }

  /** Writes what waits, or tries to; `isLast`: also what waits for other processes. */
  flush(isLast = false): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const since = isLast ? Number.POSITIVE_INFINITY : this.parts.now() - LATE_MS;
    for (const { entry, at } of this.#late) if (at <= since) this.#waiting.push(entry);
    this.#late = this.#late.filter(({ at }) => at > since);
    if (this.#late.length > 0) this.#setTimer();
    if (this.#waiting.length > 0) this.#batches.push({ entries: this.#waiting, at: this.parts.now() });
    this.#waiting = [];
    if (this.#batches.length > 0) this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Up to the first batch that may be written later: a log that is away or locked comes back. */
  async #write(): Promise<void> {
    for (let batch = this.#batches[0]; batch !== undefined; batch = this.#batches[0]) {
      const { entries, at } = batch;
      const now = this.parts.now();
      try {
        await this.parts.log.record(entries, now);
      } catch (error) {
        this.parts.onFault(error);
        if (mayPass(error) && now - at < GIVEN_UP_MS) {
          this.#setTimer();
          return;
        }
        this.#dropped += entries.length;
      }
      this.#batches.shift();
    }
  }

  /** Why the engine had less than expected, if it had. Where a restart shows, those before it that it explains are recorded again. */
  #reasonOf(observed: ObservedReport, ifRestarted: UsageReport): UsageReport["facts"]["because"] {
    const { scope, feedback } = observed;
    const remembered = this.#earlier.get(scope, feedback.requestId);
    const said = cacheReport(observed);
    if (remembered === null || said === null) return null;
    // A repeated report is no second loss.
    if (isSameReport(said, remembered.report)) return null;
    remembered.report = said;
    if (remembered.isBeforeEvicted) return "evicted";
    const { tenant, userId, agentId } = scope;
    const verdict = this.#restarts.take({
      tenant,
      scope: JSON.stringify([userId, agentId]),
      ...remembered,
      cachedTokens: cachedOf(said, remembered.promptTokens),
      of: ifRestarted,
    });
    if (verdict.kind === "none") return null;
    if (verdict.kind === "found") {
      for (const other of verdict.others) this.#add(other);
      const note = { tenant, at: verdict.at, kind: "engine_restart", label: "found by reports", model: null } as const;
      this.note(note).catch(this.parts.onFault);
    }
    return "restarted";
  }

  #add(entry: UsageEntry): void {
    if (this.#hasRoom()) this.#waiting.push(entry);
  }

  #addLate(entry: UsageReport): void {
    if (this.#hasRoom()) this.#late.push({ entry, at: this.parts.now() });
  }

  /** For one entry more. Without it, the entry counts as left out. */
  #hasRoom(): boolean {
    const handedOver = this.#batches.reduce((sum, { entries }) => sum + entries.length, 0);
    const hasRoom = handedOver + this.#waiting.length + this.#late.length < MAX_WAITING;
    if (hasRoom) this.#setTimer();
    else this.#dropped++;
    return hasRoom;
  }

  #setTimer(): void {
    this.#timer ??= setTimeout(() => void this.flush(), BATCH_MS).unref();
  }
}

function keyOf({ tenant, userId, agentId }: Scope, requestId: RequestId) {
  return { tenant, userId, agentId, requestId };
}

/** Whether the same may succeed later. */
function mayPass(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.fault !== "damaged";
}

function cacheReport({ report, besideTokens }: ObservedReport): CacheReport | null {
  const { cachedTokens, promptTokens } = report;
  return cachedTokens === undefined ? null : { cachedTokens, promptTokens: promptTokens ?? null, besideTokens };
}

/** Conversations, and single prompts' scopes, whose newest prompt is remembered; and prompts whose report may come. */
const MAX_REMEMBERED = 20_000;

/** The newest prompt of a conversation. */
interface NewestPrompt {
  readonly requestId: RequestId;
  readonly at: number;
}

/** What is known of a prompt when its report comes. */
interface RememberedPrompt {
  readonly at: number;
  /** Of the prompt before; null: not known. */
  readonly beforeAt: number | null;
  readonly isBeforeEvicted: boolean;
  /** Estimated, of the whole prompt. */
  readonly expectedTokens: number;
  readonly promptTokens: number;
  /** The engine's newest; null: it has not reported. */
  report: CacheReport | null;
}

/**
 * When the newest prompts were sent, and which the engine evicted: for the causes of misses. In memory only: after a restart, and past its
 * bounds, ages are unknown.
 */
class EarlierPrompts {
  readonly #newest = new LruMap<string, NewestPrompt>(MAX_REMEMBERED);
  readonly #prompts = new LruMap<string, RememberedPrompt>(MAX_REMEMBERED);
  readonly #evicted = new LruMap<string, true>(MAX_REMEMBERED);

  take({ scope, conversationId, requestId, at, plan }: ObservedCompose): void {
    const owner = scopeName(scope);
    const key = conversationId === null ? owner : owner + conversationId;
    const before = this.#newest.get(key) ?? null;
    const isEvicted = before !== null && this.#evicted.get(owner + before.requestId) === true;
    this.#newest.set(key, { requestId, at });
    this.#prompts.set(owner + requestId, {
      at,
      beforeAt: before?.at ?? null,
      isBeforeEvicted: isEvicted,
      expectedTokens: plan.expectedCachedTokens,
      promptTokens: plan.totalTokens,
      report: null,
    });
  }

  evicted(scope: Scope, ids: readonly RequestId[]): void {
    const owner = scopeName(scope);
    for (const id of ids) this.#evicted.set(owner + id, true);
  }

  get(scope: Scope, id: RequestId): RememberedPrompt | null {
    return this.#prompts.get(scopeName(scope) + id) ?? null;
  }
}

/** Scopes of one tenant that have to lose everything, without a hit in between. */
const SCOPES = 3;
/** Milliseconds within which they do. */
const WITHIN_MS = 5 * 60_000;
/** Smallest expected prefix that counts: less is lost for other reasons, too. */
const MIN_TOKENS = 256;
/** Share of the expected tokens up to which everything was lost; instructions that others cached again may be left. */
const LOST_SHARE = 0.1;
/** Tenants that are watched. */
const MAX_TENANTS = 1_000;

/** A report, as far as it shows a restart. */
interface ServedReport<T> {
  readonly tenant: string;
  /** Key of the scope. */
  readonly scope: string;
  /** When its prompt was composed, and the one before it; milliseconds since the epoch. */
  readonly at: number;
  readonly beforeAt: number | null;
  readonly expectedTokens: number;
  /** In the same count. */
  readonly cachedTokens: number;
  /** Given back if it turns out to be a restart. */
  readonly of: T;
}

interface Watched<T> {
  losses: ServedReport<T>[];
  /** When the last restart was first seen; null: none was. */
  restartedAt: number | null;
}

/** What a report shows. */
type RestartVerdict<T> =
  | { readonly kind: "none" }
  /** What it lost was lost by a restart that is known. */
  | { readonly kind: "known" }
  /** With it a restart shows: those before it lost what they did by the same. */
  | { readonly kind: "found"; readonly at: number; readonly others: readonly T[] };

/**
 * Detects that an engine was restarted: several scopes of a tenant, one after the other, find nothing of what they expected. Each tenant is
 * judged by its own prompts.
 */
class EngineRestarts<T> {
  readonly #tenants = new LruMap<string, Watched<T>>(MAX_TENANTS);

  take(report: ServedReport<T>): RestartVerdict<T> {
    const { tenant, expectedTokens, cachedTokens } = report;
    if (expectedTokens < MIN_TOKENS) return { kind: "none" };
    const watched = keptIn(this.#tenants, tenant, () => ({ losses: [], restartedAt: null }));
    if (cachedTokens > expectedTokens * LOST_SHARE) {
      watched.losses = [];
      return { kind: "none" };
    }
    const { restartedAt } = watched;
    if (restartedAt !== null && report.beforeAt !== null && report.beforeAt < restartedAt) return { kind: "known" };
    watched.losses = watched.losses.filter(({ at, scope }) => report.at - at < WITHIN_MS && scope !== report.scope);
    watched.losses.push(report);
    if (watched.losses.length < SCOPES) return { kind: "none" };
    const found = watched.losses;
    const at = smallest(found.map((loss) => loss.at));
    watched.losses = [];
    watched.restartedAt = at;
    return { kind: "found", at, others: found.filter((loss) => loss !== report).map(({ of }) => of) };
  }
}
