/*
 * compose: one request of a user becomes a stored prompt. Lookup of memories → plan by the core → commit to the store → answer in the
 * engine's form.
 * Enters: a checked {@link ComposeRequest}, at the front of its user's queue. Leaves: a {@link ComposeAnswer} that is in the store, and
 * the same answer for a repeated request id; a dry run ends before the commit. A failing memory source causes a warning; a deletion
 * meanwhile starts the request again.
 */

import { SpanStatusCode } from "@opentelemetry/api";
import {
  BlockTemplates,
  type Depth,
  type Digest,
  KEEPS_ALL,
  type MemoryId,
  type Scope,
  type UserId,
} from "../../core/index.js";
import {
  AbandonedRequestError,
  DeletedMeanwhileError,
  DeletedWhileSentError,
  OutdatedHistoryError,
  StoreUnavailableError,
} from "../base/errors.js";
import type { CallerSignal } from "../base/linked-signal.js";
import type { MemstemObserver } from "../base/memstem-observer.js";
import type { TenantParts } from "../base/memstem-parts.js";
import { inSpan } from "../base/spans.js";
import type { Tenant } from "../base/tenant.js";
import type { EngineLaw } from "../learning/engine-law.js";
import { evictIn } from "../learning/evicting.js";
import type { TokenRatios } from "../learning/token-ratios.js";
import { DeletionWatch } from "../scopes/deletion-watch.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import type { WorkingScope } from "../scopes/working-scope.js";
import type { WorkingScopes } from "../scopes/working-scopes.js";
import type { ChooseDepth, ChosenDepth } from "./chosen-depth.js";
import type { ComposeAnswer } from "./compose-answer.js";
import type { ComposeHooks } from "./compose-hooks.js";
import { type ComposeRequest, DEFAULT_TOP_K } from "./compose-request.js";
import type { KnownTexts } from "./known-texts.js";
import { type LookupParts, lookUpMemories, type MemoryLookup, type WaitingLookup, withCheck } from "./memory-lookup.js";
import { PlanningInput, type Retrieved } from "./planning-input.js";
import { PromptDrafts } from "./prompt-drafts.js";
import { PromptLimits } from "./prompt-limits.js";
import { PromptPlanner } from "./prompt-planner.js";
import type { PromptRouting } from "./prompt-routing.js";
import { NOTHING_CHECKED, type SourceCheck, SourceChecks } from "./source-check.js";

/** One request while it is at the front of its user's queue. */
interface ComposeTask {
  readonly scope: Scope;
  readonly request: ComposeRequest;
  /** The blocks that a batch plan places first. */
  readonly front: readonly Digest[];
  readonly signal: CallerSignal | undefined;
  readonly hooks: ComposeHooks;
  /** Whether memories that the request brought are not composed once the user was deleted. */
  readonly endsWithUser: boolean;
  /** Whether a prompt of it was announced. */
  isAnnounced: boolean;
}

/** Dependencies of a tenant's composer. */
export interface ComposerParts {
  readonly parts: TenantParts;
  readonly tenant: Tenant;
  readonly scopes: WorkingScopes;
  readonly jobs: TenantQueues;
  readonly law: EngineLaw;
  readonly ratios: TokenRatios;
  readonly routing: PromptRouting;
  readonly observer: Required<MemstemObserver>;
  /** Forgets memories that their source no longer has, from within the user's queue. */
  readonly forgetGone: (userId: UserId, memoryIds: readonly MemoryId[]) => Promise<void>;
}

/** Composes prompts of one tenant's users, each in its user's queue: searches memories, plans a prompt, commits and stores it. */
export class PromptComposer {
  readonly #lookup: LookupParts;
  readonly #planner: PromptPlanner;
  readonly #drafts: PromptDrafts;
  readonly #limits: PromptLimits;
  readonly #checks: SourceChecks;
  /** Whether the last prompt could be stored: if not, the next answer is announced only after it is stored. */
  #storesWell = true;

  constructor(private readonly on: ComposerParts) {
    const { source, defaults } = on.parts;
    const { blockTemplate, timeZone, topK, among } = defaults;
    const templates = new BlockTemplates();
    this.#lookup = { source, now: on.parts.now, blockTemplate, timeZone, templates, topK, among };
    const input = new PlanningInput(on.parts, on.law);
    this.#planner = new PromptPlanner(on.parts, on.tenant, on.routing, input);
    this.#drafts = new PromptDrafts(on.parts, on.tenant, on.routing, input);
    this.#limits = new PromptLimits(on.parts, on.ratios);
    this.#checks = new SourceChecks(on.parts.checksSource === false ? null : source);
  }

  /**
   * Composes a prompt. Rejects with `BusyUserError` if the user's queue is full, and if the store fails; a failing memory source only
   * causes a warning. `signal`: aborted when the caller is gone. A request that is still waiting then is not composed, because nobody would
   * see its answer and the turn would stay in the conversation: {@link AbandonedRequestError}.
   */
  async compose(request: ComposeRequest, signal?: CallerSignal, hooks: ComposeHooks = {}): Promise<ComposeAnswer> {
    const scope = this.on.jobs.scopeOf(request.userId, request.agentId);
    this.on.jobs.rejectIfBusy(request.userId);
    const task = { scope, request, front: [], signal, hooks, endsWithUser: false, isAnnounced: false };
    const compose = () => this.#compose(task, null);
    const attributes = { "memstem.layout": request.conversationId === null ? "single" : "conversation" };
    return inSpan("memstem.compose", attributes, async (span) => {
      const answer = await this.on.jobs.run(request.userId, compose);
      this.#storesWell = true;
      const { policy, retention, totalTokens, expectedCachedTokens } = answer.plan;
      span.setAttributes({
        "memstem.policy": policy,
        "memstem.retention": retention,
        "memstem.prompt_tokens": totalTokens,
        "memstem.expected_cached_tokens": expectedCachedTokens,
      });
      return answer;
    });
  }

  /** The memories for a request of a batch. Does not reject if the source fails. */
  async lookUp(request: ComposeRequest, signal?: CallerSignal): Promise<WaitingLookup> {
    const scope = this.on.jobs.scopeOf(request.userId, request.agentId);
    const watch = await DeletionWatch.begin(this.on.parts.store, scope.tenant, scope.userId);
    if (await this.#isAnswered(scope, request)) return { found: [] };
    return { ...(await this.#lookUp(scope, request, signal)), watch };
  }

  /**
   * What the scope of a batch's request knows for planning it together with others that have the same messages before their memories.
   * Null where the store does not answer: the batch is planned without.
   *
   * @param texts each of the requests' memories, by the digests of their texts
   */
  async known(request: ComposeRequest, texts: readonly (readonly Digest[])[]): Promise<KnownTexts | null> {
    const scope = this.on.jobs.scopeOf(request.userId, request.agentId);
    try {
      return await retryWhileLocked(() =>
        this.on.scopes.read(scope, (working) => this.#drafts.known(working, request, texts)),
      );
    } catch (error) {
      if (error instanceof StoreUnavailableError) return null;
      throw error;
    }
  }

  /**
   * Composes a request of a batch with looked-up memories, of which the plan places `front` first. If memories were deleted since the
   * lookup, they are looked up again. Rejects with {@link DeletedMeanwhileError} if the user was deleted since and the request brought its own memories.
   */
  composeFound(
    request: ComposeRequest,
    waiting: WaitingLookup,
    front: readonly Digest[],
    signal?: CallerSignal,
  ): Promise<ComposeAnswer> {
    const scope = this.on.jobs.scopeOf(request.userId, request.agentId);
    const task = { scope, request, front, signal, hooks: {}, endsWithUser: true, isAnnounced: false };
    return this.on.jobs.run(request.userId, () => this.#compose(task, waiting));
  }

  /**
   * Looks memories up and composes, within the user's queue. Starts again if another process deletes the user or one of their memories
   * meanwhile, because the lookup may contain it.
   *
   * @param waiting an earlier lookup; null for none
   */
  async #compose(task: ComposeTask, waiting: WaitingLookup | null): Promise<ComposeAnswer> {
    const { request, named } = this.#limits.limited(task.request);
    const limited = request === task.request ? task : { ...task, request };
    for (let lookup = waiting; ; lookup = null) {
      try {
        return await this.#composeOnce(limited, lookup);
      } catch (error) {
        if (!(error instanceof DeletedMeanwhileError)) throw named(error);
        if (task.endsWithUser && request.memories !== null && (await lookup?.watch?.isUserDeleted())) throw error;
      }
    }
  }

  async #composeOnce(task: ComposeTask, waiting: WaitingLookup | null): Promise<ComposeAnswer> {
    const { scope, request, front, signal, hooks } = task;
    if (signal?.aborted) throw new AbandonedRequestError();
    const { scopes, parts } = this.on;
    const base = await retryWhileLocked(() => scopes.baseOf(scope, request.conversationId));
    // Where another process has stored the scope since, the commit finds out.
    const isKnown = base.version !== null && (await this.#isAnswered(scope, request));
    if (isKnown) {
      const answer = await retryWhileLocked(() =>
        scopes.use(scope, (working) => this.#planner.repeat(working, request)),
      );
      if (answer !== null) return answer;
    }
    // A request that was already answered at lookup has no watch; its answer may be gone since.
    const found = waiting?.watch === undefined ? null : waiting;
    // Begins where the scope in memory was loaded: a deletion since then makes the commit stale.
    const watch = found?.watch ?? new DeletionWatch(parts.store, scope.tenant, scope.userId, base.deletions);
    const [searched, check] = await Promise.all([found ?? this.#searchWhileWarmingUp(task), this.#check(task)]);
    const { lookup, gone } = withCheck(this.#lookup, request, searched, check);
    if (gone.length > 0) {
      // Also in a dry run: what the source has deleted is to be nowhere.
      await this.on.forgetGone(request.userId, gone);
      // What was looked up, and what is known, may have been about them.
      return this.#composeOnce(task, null);
    }
    if (isKnown && !request.dryRun) await this.#dropErasedAnswer(scope, request);
    const { chooseDepth } = hooks;
    const retrieved = { lookup, front, depth: null, freeAt: isKnown ? undefined : base };
    if (chooseDepth === undefined || signal?.aborted) return this.#commit(task, retrieved, watch);
    const depth = await this.#depthOf(task, retrieved, watch, chooseDepth);
    return this.#commit(task, { ...retrieved, depth }, watch);
  }

  /** Asks the source, beside a search, what became of the memories that the conversation has from it. Not where nothing is searched. */
  async #check(task: ComposeTask): Promise<SourceCheck> {
    const { scope, request, signal } = task;
    if (request.memories !== null || request.conversationId === null || !this.#checks.isPossible)
      return NOTHING_CHECKED;
    const standing = await retryWhileLocked(() =>
      this.on.scopes.use(scope, (working) => {
        rejectOutdated(task, working);
        return this.#drafts.standing(working, request);
      }),
    );
    return this.on.jobs.untilClosing(signal, (stop) => this.#checks.check(scope, standing, stop));
  }

  /** Looks memories up; meanwhile the engine computes the prompt's prefix, if the hook is set. */
  async #searchWhileWarmingUp(task: ComposeTask): Promise<MemoryLookup> {
    const { scope, request, signal, hooks } = task;
    const { scopes, parts } = this.on;
    const isSearched = request.memories === null && parts.source !== null;
    const head =
      isSearched && hooks.whileSearching !== undefined
        ? await scopes.use(scope, (working) => {
            rejectOutdated(task, working);
            return this.#drafts.coldHead(working, request);
          })
        : null;
    const ended = head === null ? undefined : hooks.whileSearching?.(head);
    const lookup = await this.#lookUp(scope, request, signal);
    await ended?.();
    return lookup;
  }

  /**
   * A repeated request id whose answer was erased, because it may have quoted a forgotten memory, is answered anew: evicts the erased
   * prompt from the index.
   */
  async #dropErasedAnswer(scope: Scope, { requestId }: ComposeRequest): Promise<void> {
    const { scopes, parts } = this.on;
    const { store, residency = KEEPS_ALL } = parts;
    if (requestId === null) return;
    await retryWhileLocked(() => scopes.use(scope, (working) => evictIn(working, store, [requestId], residency)));
  }

  /** Whether a request of this id is stored. Its answer may have been erased. */
  async #isAnswered(scope: Scope, { requestId }: ComposeRequest): Promise<boolean> {
    return requestId !== null && (await this.on.parts.store.findServed(scope, requestId)) !== null;
  }

  /** Plans a prompt and commits it. */
  async #commit(task: ComposeTask, retrieved: Retrieved, watch: DeletionWatch): Promise<ComposeAnswer> {
    const { scope, request, signal } = task;
    const { beforeStored, planned: onPlanned } = task.hooks;
    const { answer, observed } = await retryWhileLocked(() => {
      // Checked in every retry: another process may lock the database for longer than the caller waits.
      if (signal?.aborted) throw new AbandonedRequestError();
      return this.on.scopes.use(
        scope,
        async (working) => {
          const planned = await this.#planner.plan(working, request, retrieved);
          const { deletions } = working.base;
          onPlanned?.(working.watch());
          if (planned.isRepeated) return planned;
          rejectOutdated(task, working);
          if (task.isAnnounced && deletions.users !== watch.since.users) throw new DeletedWhileSentError();
          // The commit finds out whether these are still the stored ones.
          if (!watch.covers(deletions)) throw new DeletedMeanwhileError();
          if (request.dryRun) return planned;
          if (beforeStored !== undefined && this.#storesWell) {
            // An outdated answer must not be announced.
            await working.check();
            task.isAnnounced = true;
            beforeStored(planned.answer);
            // Lets the socket send what `beforeStored` wrote before the store's work blocks the event loop.
            await new Promise<void>((written) => process.nextTick(written));
          }
          await planned.commit().catch((error: unknown) => {
            // Not announced again by the next attempt either.
            if (error instanceof StoreUnavailableError) this.#storesWell = false;
            throw error;
          });
          return planned;
        },
        request.conversationId,
      );
    });
    // Planning gave labels to memories in the working state, which nothing stores now.
    if (request.dryRun) this.on.scopes.drop(scope);
    else if (observed !== null && request.recordUsage !== false) this.on.observer.composed(observed);
    return answer;
  }

  /** Chooses the depth, within the user's queue, so that the drafts match the prompt that is composed. */
  async #depthOf(
    task: ComposeTask,
    retrieved: Retrieved,
    watch: DeletionWatch,
    chooseDepth: ChooseDepth,
  ): Promise<ChosenDepth> {
    const { scope, request, signal } = task;
    const { scopes } = this.on;
    const draft = (depth: Depth | null) =>
      retryWhileLocked(() =>
        scopes.use(scope, (working) => {
          rejectOutdated(task, working);
          if (!watch.covers(working.base.deletions)) throw new DeletedMeanwhileError();
          return this.#drafts.draft(working, request, retrieved, depth);
        }),
      );
    try {
      const depth = await chooseDepth({ draft });
      if (signal?.aborted) throw new AbandonedRequestError();
      return depth;
    } catch (error) {
      // The drafts assigned labels to memories in the working state, which nothing stores now.
      scopes.drop(scope);
      throw error;
    }
  }

  #lookUp(scope: Scope, request: ComposeRequest, signal?: CallerSignal): Promise<MemoryLookup> {
    const { source } = this.#lookup;
    // No source is asked, so there is nothing to abort.
    if (source === null || request.memories !== null)
      return lookUpMemories(this.#lookup, scope, request, this.on.jobs.closing);
    const lookUp = () =>
      this.on.jobs.untilClosing(signal, (stop) => lookUpMemories(this.#lookup, scope, request, stop));
    const topK = request.topK ?? this.#lookup.topK ?? DEFAULT_TOP_K;
    return inSpan("memstem.search", { "memstem.source": source.name, "memstem.top_k": topK }, async (span) => {
      const start = this.on.parts.now();
      const lookup = await lookUp();
      const outcome = "failed" in lookup ? lookup.failed.failure.kind : "ok";
      this.on.observer.searched({ outcome, ms: Math.max(0, this.on.parts.now() - start) });
      span.setAttribute("memstem.found", "found" in lookup ? lookup.found.length : 0);
      if ("failed" in lookup) span.setStatus({ code: SpanStatusCode.ERROR, message: lookup.failed.failure.kind });
      return lookup;
    });
  }
}

/** Throws {@link OutdatedHistoryError} where the scope knows of a deletion that messages which memstem read for the request do not. */
function rejectOutdated({ hooks: { readSince } }: ComposeTask, { base }: Pick<WorkingScope, "base">): void {
  if (readSince?.isBehind(base.deletions) === true) throw new OutdatedHistoryError();
}
