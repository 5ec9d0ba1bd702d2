import { IN_FLIGHT_MS, LruMap, type RequestId, type Scope } from "../../core/index.js";
import { smallest } from "../../core/text/lists.js";
import type { ObservedCompose } from "../base/memstem-observer.js";

/** Conversations, and single prompts' scopes, whose newest prompt is remembered; and prompts whose report may come. */
const MAX_REMEMBERED = 20_000;

/** The newest prompt of a conversation. */
interface NewestPrompt {
  readonly requestId: RequestId;
  readonly at: number;
}

/** What is known of a prompt when its report comes. */
export interface RememberedPrompt {
  readonly at: number;
  /** Of the prompt before; null: not known. */
  readonly beforeAt: number | null;
  readonly isBeforeEvicted: boolean;
  /** Estimated, of the whole prompt. */
  readonly expectedTokens: number;
  readonly promptTokens: number;
}

/**
 * When the newest prompts were sent, and which the engine evicted: for the causes of misses. In memory only: after a restart, and past its
 * bounds, ages are unknown.
 */
export class EarlierPrompts {
  readonly #newest = new LruMap<string, NewestPrompt>(MAX_REMEMBERED);
  readonly #prompts = new LruMap<string, RememberedPrompt>(MAX_REMEMBERED);
  readonly #evicted = new LruMap<string, true>(MAX_REMEMBERED);

  /** Takes a prompt; gives the age of the one before, in milliseconds, and whether the engine evicted it. */
  take({ scope, conversationId, requestId, at, plan }: ObservedCompose): { ageMs: number | null; isEvicted: boolean } {
    const owner = ownerOf(scope);
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
    });
    return { ageMs: before === null ? null : Math.max(0, at - before.at), isEvicted };
  }

  evicted(scope: Scope, ids: readonly RequestId[]): void {
    const owner = ownerOf(scope);
    for (const id of ids) this.#evicted.set(owner + id, true);
  }

  get(scope: Scope, id: RequestId): RememberedPrompt | null {
    return this.#prompts.get(ownerOf(scope) + id) ?? null;
  }
}

/** Whether the prompt before was sent so shortly before that the engine may not have written it yet. */
export function isInFlight({ at, beforeAt }: RememberedPrompt): boolean {
  return beforeAt !== null && at - beforeAt < IN_FLIGHT_MS;
}

/** What keys begin with: JSON says where it ends, so that an id after it needs no mark of its own. */
function ownerOf({ tenant, userId, agentId }: Scope): string {
  return JSON.stringify([tenant, userId, agentId]);
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
export interface ServedReport<T> {
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
export type RestartVerdict<T> =
  | { readonly kind: "none" }
  /** What it lost was lost by a restart that is known. */
  | { readonly kind: "known" }
  /** With it a restart shows: those before it lost what they did by the same. */
  | { readonly kind: "found"; readonly at: number; readonly others: readonly T[] };

/**
 * Detects that an engine was restarted: several scopes of a tenant, one after the other, find nothing of what they expected. Each tenant is
 * judged by its own prompts.
 */
export class EngineRestarts<T> {
  readonly #tenants = new LruMap<string, Watched<T>>(MAX_TENANTS);

  take(report: ServedReport<T>): RestartVerdict<T> {
    const { tenant, expectedTokens, cachedTokens } = report;
    if (expectedTokens < MIN_TOKENS) return { kind: "none" };
    const watched = this.#tenants.get(tenant) ?? { losses: [], restartedAt: null };
    this.#tenants.set(tenant, watched);
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
