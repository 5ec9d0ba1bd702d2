import {
  type CacheReport,
  cachedOf,
  isSameReport,
  LruMap,
  type MissCause,
  type RequestId,
  type Scope,
  scopeName,
} from "../../core/index.js";
import { keptIn, smallest } from "../../core/text/collections.js";
import type { PromptKey } from "../../store/prompt-figures.js";
import type { ObservedCompose } from "../base/memprefix-observer.js";

/** Bound of each: newest prompts by conversation, prompts that wait for a report, evicted prompts. */
const MAX_REMEMBERED = 20_000;

export interface Loss {
  /** Why the engine had less than planned, if it had; null: unknown. */
  readonly because: MissCause | null;
  /** Earlier reported prompts whose loss this report now explains by a restart. */
  readonly restarted: readonly PromptKey[];
}

const NOTHING_KNOWN: Loss = { because: null, restarted: [] };

interface NewestPrompt {
  readonly requestId: RequestId;
  readonly at: number;
}

interface RememberedPrompt {
  readonly key: PromptKey;
  readonly at: number;
  /** Of the prompt before; null: unknown. */
  readonly beforeAt: number | null;
  readonly isBeforeEvicted: boolean;
  /** Estimated, of the whole prompt. */
  readonly expectedTokens: number;
  readonly promptTokens: number;
  /** The engine's newest; null: none yet. */
  report: CacheReport | null;
  because: MissCause | null;
}

/** Why engines lost expected tokens, for all tenants: evictions and restarts. In memory only, so it ignores prompts of other processes. */
export class EngineLosses {
  readonly #newest = new LruMap<string, NewestPrompt>(MAX_REMEMBERED);
  readonly #prompts = new LruMap<string, RememberedPrompt>(MAX_REMEMBERED);
  readonly #evicted = new LruMap<string, true>(MAX_REMEMBERED);
  readonly #restarts = new EngineRestarts();

  composed(prompt: Pick<ObservedCompose, "scope" | "conversationId" | "requestId" | "at" | "plan">): void {
    const { scope, conversationId, requestId, at, plan } = prompt;
    const owner = scopeName(scope);
    const line = conversationId === null ? owner : owner + conversationId;
    const before = this.#newest.get(line) ?? null;
    this.#newest.set(line, { requestId, at });
    this.#prompts.set(owner + requestId, {
      key: { tenant: scope.tenant, userId: scope.userId, agentId: scope.agentId, requestId },
      at,
      beforeAt: before?.at ?? null,
      isBeforeEvicted: before !== null && this.#evicted.get(owner + before.requestId) === true,
      expectedTokens: plan.expectedCachedTokens,
      promptTokens: plan.totalTokens,
      report: null,
      because: null,
    });
  }

  evicted(scope: Scope, ids: readonly RequestId[]): void {
    const owner = scopeName(scope);
    for (const id of ids) this.#evicted.set(owner + id, true);
  }

  /** A repeated report is no second loss, and has the first one's reason. */
  reported(scope: Scope, id: RequestId, report: CacheReport | null): Loss {
    const prompt = this.#prompts.get(scopeName(scope) + id);
    if (prompt === undefined || report === null) return NOTHING_KNOWN;
    if (isSameReport(report, prompt.report)) return { because: prompt.because, restarted: [] };
    const loss = this.#lossOf(prompt, report);
    prompt.report = report;
    prompt.because = loss.because;
    return loss;
  }

  #lossOf(prompt: RememberedPrompt, report: CacheReport): Loss {
    if (prompt.isBeforeEvicted) return { because: "evicted", restarted: [] };
    return this.#restarts.take({ ...prompt, cachedTokens: cachedOf(report, prompt.promptTokens) });
  }
}

/** Scopes of one tenant that must lose everything, without a hit in between, … */
const SCOPES = 3;
/** … within so many milliseconds. */
const WITHIN_MS = 5 * 60_000;
/** Smallest expected prefix that counts: smaller ones are lost for other reasons too. */
const MIN_TOKENS = 256;
/** Remaining share of the expected tokens that still counts as a full loss: others may have cached the instructions again. */
const LOST_SHARE = 0.1;
const MAX_TENANTS = 1_000;

/** A report, as far as it can show a restart. */
interface ServedReport extends Pick<RememberedPrompt, "key" | "at" | "beforeAt" | "expectedTokens"> {
  readonly cachedTokens: number;
}

interface Watched {
  losses: ServedReport[];
  restartedAt: number | null;
}

/** Detects a restart: several scopes of one tenant, one after the other, find nothing of what they expected. */
class EngineRestarts {
  readonly #tenants = new LruMap<string, Watched>(MAX_TENANTS);

  take(report: ServedReport): Loss {
    const { key, expectedTokens, cachedTokens } = report;
    if (expectedTokens < MIN_TOKENS) return NOTHING_KNOWN;
    const watched = keptIn(this.#tenants, key.tenant, () => ({ losses: [], restartedAt: null }));
    if (cachedTokens > expectedTokens * LOST_SHARE) {
      watched.losses = [];
      return NOTHING_KNOWN;
    }
    const { restartedAt } = watched;
    if (restartedAt !== null && report.beforeAt !== null && report.beforeAt < restartedAt)
      return { because: "restarted", restarted: [] };
    const isEarlier = (loss: ServedReport) => report.at - loss.at < WITHIN_MS && scopeName(loss.key) !== scopeName(key);
    const earlier = watched.losses.filter(isEarlier);
    watched.losses = [...earlier, report];
    if (watched.losses.length < SCOPES) return NOTHING_KNOWN;
    watched.restartedAt = smallest(watched.losses.map(({ at }) => at));
    watched.losses = [];
    return { because: "restarted", restarted: earlier.map((loss) => loss.key) };
  }
}
