/* learning: what answers teach: the context index, a cost model, what a model does not support. All bounded. What is learned of a model expires. */

import { billedBy } from "../../core/cost/expected-reads.js";
import {
  type AgentId,
  type CacheHandle,
  type EngineReport,
  type EngineWork,
  groupBy,
  hadOnlyHead,
  KEEPS_ALL,
  type NodeId,
  ownReport,
  type PromptWait,
  type RequestId,
  type ResidencyModel,
  reportedFigures,
  type TurnId,
  takeReport,
  type UserId,
} from "../../core/index.js";
import { sentRequestId } from "../../engines/adapters/engine-adapter.js";
import type { ServedRequest, Store } from "../../store/store.js";
import type { ComposeAnswer, Eviction, Feedback } from "../base/call-types.js";
import { NotFoundError } from "../base/errors.js";
import type { MemprefixObserver } from "../base/memprefix-observer.js";
import { engineModelFor, type TenantParts } from "../base/memprefix-parts.js";
import type { TenantQueues } from "../scopes/user-queues.js";
import { deltaOf, sentAs, type WorkingScope, type WorkingScopes } from "../scopes/working-scopes.js";
import type { EngineLaw, TokenRatios } from "./engine-measures.js";

/** Evicts requests from a scope's context index: what only they had is not expected to hit. Gives those that were live. */
async function evictIn(
  working: WorkingScope,
  store: Store,
  ids: readonly RequestId[],
  residency: ResidencyModel,
): Promise<readonly RequestId[]> {
  const { scope, state } = working;
  // Read again: another eviction may have run while this one was queued.
  const live = (await store.findLiveRequests(scope.tenant, ids)).filter(
    (request) => request.scope.userId === scope.userId && request.scope.agentId === scope.agentId,
  );
  await dropServed(working, store, live, residency);
  const names = live.map(({ requestId }) => requestId);
  if (names.length > 0) {
    await working.commit((held) => held.commitEviction(deltaOf(state), names));
    working.requests.ended(names);
  }
  return names;
}

/** Evicts prompts from the index, before the store does. With slots, the newest at a node stay, as many as the index has there. */
async function dropServed(
  { scopeId, state }: WorkingScope,
  store: Store,
  served: readonly { readonly leaf: NodeId; readonly turn: TurnId }[],
  { foresee }: Pick<ResidencyModel, "foresee">,
): Promise<void> {
  const isOverwritten = async (leaf: NodeId, turn: TurnId) => {
    if (foresee === undefined) return false;
    const held = state.index.heldAt(leaf);
    return held > 0 && (await store.countServedSince(scopeId, leaf, turn, held)) >= held;
  };
  // Oldest first: the store counts only later ones.
  for (const { leaf, turn } of served.toSorted((a, b) => a.turn - b.turn))
    if (!(await isOverwritten(leaf, turn))) state.index.evict(leaf);
}

/** Withdraws a refused request: its conversation resumes from the turn before, and its id is free. Labels of its memories stay. */
async function withdrawIn(
  working: WorkingScope,
  store: Store,
  id: RequestId,
  residency: ResidencyModel,
): Promise<void> {
  const { scopeId, state } = working;
  const served = await store.findServed(scopeId, id);
  if (served === null) return;
  if (!served.evicted) await dropServed(working, store, [served], residency);
  // Loaded conversations still hold the turn.
  state.unloadConversations();
  await working.commit((held) => held.commitWithdrawal(deltaOf(state), served.turn));
  working.requests.ended([id]);
}

/** An engine's report, without absent fields. */
export function observationOf(reported: Partial<Record<keyof EngineReport, number | null | undefined>>): EngineReport {
  const { promptTokens, cachedTokens, ttftMs } = reported;
  return {
    ...(promptTokens == null ? {} : { promptTokens }),
    ...(cachedTokens == null ? {} : { cachedTokens }),
    ...(ttftMs == null ? {} : { ttftMs }),
  };
}

export interface ServedBy {
  readonly model: string;
  /** The answer after its first token: tokens and milliseconds; null if it was not streamed or not counted. */
  readonly answered?: { readonly tokens: number; readonly ms: number } | null;
}

export class EngineReports {
  constructor(
    private readonly parts: TenantParts,
    private readonly jobs: TenantQueues,
    private readonly scopes: WorkingScopes,
    private readonly law: EngineLaw,
    private readonly ratios: TokenRatios,
    private readonly work: EngineWork,
    private readonly observer: Required<MemprefixObserver>,
  ) {}

  /** The first token of an answer came. Times are by the caller's clock, the same for all prompts. */
  began(userId: UserId, agentId: AgentId | null, { requestId, plan }: ComposeAnswer, wait: PromptWait): void {
    const { totalTokens: promptTokens, expectedCachedTokens } = plan;
    const work = { promptTokens, computedTokens: promptTokens - expectedCachedTokens };
    this.work.begins(this.#sentAs(userId, agentId, requestId), wait, work);
  }

  #sentAs(userId: UserId, agentId: AgentId | null, id: RequestId): CacheHandle {
    return sentAs(this.jobs.scopeOf(userId, agentId), id);
  }

  /** The engine dropped these requests' cache. Ids may be in its form. `of`: only this user's; else the tenant's, since engines know no users. */
  async evict(ids: readonly RequestId[], of?: UserId): Promise<Eviction> {
    const unique = [...new Set(ids.map(sentRequestId))];
    const evicted = new Set<RequestId>();
    const find = () => this.parts.store.findLiveRequests(this.jobs.tenant, unique);
    if (of !== undefined) {
      // Queued at once, so that the user's next request comes after it.
      await this.jobs.run(of, async () =>
        this.#evictOf(
          of,
          (await find()).filter(({ scope }) => scope.userId === of),
          evicted,
        ),
      );
    } else {
      // Concurrent: one user's search does not delay the others.
      const byUser = groupBy(await find(), ({ scope }) => scope.userId);
      const ofUsers = [...byUser].map(([userId, named]) =>
        this.jobs.run(userId, () => this.#evictOf(userId, named, evicted)),
      );
      await Promise.all(ofUsers);
    }
    return { evicted: [...evicted], unknown: unique.filter((id) => !evicted.has(id)) };
  }

  async #evictOf(userId: UserId, named: Awaited<ReturnType<Store["findLiveRequests"]>>, evicted: Set<RequestId>) {
    const { store, residency = KEEPS_ALL } = this.parts;
    for (const [agentId, ofScope] of groupBy(named, ({ scope }) => scope.agentId)) {
      const names = ofScope.map(({ requestId }) => requestId);
      const scope = this.jobs.scopeOf(userId, agentId);
      const gone = await this.scopes.use(scope, (working) => evictIn(working, store, names, residency));
      for (const name of gone) evicted.add(name);
    }
  }

  /** The engine refused the prompt: it counts as never composed, and its id is free. An unknown request is ignored. */
  withdraw(userId: UserId, agentId: AgentId | null, id: RequestId): Promise<void> {
    const { store, residency = KEEPS_ALL, cache } = this.parts;
    const scope = this.jobs.scopeOf(userId, agentId);
    return this.jobs.run(userId, async () => {
      await this.scopes.use(scope, (working) => withdrawIn(working, store, id, residency));
      cache?.release(sentAs(scope, id));
    });
  }

  /** The engine never got the prompt: no hit is expected from it, and it displaced nothing. */
  async neverServed(userId: UserId, agentId: AgentId | null, id: RequestId): Promise<void> {
    this.parts.cache?.release(this.#sentAs(userId, agentId, id));
    await this.evict([id], userId);
  }

  /** The client left before the engine answered; the prompt may have been computed. */
  interrupted(userId: UserId, agentId: AgentId | null, id: RequestId): void {
    this.parts.cache?.report(this.#sentAs(userId, agentId, id), null, this.parts.now());
  }

  /**
   * Stores what the engine reported of a request, and corrects the context index by the first report with cached tokens. Rejects with
   * {@link NotFoundError}.
   *
   * @param served who answered; unknown if the caller sent the prompt
   * @param model what usage counts the prompt under; null: what it was composed for
   */
  feedback(
    userId: UserId,
    agentId: AgentId | null,
    id: RequestId,
    observation: EngineReport,
    served: ServedBy = { model: "" },
    model: string | null = served.model === "" ? null : served.model,
  ): Promise<Feedback> {
    const scope = this.jobs.scopeOf(userId, agentId);
    const { now, cache } = this.parts;
    return this.jobs.run(userId, async () => {
      const at = now();
      const reported = await this.scopes.use(scope, (working) => this.#reportIn(working, id, observation, model, at));
      if (reported === null) throw new NotFoundError("request_id", "no such request of this user");
      const { feedback, before, scopeId } = reported;
      const sent = sentAs(scope, id);
      const { promptTokens, cachedTokens } = observation;
      const { besideTokens = 0 } = before.grounds;
      if (cachedTokens !== undefined)
        cache?.report(sent, { cachedTokens, promptTokens: promptTokens ?? null, besideTokens }, at);
      if (promptTokens !== undefined && before.observed?.promptTokens === undefined) {
        const estimated = before.plan.totalTokens + besideTokens;
        this.ratios.take({ userId, model: served.model }, { estimated, reported: promptTokens });
      }
      if (promptTokens !== undefined && cachedTokens !== undefined)
        this.work.counted(sent, { promptTokens, computedTokens: promptTokens - cachedTokens });
      if (promptTokens !== undefined && served.answered) this.law.takeAnswer({ promptTokens, ...served.answered });
      const isFirst = before.observed?.ttftMs === undefined;
      const report = { ...before.observed, ...observation };
      this.observer.reported(feedback, (isFirst ? report.ttftMs : null) ?? null);
      if (isFirst && this.work.isSample(sent))
        await this.law.take(
          { scopeId, turn: before.turn },
          report,
          this.work.meanPrompt(sent, (work) => this.law.timeOf(work)),
        );
      return feedback;
    });
  }

  /** Merges the report into the stored one. Gives the request as it was before; null: there is none. */
  async #reportIn(
    working: WorkingScope,
    id: RequestId,
    observation: EngineReport,
    model: string | null,
    now: number,
  ): Promise<{ readonly feedback: Feedback; readonly before: ServedRequest; readonly scopeId: number } | null> {
    const { store, defaults, residency = KEEPS_ALL } = this.parts;
    const { scope, scopeId, state } = working;
    const served = await store.findServed(scopeId, id);
    if (served === null) return null;
    const { grounds, evicted, observed } = served;
    const { besideTokens = 0 } = grounds;
    const { cachedTokens = null, promptTokens = observed?.promptTokens ?? null } = observation;
    if (cachedTokens !== null && observed?.cachedTokens === undefined && !evicted) {
      // A late report must not restore what has expired since.
      residency.expire(state.index, now);
      const report = { cachedTokens, promptTokens, besideTokens };
      const isExact = residency.foresee !== undefined;
      const again = hadOnlyHead(served, report) && (await hadOnlyHeadBefore(store, scopeId, served.turn));
      takeReport(state.index, served, report, now, { again, isExact });
    }
    const report = { ...observed, ...observation };
    const figures = await store.prompts.prompt({ ...scope, requestId: id });
    const counted = { report, besideTokens, model };
    const costs = engineModelFor(defaults, model ?? figures?.model ?? null);
    const prompt = figures && reportedFigures(figures, counted, billedBy(costs, grounds.unread));
    const record = { id, turn: served.turn, observed: report, prompt };
    await working.commit((held) => held.commitReport(deltaOf(state), record));
    working.requests.ended([id]);
    const feedback = feedbackOf(id, served, { cachedTokens, promptTokens, besideTokens });
    return { feedback, before: served, scopeId };
  }
}

/** Compares a report with what was expected: in the engine's tokens, if it reports how many the prompt has. */
function feedbackOf(
  requestId: RequestId,
  { plan }: ServedRequest,
  report: { readonly cachedTokens: number | null; readonly promptTokens: number | null; readonly besideTokens: number },
): Feedback {
  const { cachedTokens, promptTokens, besideTokens } = report;
  const own = ownReport({ cachedTokens: cachedTokens ?? 0, promptTokens, besideTokens }, plan.totalTokens);
  const scale = own.promptTokens === null || plan.totalTokens === 0 ? 1 : own.promptTokens / plan.totalTokens;
  const expectedCachedTokens = Math.round(plan.expectedCachedTokens * scale);
  const observedCachedTokens = cachedTokens === null ? null : own.cachedTokens;
  const difference = observedCachedTokens === null ? null : observedCachedTokens - expectedCachedTokens;
  return { requestId, expectedCachedTokens, observedCachedTokens, difference };
}

async function hadOnlyHeadBefore(store: Store, scopeId: number, turn: TurnId): Promise<boolean> {
  const before = await store.findReportedBefore(scopeId, turn);
  const { cachedTokens, promptTokens = null } = before?.observed ?? {};
  const { besideTokens = 0 } = before?.grounds ?? {};
  return (
    before !== null && cachedTokens !== undefined && hadOnlyHead(before, { cachedTokens, promptTokens, besideTokens })
  );
}
