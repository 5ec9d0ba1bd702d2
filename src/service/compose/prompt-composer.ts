/*
 * compose: a user's request becomes a stored prompt: request → retrieved blocks → plan → commit → answer
 * (docs/internals/architecture.md, "The road of a prompt").
 * Enters: a checked {@link ComposeRequest}, at the front of its user's queue. Leaves: the answer of a stored prompt; the same one for a
 * repeated request id. A dry run stores nothing.
 */

import { SpanStatusCode } from "@opentelemetry/api";
import {
  type AgentId,
  type ChatMessage,
  type ConversationId,
  type Depth,
  type MemoryId,
  type RequestId,
  type Scope,
  type UserId,
  withSpanReferences,
} from "../../core/index.js";
import type { JsonObject } from "../../core/text/json.js";
import type { EngineEmission, EngineName } from "../../engines/adapters/engine-adapter.js";
import { withOwnSalts } from "../../engines/adapters/salts.js";
import type { TokenizedPrompt } from "../../engines/kv-events/observed-cache.js";
import type { PlannedAnswer } from "../base/call-types.js";
import { AbandonedRequestError, DeletedMeanwhileError, StoreUnavailableError } from "../base/errors.js";
import type { MemprefixObserver } from "../base/memprefix-observer.js";
import { engineFamilyFor, type TenantParts } from "../base/memprefix-parts.js";
import { inSpan } from "../base/spans.js";
import type { Tenant } from "../base/tenant.js";
import type { EngineLaw, RatioKey, TokenRatios } from "../learning/engine-measures.js";
import type { TenantQueues } from "../scopes/user-queues.js";
import { isServed, sentAs, type WorkingScope, type WorkingScopes } from "../scopes/working-scopes.js";
import { type ClusteredTexts, clustersOf, type KnownTexts, replaceClusters } from "./batch-knowledge.js";
import { plainPrompt, saltOf, sessionKeyOf, tenantKeyOf } from "./compose-answer.js";
import { type BatchScope, type ComposeRequest, isTry, topKOf } from "./compose-request.js";
import { PromptLimits } from "./prompt-limits.js";
import {
  type ChosenDepth,
  type ColdHead,
  type DraftAt,
  type DraftedPrompt,
  type PlannedCommit,
  PromptPlanner,
} from "./prompt-planner.js";
import type { PromptRouting } from "./prompt-routing.js";
import { recognise } from "./recognition.js";
import {
  lookUpMemories,
  type MemoryLookup,
  NOTHING_CHECKED,
  type Retrieved,
  type SourceCheck,
  SourceChecks,
  type WaitingLookup,
  withCheck,
} from "./retrieval.js";

export interface ComposeCall {
  readonly request: ComposeRequest;
  readonly signal?: AbortSignal | undefined;
  /** The result of an earlier lookup. {@link DeletedMeanwhileError} if the request brought its memories and the user was deleted since. */
  readonly found?: (Retrieved & { readonly lookup: WaitingLookup }) | undefined;
}

/** Most starts of a request, if another process deletes its user each time. */
const MOST_STARTS = 3;

/** Takes a request from its user's queue to a stored prompt. Runs again if the user was deleted meanwhile. */
export type Drive = (composing: ComposingRequest) => Promise<PlannedAnswer>;

/** Stores a prompt with the chosen number of memories; null: with all. */
export const storeAtDepth =
  (choose: (draftAt: DraftAt) => Promise<ChosenDepth> | null): Drive =>
  async (composing) => {
    const retrieved = await composing.retrieve();
    const chosen = await choose((depth) => composing.draft(retrieved, depth));
    return composing.store(retrieved, chosen);
  };

const storeAtOnce = storeAtDepth(() => null);

export interface ComposerParts {
  readonly parts: TenantParts;
  readonly tenant: Tenant;
  readonly scopes: WorkingScopes;
  readonly jobs: TenantQueues;
  readonly law: EngineLaw;
  readonly ratios: TokenRatios;
  readonly routing: PromptRouting;
  readonly observer: Required<MemprefixObserver>;
  /** For memories that their source no longer has. Call it from the user's queue. */
  readonly forgetGone: (userId: UserId, memoryIds: readonly MemoryId[]) => Promise<void>;
  /** Called with a conversation's messages, as its client has them. */
  readonly onHistory: (scope: Scope, id: ConversationId, messages: readonly ChatMessage[]) => void;
}

interface ComposingParts extends ComposerParts {
  readonly planner: PromptPlanner;
  readonly checks: SourceChecks;
}

/** Composes prompts of one tenant's users, each in its user's queue. */
export class PromptComposer {
  readonly #on: ComposingParts;

  constructor(on: ComposerParts) {
    const { source, defaults } = on.parts;
    this.#on = {
      ...on,
      planner: new PromptPlanner(on.parts, on.tenant, on.law, new PromptLimits(on.parts, on.ratios), on.routing),
      checks: new SourceChecks(source, defaults.search?.filters),
    };
  }

  /**
   * Rejects with `BusyUserError` if the user's queue is full, and if the store fails; a failing memory source only causes a warning. Rejects with
   * {@link AbandonedRequestError} if the caller leaves before its turn: otherwise the conversation would keep a turn that nobody saw. If the
   * user was deleted since an earlier lookup, memories are looked up again.
   */
  async compose(given: ComposeCall, drive: Drive = storeAtOnce): Promise<PlannedAnswer> {
    const call = { ...given, request: this.#withoutSpans(given.request) };
    const { request, found } = call;
    const { jobs, onHistory } = this.#on;
    const { userId, agentId, conversationId, messages, history, dryRun } = request;
    if (found === undefined) jobs.rejectIfBusy(userId);
    if (conversationId !== null && history !== "stored" && dryRun !== true)
      onHistory(jobs.scopeOf(userId, agentId), conversationId, messages);
    const attributes = { "memprefix.layout": conversationId === null ? "single" : "conversation" };
    return inSpan("memprefix.compose", attributes, async (span) => {
      const answer = await jobs.run(request.userId, () => this.#inTurn(call, drive));
      const { policy, retention, totalTokens, expectedCachedTokens, miss } = answer.plan;
      span.setAttributes({
        "memprefix.policy": policy,
        "memprefix.retention": retention,
        "memprefix.prompt_tokens": totalTokens,
        "memprefix.expected_cached_tokens": expectedCachedTokens,
        ...(miss === null ? {} : { "memprefix.miss.cause": miss.cause, "memprefix.miss.tokens": miss.tokens }),
      });
      return answer;
    });
  }

  /** Looks up memories for a request that is composed later. Does not reject if the source fails. */
  async lookUp(request: ComposeRequest, signal?: AbortSignal): Promise<WaitingLookup> {
    const { jobs, parts } = this.#on;
    const scope = jobs.scopeOf(request.userId, request.agentId);
    const userNumber = await parts.store.begin(scope, parts.now());
    if (request.requestId !== null && (await isServed(parts.store, scope, request.requestId))) return { found: [] };
    return { ...(await lookUp(this.#on, scope, request, signal)), userNumber };
  }

  /** What the scope knows for planning requests after the same messages. Null if the store does not answer: the batch is planned without it. */
  known(request: ComposeRequest, texts: readonly (readonly string[])[]): Promise<KnownTexts | null> {
    return this.#read(request, (working) => this.#on.planner.known(working, this.#withoutSpans(request), texts));
  }

  /** The scope's cluster tree; null if the store does not answer. */
  clusters(scope: BatchScope): Promise<readonly ClusteredTexts[] | null> {
    return this.#read(scope, clustersOf);
  }

  /** Stores the cluster tree that a batch's planner made; the scope keeps its own if the store does not answer. */
  async replaceClusters(scope: BatchScope, nodes: readonly ClusteredTexts[]): Promise<void> {
    await this.#read(scope, (working) => replaceClusters(working, nodes));
  }

  async #read<T>(scope: BatchScope, read: (working: WorkingScope) => T | Promise<T>): Promise<T | null> {
    try {
      return await this.#on.jobs.inScope(scope, read);
    } catch (error) {
      if (error instanceof StoreUnavailableError) return null;
      throw error;
    }
  }

  /** An opaque, stable key: per conversation of a user, or else per user. */
  sessionKey(userId: UserId, agentId: AgentId | null, conversationId: ConversationId | null): string {
    const { jobs, tenant } = this.#on;
    return sessionKeyOf(jobs.scopeOf(userId, agentId), conversationId, tenant.cacheSecret);
  }

  /** Converts memprefix's tokens to the engine's: an estimate for this user and model. */
  engineTokens(tokens: number, of: RatioKey): number {
    const { parts, ratios } = this.#on;
    return parts.cache?.engineTokens(tokens) ?? Math.round(tokens * ratios.meanOf(of));
  }

  /** Records the engine's tokens of a prompt that was sent. */
  tokenized(userId: UserId, agentId: AgentId | null, id: RequestId, prompt: TokenizedPrompt): void {
    const { parts, jobs } = this.#on;
    parts.cache?.tokenized(sentAs(jobs.scopeOf(userId, agentId), id), prompt);
  }

  /** The messages as the prompt will have them, so that histories, tokens and expectations agree. */
  #withoutSpans(request: ComposeRequest): ComposeRequest {
    if (request.dedupe !== "spans") return request;
    return { ...request, messages: withSpanReferences(request.messages) };
  }

  /** Engine fields for messages that are not composed. @param userId null: the request names nobody */
  plainFields(
    userId: UserId | null,
    agentId: AgentId | null,
    { engine, model }: { readonly engine: EngineName | null; readonly model: string },
  ): EngineEmission["fields"] {
    const { parts, jobs, tenant } = this.#on;
    const scope = userId === null ? null : jobs.scopeOf(userId, agentId);
    const prompt = plainPrompt(parts.newRequestId(), scope, tenant.cacheSecret);
    return parts.engines[engine ?? engineFamilyFor(parts.defaults, model)].emit(prompt).fields;
  }

  /** A client's body with the tenant's salts: made of those that it names, else the tenant's own, whatever family the request chooses. */
  salted(body: JsonObject): JsonObject {
    const { parts, tenant } = this.#on;
    const { salt } = parts.engines[engineFamilyFor(parts.defaults, null)];
    const own = withOwnSalts(body, (name, given) => saltOf(tenant.cacheSecret, name, given));
    return salt === undefined ? own : { [salt]: tenantKeyOf(tenant.cacheSecret), ...own };
  }

  /** Starts again if the user was deleted meanwhile, since a lookup may hold their memories; at most {@link MOST_STARTS} times. */
  async #inTurn(call: ComposeCall, drive: Drive): Promise<PlannedAnswer> {
    const composing = new ComposingRequest(this.#on, call);
    let lookup = call.found?.lookup;
    for (let start = 1; ; start++, lookup = undefined) {
      try {
        return (await composing.begin(lookup)) ?? (await drive(composing));
      } catch (error) {
        const isOfDeletedUser = call.request.memories !== null && lookup?.userNumber !== undefined;
        const isAgain = error instanceof DeletedMeanwhileError && !isOfDeletedUser && start < MOST_STARTS;
        if (!isAgain) throw error;
      } finally {
        composing.end();
      }
    }
  }
}

export class ComposingRequest {
  readonly #scope: Scope;
  /** With the conversation that it is recognised to continue. */
  #request: ComposeRequest;
  #lookup: WaitingLookup | undefined;
  /** The user's row at the start; it changes with a deletion. */
  #userNumber = 0;
  /** Whether the scope in memory has labels and turns that are not stored. */
  #isAhead = false;

  constructor(
    private readonly on: ComposingParts,
    private readonly call: ComposeCall,
  ) {
    const { request } = call;
    this.#request = request;
    this.#scope = on.jobs.scopeOf(request.userId, request.agentId);
  }

  /** The stored answer of a repeated request id; null: compose. */
  async begin(waiting: WaitingLookup | undefined): Promise<PlannedAnswer | null> {
    const { scopes, parts } = this.on;
    const { request } = this.call;
    this.#rejectAbandoned();
    if (request.dryRun !== true) this.#userNumber = await scopes.begin(this.#scope, parts.now());
    if (waiting?.userNumber !== undefined && waiting.userNumber !== this.#userNumber) throw new DeletedMeanwhileError();
    // A request that was already answered at lookup has no number; its answer may be gone since.
    this.#lookup = waiting?.userNumber === undefined ? undefined : waiting;
    const isUnnamed = request.isRecognised === true && request.conversationId === null;
    return request.requestId === null && !isUnnamed ? null : this.#use((working) => this.#beginIn(working, isUnnamed));
  }

  async #beginIn(working: WorkingScope, isUnnamed: boolean): Promise<PlannedAnswer | null> {
    const { request } = this.call;
    const answered = await this.on.planner.repeat(working, request);
    if (answered === null && isUnnamed)
      this.#request = { ...request, conversationId: await recognise(this.on.parts.store, working, request.messages) };
    return answered;
  }

  /** What an engine can compute before memories are found; null if nothing is searched for, or most of it should be cached. */
  async coldHead(): Promise<ColdHead | null> {
    const { parts, planner } = this.on;
    const request = this.#request;
    if (request.memories !== null || parts.source === null || this.#lookup !== undefined) return null;
    return this.#use((working) => planner.coldHead(working, request));
  }

  /** The request's memories, or those that the source finds. Does not reject if the source fails. */
  async retrieve(): Promise<Retrieved> {
    const { signal, found } = this.call;
    const request = this.#request;
    const looking = this.#lookup ?? lookUp(this.on, this.#scope, request, signal);
    const [searched, check] = await Promise.all([looking, this.#check()]);
    const { lookup, gone } = withCheck(this.on.parts, request, searched, check);
    // In a dry run too: what the source deleted must not stay anywhere. The looked-up memories are sent without it.
    if (gone.length > 0) await this.on.forgetGone(request.userId, gone);
    return { lookup, front: found?.front ?? [] };
  }

  /** Drafts the prompt at a depth; null: with all blocks. Stores nothing. */
  draft(retrieved: Retrieved, depth: Depth | null): Promise<DraftedPrompt> {
    this.#isAhead = true;
    return this.#use((working) => this.on.planner.draft(working, this.#request, retrieved, depth));
  }

  /**
   * Plans and stores the prompt while no other process changes the scope; a dry run stores nothing.
   *
   * @param sendAhead called with the prompt before it is stored; it may not be stored at all
   */
  async store(
    retrieved: Retrieved,
    depth: ChosenDepth | null = null,
    sendAhead?: (answer: PlannedAnswer) => void,
  ): Promise<PlannedAnswer> {
    const { planner } = this.on;
    const request = this.#request;
    let planned: PlannedCommit | null = null;
    try {
      const answer = await this.#use(async (working) => {
        this.#rejectAbandoned();
        if (request.dryRun !== true && working.userNumber !== this.#userNumber) throw new DeletedMeanwhileError();
        this.#isAhead = true;
        const { answer, commit } = await planner.plan(working, request, retrieved, depth);
        planned = request.dryRun === true ? null : commit;
        if (planned !== null && sendAhead !== undefined) {
          sendAhead(answer);
          // The socket writes the prompt before this thread prepares the commit.
          await new Promise<void>((written) => process.nextTick(written));
        }
        await planned?.store();
        return answer;
      });
      if (planned !== null) this.#stored(planned);
      return answer;
    } catch (error) {
      // The prompt was not stored, so the engine's cache is planned without it.
      (planned as PlannedCommit | null)?.drop();
      throw error;
    }
  }

  #stored({ observed }: PlannedCommit): void {
    this.#isAhead = false;
    if (isTry(this.call.request)) return;
    this.on.observer.composed(observed);
  }

  /** Drops what is not stored from memory. */
  end(): void {
    if (this.#isAhead) this.on.scopes.drop(this.#scope);
    this.#isAhead = false;
  }

  /** During a search, checks the conversation's earlier memories in the source. */
  async #check(): Promise<SourceCheck> {
    const { checks, jobs, planner } = this.on;
    const { signal } = this.call;
    const request = this.#request;
    if (request.memories !== null || request.conversationId === null || !checks.isPossible) return NOTHING_CHECKED;
    const standing = await this.#use((working) => planner.standing(working, request));
    return jobs.untilClosing(signal, (stop) => checks.check(this.#scope, standing, request.dryRun === true, stop));
  }

  #use<T>(work: (working: WorkingScope) => T | Promise<T>): Promise<T> {
    return this.on.scopes.use(this.#scope, work);
  }

  #rejectAbandoned(): void {
    if (this.call.signal?.aborted) throw new AbandonedRequestError();
  }
}

async function lookUp(
  { jobs, parts, observer }: ComposingParts,
  scope: Scope,
  request: ComposeRequest,
  signal: AbortSignal | undefined,
): Promise<MemoryLookup> {
  const { source } = parts;
  // No source is searched, so there is nothing to abort.
  if (source === null || request.memories !== null) return lookUpMemories(parts, scope, request, jobs.closing);
  const topK = topKOf(request, parts.defaults);
  return inSpan("memprefix.search", { "memprefix.source": source.name, "memprefix.top_k": topK }, async (span) => {
    const start = parts.now();
    const lookup = await jobs.untilClosing(signal, (stop) => lookUpMemories(parts, scope, request, stop));
    const outcome = "failed" in lookup ? lookup.failed.failure.kind : "ok";
    observer.searched({ outcome, ms: Math.max(0, parts.now() - start) });
    span.setAttribute("memprefix.found", "found" in lookup ? lookup.found.length : 0);
    if ("failed" in lookup) span.setStatus({ code: SpanStatusCode.ERROR, message: lookup.failed.failure.kind });
    return lookup;
  });
}
