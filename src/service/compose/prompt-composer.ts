import { SpanStatusCode } from "@opentelemetry/api";
import { type Depth, type Digest, KEEPS_ALL, MAX_MEMORY_CHARACTERS, type Scope } from "../../core/index.js";
import { AbandonedRequestError, DeletedMeanwhileError, StoreUnavailableError } from "../base/errors.js";
import type { MemstemObserver } from "../base/memstem-observer.js";
import type { MemstemParts } from "../base/memstem-parts.js";
import { inSpan } from "../base/spans.js";
import type { Tenant } from "../base/tenant.js";
import type { EngineLaw } from "../learning/engine-law.js";
import { evictIn } from "../learning/evicting.js";
import { DeletionWatch } from "../scopes/deletions-meanwhile.js";
import type { Committed, StoredTurns } from "../scopes/stored-turns.js";
import type { UserTurns } from "../scopes/user-turns.js";
import { whileBusy } from "../scopes/while-busy.js";
import type { WorkingScope, WorkingScopes } from "../scopes/working-scopes.js";
import type { ChooseDepth, ChosenDepth } from "./chosen-depth.js";
import type { ComposeAnswer } from "./compose-answer.js";
import type { ComposeRequest } from "./compose-request.js";
import { type LookupParts, lookUpMemories, type MemoryLookup, type WaitingLookup } from "./memory-lookup.js";
import { type ColdHead, type PlannedPrompt, PromptPlanner, type Retrieved } from "./prompt-planner.js";

/** Who takes part in composing a prompt, in its user's turn. */
export interface ComposeHooks {
  /**
   * Called before memories are searched for, where much of what the prompt begins with should be cold; what it returns, when the search
   * has ended, and is waited for.
   */
  readonly whileSearching?: ((head: ColdHead) => () => Promise<void>) | undefined;
  /** Asked, once memories are found, how many of them the prompt is to have. */
  readonly chooseDepth?: ChooseDepth | undefined;
  /**
   * Called with the answer before it is stored, which may yet fail: nobody is to be told of it before `compose` says so. Once more, with
   * another answer, where the prompt had to be planned again; not at all where the last one could not be stored.
   */
  readonly beforeStored?: ((answer: ComposeAnswer) => void) | undefined;
}

/** One request, while its user's turn lasts. */
interface ComposeTask {
  readonly scope: Scope;
  readonly request: ComposeRequest;
  /** The order that a batch's plan gave its blocks; null where none was planned. */
  readonly order: readonly Digest[] | null;
  readonly signal: AbortSignal | undefined;
  readonly hooks: ComposeHooks;
}

/** What a tenant's composer works with. */
export interface ComposerParts {
  readonly parts: MemstemParts;
  readonly tenant: Tenant;
  readonly scopes: WorkingScopes;
  readonly turns: UserTurns;
  readonly stored: StoredTurns;
  readonly law: EngineLaw;
  /** Who is told of it now. */
  readonly observer: () => MemstemObserver | null;
}

/** Composes prompts of one tenant's users, each in its user's turn: memories are looked for, a prompt is planned, committed and stored. */
export class PromptComposer {
  readonly #lookup: LookupParts;
  readonly #planner: PromptPlanner;
  /** Whether the last prompt could be stored: where it could not, the next is told of when it is. */
  #storesWell = true;

  constructor(private readonly on: ComposerParts) {
    const { source, maxMemoryCharacters = MAX_MEMORY_CHARACTERS } = on.parts;
    this.#lookup = { source, maxMemoryCharacters };
    this.#planner = new PromptPlanner(on.parts, on.tenant, () => on.law.model);
  }

  /**
   * Composes a prompt. Rejects with `BusyUserError` where too many of the user's requests wait already, and where the store does; a
   * memory source that fails makes a warning. `signal`: the caller is gone. What it waited for then is not composed (nobody saw it, and it
   * would stand in the conversation): {@link AbandonedRequestError}.
   */
  async compose(request: ComposeRequest, signal?: AbortSignal, hooks: ComposeHooks = {}): Promise<ComposeAnswer> {
    const scope = this.on.turns.scopeOf(request.userId, request.agentId);
    this.on.turns.refuseIfBusy(request.userId);
    const compose = () => this.#compose({ scope, request, order: null, signal, hooks }, null);
    const attributes = { "memstem.layout": request.conversationId === null ? "single" : "conversation" };
    return inSpan("memstem.compose", attributes, async (span) => {
      const answer = await this.on.stored.run(request.userId, compose).catch((error: unknown) => {
        if (error instanceof StoreUnavailableError) this.#storesWell = false;
        throw error;
      });
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

  /** The memories for a request of a batch. Never rejects for a source that fails. */
  async lookUp(request: ComposeRequest, signal?: AbortSignal): Promise<WaitingLookup> {
    const scope = this.on.turns.scopeOf(request.userId, request.agentId);
    const watch = this.#watch(scope);
    if (this.#isAnswered(scope, request)) return { found: [] };
    return { ...(await this.#lookUp(scope, request, signal)), watch };
  }

  /**
   * Composes a request of a batch, whose memories are at hand and whose blocks' order is planned. What was deleted since they were looked
   * up does not come back: they are looked up again. Rejects with {@link DeletedMeanwhileError} where the user was deleted since and the
   * request brought its memories along.
   */
  composeFound(
    request: ComposeRequest,
    waiting: WaitingLookup,
    order: readonly Digest[],
    signal?: AbortSignal,
  ): Promise<ComposeAnswer> {
    const scope = this.on.turns.scopeOf(request.userId, request.agentId);
    return this.on.stored.run(request.userId, async () => {
      if (waiting.watch?.isUserDeleted && request.memories !== null) throw new DeletedMeanwhileError();
      return this.#compose({ scope, request, order, signal, hooks: {} }, waiting);
    });
  }

  /**
   * Looks memories up and composes, in the user's turn; again, where another process deleted the user, or a memory of theirs, meanwhile:
   * what was looked up before may be gone.
   *
   * @param waiting what was looked up before; null: nothing
   */
  async #compose(task: ComposeTask, waiting: WaitingLookup | null): Promise<Committed<ComposeAnswer>> {
    for (let lookup = waiting; ; lookup = null) {
      try {
        return await this.#composeOnce(task, lookup);
      } catch (error) {
        if (!(error instanceof DeletedMeanwhileError)) throw error;
      }
    }
  }

  async #composeOnce(task: ComposeTask, waiting: WaitingLookup | null): Promise<Committed<ComposeAnswer>> {
    const { scope, request, order, signal, hooks } = task;
    if (signal?.aborted) throw new AbandonedRequestError();
    // One that was answered when memories were looked up has no watch: it may be gone since.
    const found = waiting?.watch === undefined ? null : waiting;
    const watch = found?.watch ?? this.#watch(scope);
    if (watch.isDeleted) throw new DeletedMeanwhileError();
    if (this.#isAnswered(scope, request)) return this.#commit(task, null, watch);
    const lookup = found ?? (await this.#searchWhileWarmingUp(task));
    await this.#dropErasedAnswer(scope, request);
    const { chooseDepth } = hooks;
    const retrieved = { lookup, order, depth: null };
    if (chooseDepth === undefined || signal?.aborted) return this.#commit(task, retrieved, watch);
    const depth = await this.#depthOf(task, retrieved, watch, chooseDepth);
    return this.#commit(task, { ...retrieved, depth }, watch);
  }

  /** Looks memories up while what the prompt begins with is computed, where that was asked for. */
  async #searchWhileWarmingUp({ scope, request, signal, hooks }: ComposeTask): Promise<MemoryLookup> {
    const { scopes, parts } = this.on;
    const isSearched = request.memories === null && parts.source !== null;
    const head =
      isSearched && hooks.whileSearching !== undefined
        ? scopes.use(scope, (working) => this.#planner.coldHead(working, scope, request))
        : null;
    const ended = head === null ? undefined : hooks.whileSearching?.(head);
    const lookup = await this.#lookUp(scope, request, signal);
    await ended?.();
    return lookup;
  }

  /** What an id was answered with before may have quoted what is forgotten: then it is answered anew, and nothing of the first is cached. */
  async #dropErasedAnswer(scope: Scope, { requestId }: ComposeRequest): Promise<void> {
    const { scopes, parts } = this.on;
    const { store, residency = KEEPS_ALL } = parts;
    if (requestId === null || store.findServed(scope, requestId) === null) return;
    await whileBusy(() => scopes.use(scope, (working) => evictIn(working, store, scope, [requestId], residency)));
  }

  #watch({ tenant, userId }: Scope): DeletionWatch {
    return new DeletionWatch(this.on.parts.store, tenant, userId);
  }

  #isAnswered(scope: Scope, request: ComposeRequest): boolean {
    return request.requestId !== null && this.on.parts.store.findRequest(scope, request.requestId) !== null;
  }

  /** Plans a prompt and commits it. `retrieved` null: it was answered before. */
  async #commit(
    { scope, request, signal, hooks: { beforeStored } }: ComposeTask,
    retrieved: Retrieved | null,
    watch: DeletionWatch,
  ): Promise<Committed<ComposeAnswer>> {
    const { scopes, stored, parts } = this.on;
    const plan = (working: WorkingScope) => this.#planner.plan(working, scope, request, retrieved);
    /** From here to the commit no other process deletes or changes anything. */
    const begin = () => {
      parts.store.begin();
      if (watch.isDeleted) throw new DeletedMeanwhileError();
    };
    const commit = (planned: PlannedPrompt) => {
      if (!planned.isRepeated) begin();
      planned.commit();
      return stored.committed(planned);
    };
    const { result, settled } = await whileBusy(() => {
      // Looked at again and again: another process may hold the database for as long as a caller waits.
      if (signal?.aborted) throw new AbandonedRequestError();
      if (beforeStored === undefined || !this.#storesWell) return scopes.use(scope, (working) => commit(plan(working)));
      // What cannot be stored now is not to be told of, nor what is older than what is stored.
      begin();
      return scopes.useInSteps(scope, async (working) => {
        const planned = plan(working);
        if (planned.isRepeated) return commit(planned);
        beforeStored(planned.answer);
        // What that wrote to a socket leaves now, and the store's work follows.
        await new Promise<void>((written) => process.nextTick(written));
        return commit(planned);
      });
    });
    if (!result.isRepeated) this.on.observer()?.composed(result.answer);
    return { result: result.answer, settled };
  }

  /** Asks how many memories a prompt is to have. In its user's turn, so that what is drafted is what is composed. */
  async #depthOf(
    { scope, request, signal }: ComposeTask,
    retrieved: Retrieved,
    watch: DeletionWatch,
    chooseDepth: ChooseDepth,
  ): Promise<ChosenDepth> {
    const { scopes } = this.on;
    const draft = (depth: Depth | null) =>
      whileBusy(() => {
        // Drafts are tried at the engine.
        if (watch.isDeleted) throw new DeletedMeanwhileError();
        return scopes.use(scope, (working) => this.#planner.draft(working, scope, request, retrieved, depth));
      });
    try {
      const depth = await chooseDepth({ draft });
      if (signal?.aborted) throw new AbandonedRequestError();
      return depth;
    } catch (error) {
      // Its drafts gave labels to memories, and nothing stores them now.
      scopes.drop(scope);
      throw error;
    }
  }

  #lookUp(scope: Scope, request: ComposeRequest, signal?: AbortSignal): Promise<MemoryLookup> {
    const { source } = this.#lookup;
    // Nothing is waited for, so nothing has to be given up.
    if (source === null || request.memories !== null)
      return lookUpMemories(this.#lookup, scope, request, this.on.turns.closing);
    const lookUp = () =>
      this.on.turns.untilClosing(signal, (stop) => lookUpMemories(this.#lookup, scope, request, stop));
    return inSpan("memstem.search", { "memstem.source": source.name, "memstem.top_k": request.topK }, async (span) => {
      const start = this.on.parts.now();
      const lookup = await lookUp();
      const outcome = "failed" in lookup ? lookup.failed.failure.kind : "ok";
      this.on.observer()?.searched({ outcome, ms: Math.max(0, this.on.parts.now() - start) });
      span.setAttribute("memstem.found", "found" in lookup ? lookup.found.length : 0);
      if ("failed" in lookup) span.setStatus({ code: SpanStatusCode.ERROR, message: lookup.failed.failure.kind });
      return lookup;
    });
  }
}
