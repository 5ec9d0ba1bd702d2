/*
 * compose: one request of a user becomes a stored prompt: request → retrieved blocks → plan → commit → answer
 * (docs/internals/architecture.md, "The road of a prompt").
 * Enters: a checked {@link ComposeRequest}, at the front of its user's queue. Leaves: a {@link PlannedPrompt} that is in the store, and
 * the same answer for a repeated request id; of a dry run nothing is stored. A failing memory source causes a warning; a deletion
 * meanwhile starts the request again.
 */

import { SpanStatusCode } from "@opentelemetry/api";
import {
  type AgentId,
  type ConversationId,
  type Depth,
  type Digest,
  KEEPS_ALL,
  type MemoryId,
  type RequestId,
  type Scope,
  type TokenizedPrompt,
  type UserId,
  withSpanReferences,
} from "../../core/index.js";
import type { EngineEmission, EngineName } from "../../engines/adapters/engine-adapter.js";
import { type CommitBase, MAX_ATTEMPTS, StaleScopeError } from "../../store/api/store.js";
import type { ComposeAnswer } from "../base/call-types.js";
import {
  AbandonedRequestError,
  DeletedMeanwhileError,
  DeletedWhileSentError,
  StoreUnavailableError,
} from "../base/errors.js";
import type { MemprefixObserver } from "../base/memprefix-observer.js";
import type { TenantParts } from "../base/memprefix-parts.js";
import { inSpan } from "../base/spans.js";
import type { Tenant } from "../base/tenant.js";
import type { EngineLaw, RatioKey, TokenRatios } from "../learning/engine-measures.js";
import { evictIn } from "../learning/engine-reports.js";
import { LockRetries, retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import { DeletionWatch, sentAs, type WorkingScope, type WorkingScopes } from "../scopes/working-scopes.js";
import { plainPrompt, sessionKeyOf } from "./compose-answer.js";
import { type ComposeRequest, isTry, topKOf } from "./compose-request.js";
import {
  type ChosenDepth,
  type ColdHead,
  type DraftAt,
  type DraftedPrompt,
  type KnownTexts,
  type PlannedCommit,
  PromptLimits,
  PromptPlanner,
} from "./prompt-planner.js";
import type { PromptRouting } from "./prompt-routing.js";
import {
  type LookupParts,
  lookUpMemories,
  type MemoryLookup,
  NOTHING_CHECKED,
  type Retrieved,
  type SourceCheck,
  SourceChecks,
  type WaitingLookup,
  withCheck,
} from "./retrieval.js";

/** The lookup of a batch's request, and the memories of it that the plan places first, by the digests of their texts. */
interface FoundAhead {
  readonly lookup: WaitingLookup;
  readonly front: readonly Digest[];
}

/** A request to compose, and its caller. */
export interface ComposeCall {
  readonly request: ComposeRequest;
  /** Aborted when the caller is gone. */
  readonly signal?: AbortSignal | undefined;
  /**
   * What was looked up ahead; such a request was accepted before. Memories that it brought are not composed once the user was deleted:
   * {@link DeletedMeanwhileError}.
   */
  readonly found?: FoundAhead | undefined;
  /** Whether its prompt is sent before it is stored, where it may be. Default: no. */
  readonly isSentAhead?: boolean;
}

/** A prompt with its answer, which is final once it is committed. */
export interface PlannedPrompt {
  readonly answer: ComposeAnswer;
  /** Detects deletions of the user's data after the prompt was planned. */
  readonly watch: DeletionWatch;
  /**
   * Whether it may be sent to its engine before it is stored, which may still fail. Where the user is deleted then, composing rejects with
   * {@link DeletedWhileSentError}: what was sent is the last that is made of the request.
   */
  readonly mayBeSent: boolean;
  /** Stores it, unless it repeats a stored answer or is of a dry run. False: another process was first, and it has to be planned again. */
  commit(): Promise<boolean>;
}

/** Takes a request from its user's queue to a committed prompt. Called again where a deletion starts the request again. */
export type Drive = (composing: ComposingRequest) => Promise<PlannedPrompt>;

/** Stores a prompt with as many of its memories as are chosen; null: with all. */
export const storeAtDepth =
  (choose: (draftAt: DraftAt) => Promise<ChosenDepth> | null): Drive =>
  async (composing) => {
    const retrieved = await composing.retrieve();
    const chosen = await choose((depth) => composing.draft(retrieved, depth));
    for (;;) {
      const planned = await composing.plan(retrieved, chosen);
      if (await planned.commit()) return planned;
    }
  };

/** The plain drive: nothing comes between. */
const storeAtOnce = storeAtDepth(() => null);

/** Dependencies of a tenant's composer. */
export interface ComposerParts {
  readonly parts: TenantParts;
  readonly tenant: Tenant;
  readonly scopes: WorkingScopes;
  readonly jobs: TenantQueues;
  readonly law: EngineLaw;
  readonly ratios: TokenRatios;
  readonly routing: PromptRouting;
  readonly observer: Required<MemprefixObserver>;
  /** Forgets memories that their source no longer has, from within the user's queue. */
  readonly forgetGone: (userId: UserId, memoryIds: readonly MemoryId[]) => Promise<void>;
}

/** What composing works with. */
interface ComposingParts extends ComposerParts {
  readonly planner: PromptPlanner;
  readonly retrieval: LookupParts;
  readonly checks: SourceChecks;
  /** Whether the last prompt could be stored: if not, the next one is sent only after it is stored. */
  storesWell: boolean;
}

/** Composes prompts of one tenant's users, each in its user's queue. */
export class PromptComposer {
  readonly #on: ComposingParts;

  constructor(on: ComposerParts) {
    const { source, defaults, now } = on.parts;
    this.#on = {
      ...on,
      planner: new PromptPlanner(on.parts, on.tenant, on.law, new PromptLimits(on.parts, on.ratios), on.routing),
      retrieval: { source, now, defaults },
      checks: new SourceChecks(source, on.parts.defaults.search?.filters),
      storesWell: true,
    };
  }

  /**
   * Composes a prompt. Rejects with `BusyUserError` if the user's queue is full, and if the store fails; a failing memory source only
   * causes a warning. A request that is still waiting when its caller is gone is not composed, because nobody would see its answer and the
   * turn would stay in the conversation: {@link AbandonedRequestError}. If memories were deleted since a lookup ahead, they are looked up
   * again.
   */
  async compose(given: ComposeCall, drive: Drive = storeAtOnce): Promise<PlannedPrompt> {
    const call = { ...given, request: this.#withoutSpans(given.request) };
    const { request, found } = call;
    const { jobs } = this.#on;
    if (found === undefined) jobs.rejectIfBusy(request.userId);
    const attributes = { "memprefix.layout": request.conversationId === null ? "single" : "conversation" };
    return inSpan("memprefix.compose", attributes, async (span) => {
      const planned = await jobs.run(request.userId, () => this.#inTurn(call, drive));
      this.#on.storesWell = true;
      const { policy, retention, totalTokens, expectedCachedTokens, miss } = planned.answer.plan;
      span.setAttributes({
        "memprefix.policy": policy,
        "memprefix.retention": retention,
        "memprefix.prompt_tokens": totalTokens,
        "memprefix.expected_cached_tokens": expectedCachedTokens,
        ...(miss === null ? {} : { "memprefix.miss.cause": miss.cause, "memprefix.miss.tokens": miss.tokens }),
      });
      return planned;
    });
  }

  /** The memories for a request that is composed later. Does not reject if the source fails. */
  async lookUp(request: ComposeRequest, signal?: AbortSignal): Promise<WaitingLookup> {
    const { jobs, parts } = this.#on;
    const scope = jobs.scopeOf(request.userId, request.agentId);
    const watch = await DeletionWatch.begin(parts.store, scope.tenant, scope.userId);
    if (await isAnswered(this.#on, scope, request)) return { found: [] };
    return { ...(await lookUp(this.#on, scope, request, signal)), watch };
  }

  /**
   * What the scope of a batch's request knows for planning it together with others that have the same messages before their memories.
   * Null where the store does not answer: the batch is planned without.
   *
   * @param texts each of the requests' memories, by the digests of their texts
   */
  known(request: ComposeRequest, texts: readonly (readonly Digest[])[]): Promise<KnownTexts | null> {
    return this.#read(request, (working) => this.#on.planner.known(working, this.#withoutSpans(request), texts));
  }

  /** The search paths of the requests of one scope in its cluster tree; null where the store does not answer. */
  clusterPaths(
    request: ComposeRequest,
    texts: readonly (readonly Digest[])[],
  ): Promise<readonly (readonly number[])[] | null> {
    return this.#read(request, async (working) => this.#on.planner.clusterPaths(working, texts));
  }

  async #read<T>({ userId, agentId }: ComposeRequest, read: (working: WorkingScope) => Promise<T>): Promise<T | null> {
    const { jobs, scopes } = this.#on;
    try {
      return await retryWhileLocked(() => scopes.read(jobs.scopeOf(userId, agentId), read));
    } catch (error) {
      if (error instanceof StoreUnavailableError) return null;
      throw error;
    }
  }

  /** An opaque and stable key: one per conversation of a user, or, without one, per user. */
  sessionKey(userId: UserId, agentId: AgentId | null, conversationId: ConversationId | null): string {
    const { jobs, tenant } = this.#on;
    return sessionKeyOf(jobs.scopeOf(userId, agentId), conversationId, tenant.cacheSecret);
  }

  /** About how many tokens of the engine's so many of memprefix's are, in this user's prompts for this model. */
  engineTokens(tokens: number, of: RatioKey): number {
    const { parts, ratios } = this.#on;
    return parts.sharedCache?.engineTokens(tokens) ?? Math.round(tokens * ratios.meanOf(of));
  }

  /** Takes a prompt that was sent as its engine sees it. */
  tokenized(userId: UserId, agentId: AgentId | null, id: RequestId, prompt: TokenizedPrompt): void {
    const { parts, jobs } = this.#on;
    parts.sharedCache?.tokenized(sentAs(jobs.scopeOf(userId, agentId), id), prompt);
  }

  /** What a caller sends is read as it will stand in the prompt, so histories, tokens and expectations are all of that. */
  #withoutSpans(request: ComposeRequest): ComposeRequest {
    if (request.dedupe !== "spans") return request;
    return { ...request, messages: withSpanReferences(request.messages) };
  }

  /**
   * Fields for a request to the engine whose messages are not composed.
   *
   * @param userId null: the request names nobody
   */
  plainFields(userId: UserId | null, agentId: AgentId | null, engine: EngineName | null): EngineEmission["fields"] {
    const { parts, jobs, tenant } = this.#on;
    const scope = userId === null ? null : jobs.scopeOf(userId, agentId);
    const prompt = plainPrompt(parts.newRequestId(), scope, tenant.cacheSecret);
    return parts.engines[engine ?? parts.defaults.engineFamily].emit(prompt).fields;
  }

  /** Starts again if another process deletes the user or one of their memories meanwhile, because the lookup may contain it. */
  async #inTurn(call: ComposeCall, drive: Drive): Promise<PlannedPrompt> {
    const { request, found } = call;
    const composing = new ComposingRequest(this.#on, call);
    for (let lookup = found?.lookup; ; lookup = undefined) {
      try {
        return (await composing.begin(lookup)) ?? (await drive(composing));
      } catch (error) {
        if (!(error instanceof DeletedMeanwhileError)) throw error;
        if (request.memories !== null && (await lookup?.watch?.isUserDeleted())) throw error;
      } finally {
        composing.end();
      }
    }
  }
}

/** One request at the front of its user's queue. */
export class ComposingRequest {
  readonly #scope: Scope;
  #lookup: WaitingLookup | undefined;
  /** What a commit would have built on when it began. */
  #base: CommitBase = { version: null, deletions: { users: 0, memories: 0 } };
  /** Whether a request of its id is stored, whose answer was erased. */
  #isKnown = false;
  /** Whether a prompt of it may have been sent. */
  #isSent = false;
  /** Whether the scope in memory has labels and turns that are not stored. */
  #isAhead = false;
  #notStored: PlannedCommit | null = null;
  #staleCommits = 0;
  #retries: LockRetries | null = null;

  constructor(
    private readonly on: ComposingParts,
    private readonly call: ComposeCall,
  ) {
    const { request } = call;
    this.#scope = on.jobs.scopeOf(request.userId, request.agentId);
  }

  /** Gives the stored answer of a repeated request id; null: it is to be composed. */
  async begin(waiting: WaitingLookup | undefined): Promise<PlannedPrompt | null> {
    const { scopes, planner } = this.on;
    const { request } = this.call;
    this.#rejectAbandoned();
    this.#base = await retryWhileLocked(() => scopes.baseOf(this.#scope, request.conversationId));
    // Where another process has stored the scope since, the commit finds out.
    this.#isKnown = this.#base.version !== null && (await isAnswered(this.on, this.#scope, request));
    if (this.#isKnown) {
      const repeated = await this.#use(async (working) => {
        const answer = await planner.repeat(working, request);
        return answer && asStored(answer, working.watch());
      });
      if (repeated !== null) return repeated;
    }
    // A request that was already answered at lookup has no watch; its answer may be gone since.
    this.#lookup = waiting?.watch === undefined ? undefined : waiting;
    return null;
  }

  /** What an engine can compute before memories are found; null where nothing is searched for, or most of it should be cached. */
  async coldHead(): Promise<ColdHead | null> {
    const { parts, planner } = this.on;
    const { request } = this.call;
    if (request.memories !== null || parts.source === null || this.#lookup !== undefined) return null;
    return this.#use((working) => planner.coldHead(working, request));
  }

  /** The request's memories, or those that the source finds. Does not reject if the source fails. */
  async retrieve(): Promise<Retrieved> {
    const { request, signal, found } = this.call;
    const { tenant, userId } = this.#scope;
    // Begins where the scope in memory was loaded: a deletion since then makes the commit stale.
    const watch = this.#lookup?.watch ?? new DeletionWatch(this.on.parts.store, tenant, userId, this.#base.deletions);
    const looking = this.#lookup ?? lookUp(this.on, this.#scope, request, signal);
    const [searched, check] = await Promise.all([looking, this.#check()]);
    const { lookup, gone } = withCheck(this.on.retrieval, request, searched, check);
    if (gone.length > 0) {
      // Also in a dry run: what the source has deleted is to be nowhere.
      await this.on.forgetGone(request.userId, gone);
      // What was looked up, and what is known, may have been about them.
      throw new DeletedMeanwhileError();
    }
    if (this.#isKnown && request.dryRun !== true) await this.#dropErasedAnswer();
    return { lookup, front: found?.front ?? [], freeAt: this.#isKnown ? undefined : this.#base, watch };
  }

  /** Drafts the prompt at a depth; null: with all its blocks. Serves and stores nothing. */
  draft(retrieved: Retrieved, depth: Depth | null): Promise<DraftedPrompt> {
    this.#isAhead = true;
    return this.#use((working) => {
      if (!retrieved.watch.covers(working.base.deletions)) throw new DeletedMeanwhileError();
      return this.on.planner.draft(working, this.call.request, retrieved, depth);
    });
  }

  /** Plans the prompt. Plan again where its commit says so, and only then. */
  plan(retrieved: Retrieved, depth: ChosenDepth | null = null): Promise<PlannedPrompt> {
    const { request, isSentAhead = false } = this.call;
    return this.#use(async (working) => {
      // In every attempt: another process may lock the database for longer than the caller waits.
      this.#rejectAbandoned();
      this.#drop();
      const { answer, commit } = await this.on.planner.plan(working, request, retrieved, depth);
      const watch = working.watch();
      if (commit === null) return asStored(answer, watch);
      this.#isAhead = true;
      this.#notStored = commit;
      const { deletions } = working.base;
      if (this.#isSent && deletions.users !== retrieved.watch.since.users) throw new DeletedWhileSentError();
      // The commit finds out whether these are still the stored ones.
      if (!retrieved.watch.covers(deletions)) throw new DeletedMeanwhileError();
      const mayBeSent = isSentAhead && request.dryRun !== true && this.on.storesWell;
      // An outdated prompt must not be sent.
      if (mayBeSent) await working.check();
      if (mayBeSent) this.#isSent = true;
      return { answer, watch, mayBeSent, commit: () => this.#commit(commit, mayBeSent) };
    });
  }

  /** Leaves the scope as it is stored. */
  end(): void {
    this.#drop();
    if (this.#isAhead) this.on.scopes.drop(this.#scope);
    this.#isAhead = false;
  }

  /** The engine's cache is planned without the prompt that was not stored. */
  #drop(): void {
    this.#notStored?.drop();
    this.#notStored = null;
  }

  async #commit({ store, observed }: PlannedCommit, isSent: boolean): Promise<boolean> {
    const { request } = this.call;
    if (request.dryRun === true) return true;
    // Lets the socket send what was written before the store's work blocks the event loop.
    if (isSent) await new Promise<void>((written) => process.nextTick(written));
    try {
      await store();
    } catch (error) {
      this.#drop();
      this.on.scopes.drop(this.#scope);
      // The next attempt is not sent ahead either.
      if (error instanceof StoreUnavailableError) this.on.storesWell = false;
      const isStale = error instanceof StaleScopeError;
      if (isStale && ++this.#staleCommits % MAX_ATTEMPTS !== 0) return false;
      this.#retries ??= new LockRetries();
      await this.#retries.after(isStale ? new StoreUnavailableError("busy", { cause: error }) : error);
      return false;
    }
    this.#isAhead = false;
    this.#notStored = null;
    if (!isTry(request)) this.on.observer.composed(observed);
    return true;
  }

  /** Beside a search, checks in the source the memories that the conversation has from it. Not where nothing is searched. */
  async #check(): Promise<SourceCheck> {
    const { checks, jobs, planner } = this.on;
    const { request, signal } = this.call;
    if (request.memories !== null || request.conversationId === null || !checks.isPossible) return NOTHING_CHECKED;
    const standing = await this.#use((working) => planner.standing(working, request));
    return jobs.untilClosing(signal, (stop) => checks.check(this.#scope, standing, request.dryRun === true, stop));
  }

  /**
   * A repeated request id whose answer was erased, because it may have quoted a forgotten memory, is answered again: evicts the erased
   * prompt from the index.
   */
  async #dropErasedAnswer(): Promise<void> {
    const { store, residency = KEEPS_ALL } = this.on.parts;
    const { requestId } = this.call.request;
    if (requestId === null) return;
    await this.#use((working) => evictIn(working, store, [requestId], residency));
  }

  #use<T>(work: (working: WorkingScope) => T | Promise<T>): Promise<T> {
    const { conversationId } = this.call.request;
    return retryWhileLocked(() => this.on.scopes.use(this.#scope, work, conversationId));
  }

  #rejectAbandoned(): void {
    if (this.call.signal?.aborted) throw new AbandonedRequestError();
  }
}

/** A prompt that is stored already. */
function asStored(answer: ComposeAnswer, watch: DeletionWatch): PlannedPrompt {
  return { answer, watch, mayBeSent: false, commit: async () => true };
}

/** Whether a request of this id is stored. Its answer may have been erased. */
async function isAnswered({ parts }: ComposerParts, scope: Scope, { requestId }: ComposeRequest): Promise<boolean> {
  return requestId !== null && (await parts.store.findServed(scope, requestId)) !== null;
}

async function lookUp(
  { retrieval, jobs, parts, observer }: ComposingParts,
  scope: Scope,
  request: ComposeRequest,
  signal: AbortSignal | undefined,
): Promise<MemoryLookup> {
  const { source } = retrieval;
  // No source is searched, so there is nothing to abort.
  if (source === null || request.memories !== null) return lookUpMemories(retrieval, scope, request, jobs.closing);
  const topK = topKOf(request, parts.defaults);
  return inSpan("memprefix.search", { "memprefix.source": source.name, "memprefix.top_k": topK }, async (span) => {
    const start = parts.now();
    const lookup = await jobs.untilClosing(signal, (stop) => lookUpMemories(retrieval, scope, request, stop));
    const outcome = "failed" in lookup ? lookup.failed.failure.kind : "ok";
    observer.searched({ outcome, ms: Math.max(0, parts.now() - start) });
    span.setAttribute("memprefix.found", "found" in lookup ? lookup.found.length : 0);
    if ("failed" in lookup) span.setStatus({ code: SpanStatusCode.ERROR, message: lookup.failed.failure.kind });
    return lookup;
  });
}
