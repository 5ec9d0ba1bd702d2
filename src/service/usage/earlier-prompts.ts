import { IN_FLIGHT_MS, LruMap, type RequestId, type Scope } from "../../core/index.js";
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

/** What keys begin with: JSON says where it ends, so that an id behind it needs no mark of its own. */
function ownerOf({ tenant, userId, agentId }: Scope): string {
  return JSON.stringify([tenant, userId, agentId]);
}
