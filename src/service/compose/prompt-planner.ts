import { billedBy, lateInRow, unreadEnds } from "../../core/cost/expected-reads.js";
import { type ProviderPrice, priceOf } from "../../core/cost/prices.js";
import {
  batchKnowledge,
  type CacheLookup,
  type ChatMessage,
  type ClusterNode,
  type ComposeInput,
  type Composition,
  type Conversation,
  type ConversationId,
  compose,
  DEFAULT_HISTORY,
  DEFAULT_HISTORY_RATIO,
  type Depth,
  type Digest,
  draftPrompt,
  endlessLookup,
  type HistoryName,
  IN_FLIGHT_MS,
  type KnownTool,
  type Label,
  type MemoryId,
  NOTHING_INJECTED,
  newPrompt,
  ORDERING_POLICIES,
  type Ordering,
  type PromptRoot,
  plannedOrder,
  promptHead,
  type RequestId,
  renderSection,
  type Scope,
  type ScopePolicy,
  type SentAfter,
  type SentTools,
  standingMemories,
  type TurnId,
  toolsToSend,
  type Warning,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import type { EngineAdapter, EngineEmission, EngineName } from "../../engines/adapters/engine-adapter.js";
import { keepsThoughtsByName } from "../../engines/adapters/kept-thoughts.js";
import { isMistralModel } from "../../engines/adapters/mistral.js";
import type { PlannedAnswer } from "../base/call-types.js";
import type { ObservedCompose } from "../base/memprefix-observer.js";
import { type ComposeDefaults, engineFamilyFor, engineModelFor, type TenantParts } from "../base/memprefix-parts.js";
import type { Tenant } from "../base/tenant.js";
import type { EngineLaw } from "../learning/engine-measures.js";
import {
  deltaOf,
  sentAs,
  streamOf,
  userOf,
  type WorkingConversation,
  type WorkingScope,
} from "../scopes/working-scopes.js";
import {
  type AnswerForm,
  answerAgain,
  type ComposedPromptParts,
  composeAnswer,
  enginePrompt,
  type ReusePlan,
} from "./compose-answer.js";
import { type ComposeRequest, isTry, modelOf, requestDigest, topKOf } from "./compose-request.js";
import type { PromptLimits } from "./prompt-limits.js";
import type { PromptRouting, RoutablePrompt } from "./prompt-routing.js";
import { isNarrowed, type Retrieved, type SettledLookup, settleLookup, unusableWarnings } from "./retrieval.js";
import { readHistory, readPast, type SaidMessages, type StoredPast } from "./stored-history.js";

export interface Planned {
  readonly answer: PlannedAnswer;
  /** Null: the answer is a stored one. */
  readonly commit: PlannedCommit | null;
}

/** A planned prompt before it is stored. The engine's cache is planned with it until it is dropped. */
export interface PlannedCommit {
  readonly observed: ObservedCompose;
  store(): Promise<void>;
  drop(): void;
}

/** A prompt's beginning, as it would be sent. */
export interface ColdHead {
  readonly messages: readonly ChatMessage[];
  /** Null: none. */
  readonly toolTexts: readonly string[] | null;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

export interface DraftedPrompt extends ColdHead {
  readonly ordering: Ordering;
  /** How many blocks it could have. */
  readonly blocks: number;
  /** Why the engine returns no log probabilities; null if it may. */
  readonly noLogprobs: string | null;
}

/** Drafts a request's prompt at a depth; null: with all blocks. */
export type DraftAt = (depth: Depth | null) => Promise<DraftedPrompt>;

export interface ChosenDepth extends Depth {
  readonly warnings: readonly Warning[];
}

/** What a scope knows for planning a batch; blocks are digests of their texts. */
export interface KnownTexts {
  /** What should be cached, least recently used first. */
  readonly cached: readonly KnownSequence[];
  /** What recent requests retrieved, oldest first. */
  readonly recent: readonly (readonly Digest[])[];
}

/** A node of a scope's cluster tree, its blocks by the digests of their texts. */
export interface ClusteredTexts extends Omit<ClusterNode, "blocks"> {
  readonly blocks: readonly Digest[];
}

/** A sequence of blocks that should be cached, as far as one of the given requests can use it. */
export interface KnownSequence {
  readonly texts: readonly Digest[];
  /** The scope's request counter at the last use. */
  readonly lastUsed: number;
}

/** Smallest uncached prefix, in tokens: below it a warm-up request costs more than it saves. */
const MIN_COLD_TOKENS = 256;

const REQUEST_ID_REUSED: Warning = {
  code: "request_id_reused",
  message: "this request id was answered before for another request; that answer is repeated",
};

const BUDGET_UNUSED: Warning = {
  code: "memory_budget_unused",
  message: 'only the policy "carry-over" uses a memory budget; this one sends what was retrieved',
};

const NO_MEMORY_SOURCE: Warning = {
  code: "no_memory_source",
  message: "the request brings no memories, and no memory source is configured to search",
};

interface PromptMemories extends Pick<Retrieved, "front">, Pick<SettledLookup, "memories"> {
  readonly changed?: SettledLookup["changed"];
  readonly ended?: SettledLookup["ended"];
  readonly depth: Depth | null;
  /** Absent: not needed elsewhere. */
  readonly tools?: SentTools;
}

const NO_TOOLS: readonly never[] = [];

const NO_MEMORIES: PromptMemories = { memories: [], front: [], depth: null };

/** A prompt that is in the scope's state, but not yet in the store. */
interface ComposedPrompt {
  readonly composition: Composition;
  /** The conversation's newest turn before it. */
  readonly newest: TurnId | null;
  /** Null: a single prompt. */
  readonly conversation: Conversation | null;
  readonly tools: SentTools;
  readonly requestId: RequestId;
  readonly at: number;
  /** See `ReportGrounds`. */
  readonly settledAt: number;
  readonly marks: ChosenMarks;
  readonly warnings: readonly Warning[];
}

interface ChosenMarks {
  /** Ends without a cache mark: no later prompt is expected to read them. */
  readonly unread: ReturnType<typeof unreadEnds>;
  /** How many of the conversation's turns in a row came too late to read the one before. */
  readonly lateInRow: number;
}

/** Plans one tenant's prompts. What planning needs of the store is read first; planning itself is synchronous. */
export class PromptPlanner {
  /** By the request's tools: a prompt is planned in several steps. */
  readonly #tools = new WeakMap<
    readonly string[],
    { readonly known: readonly KnownTool[]; readonly sent: SentTools }
  >();

  constructor(
    private readonly parts: TenantParts,
    private readonly tenant: Tenant,
    private readonly law: EngineLaw,
    private readonly limits: PromptLimits,
    private readonly routing: PromptRouting,
  ) {}

  /** Plans one prompt, or repeats the stored answer of its id. The scope must not change before the commit. */
  async plan(
    working: WorkingScope,
    request: ComposeRequest,
    { lookup, front }: Retrieved,
    depth: ChosenDepth | null,
  ): Promise<Planned> {
    const { scope, state } = working;
    // Another process may have answered it since.
    const repeated = await this.repeat(working, request);
    if (repeated !== null) return { answer: repeated, commit: null };
    const { now, newRequestId } = this.parts;
    const at = now();
    // Prompts of concurrent requests may not be cached yet when the engine gets this one.
    const underWay = await working.requests.since(at - IN_FLIGHT_MS);
    const settledAt = underWay === null ? at : underWay - 1;
    const past = await this.#past(working, request);
    const settled = settleLookup(lookup, state.register, topKOf(request, this.parts.defaults), at);
    const tools = this.#toolsOf(request, past.conversation);
    const { input, warnings } = this.#input(working, request, past, at, { ...settled, front, depth, tools });
    const newest = input.conversation?.turns.newest?.id ?? null;
    const requestId = request.requestId ?? newRequestId();
    const composition = continuable(
      this.limits.within(request, () => compose(state, input)),
      request,
      requestId,
    );
    const marks = this.#marksOf(working, request, composition, { at, isProbed: depth !== null });
    const hasBudget = request.memoryBudgetTokens !== null || request.memoryBudgetRatio !== null;
    const isBudgetUnused = hasBudget && input.policy.name !== "carry-over";
    const composed = {
      composition,
      newest,
      conversation: past.conversation?.turns ?? null,
      tools,
      requestId,
      at,
      settledAt,
      marks,
      warnings: [
        ...movedWarnings(request),
        ...unusableWarnings(request),
        ...(request.memories === null && request.destination == null && this.parts.source === null
          ? [NO_MEMORY_SOURCE]
          : []),
        ...settled.warnings,
        ...warnings,
        ...composition.warnings,
        ...(isBudgetUnused ? [BUDGET_UNUSED] : []),
        ...(depth?.warnings ?? []),
      ],
    };
    // Before anything is awaited: prompts planned meanwhile must leave room for it.
    const drop = this.#admit(scope, request, composed);
    try {
      return await this.#toStore(working, request, composed, drop);
    } catch (error) {
      drop();
      throw error;
    }
  }

  #marksOf(
    working: WorkingScope,
    request: ComposeRequest,
    { plan, memories, messages, head }: Composition,
    { at, isProbed }: { readonly at: number; readonly isProbed: boolean },
  ): ChosenMarks {
    const price = this.#priceOf(request);
    const before = working.earlier.get(request.conversationId);
    const late = price === null || before === undefined ? 0 : lateInRow(before.lateInRow, at - before.at, price);
    // Counts miss images, and what a caller adds who sends the prompt itself.
    const { destination } = request;
    const isCounted = destination != null && messages.every(hasOnlyText);
    const unread = unreadEnds(price, {
      layout: plan.layout,
      // A depth was chosen by drafts that were sent just now.
      wereSent: isProbed || areCached(memories),
      tokens: isCounted ? plan.totalTokens + destination.besideTokens : null,
      hasHistory: messages.length - head.length > 1,
      lateInRow: late,
    });
    return { unread, lateInRow: late };
  }

  /** Counts a prompt in its engine's cache. @returns takes it back */
  #admit(scope: Scope, request: ComposeRequest, { composition, requestId, at }: ComposedPrompt): () => void {
    const cache = this.#cacheOf(request);
    // The dashboard's tries are sent to no engine.
    if (cache === undefined || request.dryRun === true || isTry(request)) return () => {};
    const { plan, turn, headTokens, knownTokens } = composition;
    const handle = sentAs(scope, requestId);
    cache.admit({
      handle,
      stream: streamOf(scope, turn.conversationId),
      user: userOf(scope),
      at,
      total: plan.totalTokens,
      cached: plan.expectedCachedTokens,
      known: knownTokens,
      head: { digest: turn.head, tokens: headTokens },
    });
    return () => cache.release(handle);
  }

  async #toStore(
    working: WorkingScope,
    request: ComposeRequest,
    { composition, newest, conversation, tools, requestId, at, settledAt, marks, warnings }: ComposedPrompt,
    drop: () => void,
  ): Promise<Planned> {
    const { scope, state } = working;
    const { unread, lateInRow: late } = marks;
    const { plan, byHand, memories, messages, annotations, head, turn, headTokens } = composition;
    const worker = await this.#workerFor(working, request, routable(composition, newest), at);
    const besideTokens = this.#besideTokens(request);
    const answer = {
      memories,
      plan,
      warnings,
      grounds: {
        ...{ settledAt, headTokens },
        ...(besideTokens > 0 && { besideTokens }),
        ...(unread.length > 0 && { unread }),
      },
      worker,
    };
    if (worker !== undefined && request.worker == null) this.routing.record(state, worker, memories);
    const parts = { requestId, scope, messages, head: head.length, injection: turn.injection, annotations };
    const observed: ObservedCompose = {
      scope,
      requestId,
      conversationId: turn.conversationId,
      at,
      engine: this.#familyOf(request),
      model: modelOf(request) || null,
      plan,
      besideTokens,
      warnings,
      carriedTokens: state.register.tokensOf(new Set(carriedBlocks(memories))),
      byHand,
    };
    return {
      answer: composeAnswer(parts, answer, this.#formOf(request, tools)),
      commit: {
        observed,
        store: async () => {
          const stored = { id: requestId, body: requestDigest(request), answer };
          const costs = engineModelFor(this.parts.defaults, observed.model);
          const prompt = isTry(request) ? null : newPrompt(observed, billedBy(costs, unread));
          const section = renderSection(turn.injection, state.register.textOf) || null;
          const root = rootOf(request, tools);
          const known = conversation?.sentAfter ?? null;
          const sentAfter = turn.conversationId === null ? null : sentAfterNow(known, { root, tools: tools.known });
          const record = { composition, section, delta: deltaOf(state), request: stored, prompt, sentAfter, at };
          await working.commit((held) => held.commitCompose(record));
          if (conversation !== null && sentAfter !== null) conversation.sentAfter = sentAfter;
          if (turn.conversationId !== null) working.goesOn(turn.conversationId);
          working.requests.composed(requestId, at);
          working.newest = { head: turn.head, root, at, lateInRow: late };
          for (const id of new Set([request.conversationId, turn.conversationId]))
            working.earlier.set(id, working.newest);
          if (worker !== undefined) this.routing.assigned(worker, plan, at);
        },
        drop,
      },
    };
  }

  /** The stored answer of a request's id; null: none. */
  async repeat(working: WorkingScope, request: ComposeRequest): Promise<PlannedAnswer | null> {
    const { scope, state, scopeId } = working;
    const { requestId } = request;
    const answered = requestId === null ? null : await this.parts.store.findRequest(scopeId, requestId);
    if (requestId === null || answered === null) return null;
    const { worker: before, plan, memories } = answered.answer;
    const previous = answered.turns.at(-2)?.turn.id ?? null;
    // The same worker, if the request still names it.
    const worker =
      before !== undefined && this.#workersOf(request).includes(before)
        ? before
        : await this.#workerFor(working, request, { plan, memories, previous }, this.parts.now());
    const of = { ...answered, answer: { ...answered.answer, worker } };
    const { conversationId } = request;
    const conversation = conversationId === null ? null : await working.conversation(conversationId);
    const form = this.#formOf(request, this.#toolsOf(request, conversation));
    const again = answerAgain({ requestId, scope }, of, state.register.textOf, form);
    return requestDigest(request) === answered.body
      ? again
      : { ...again, warnings: [...again.warnings, REQUEST_ID_REUSED] };
  }

  async draft(
    working: WorkingScope,
    request: ComposeRequest,
    { lookup, front }: Retrieved,
    depth: Depth | null,
  ): Promise<DraftedPrompt> {
    const stored = await this.#past(working, request);
    const { state } = working;
    const now = this.parts.now();
    const settled = settleLookup(lookup, state.register, topKOf(request, this.parts.defaults), now);
    const tools = this.#toolsOf(request, stored.conversation);
    const { input } = this.#input(working, request, stored, now, { ...settled, front, depth, tools });
    const drafted = this.limits.within(request, () => draftPrompt(state, input));
    const { prompt, history, choice, replay, selection, section } = drafted;
    const composed = { messages: prompt.messages, head: history.head.messages.length, injection: section.injection };
    const { stableMessages } = replay;
    const reuse = { retention: choice.retention, stableMessages };
    const emitted = this.#emitAhead(working, request, tools, composed, reuse);
    const { ordering, fresh } = selection;
    const noLogprobs = this.#engineOf(request).noLogprobs ?? null;
    return { ...emitted, ordering, blocks: fresh.length, noLogprobs };
  }

  /** The prefix of a request's prompt before its memories are known; null if most of it should be cached. */
  async coldHead(working: WorkingScope, request: ComposeRequest): Promise<ColdHead | null> {
    // The worker is chosen by the memories.
    if (this.#workersOf(request).length > 0) return null;
    const past = await this.#past(working, request);
    const tools = this.#toolsOf(request, past.conversation);
    const { input } = this.#input(working, request, past, this.parts.now(), { ...NO_MEMORIES, tools });
    // The beginning of a window's prompt depends on its memories.
    if (input.historyTerms?.window != null) return null;
    const head = promptHead(working.state, input);
    if (head === null || head.coldTokens < MIN_COLD_TOKENS) return null;
    // Chat templates require a final question. The prompts are equal up to its text.
    const messages: ChatMessage[] = [...head.messages, { role: "user", content: "." }];
    const composed = { messages, head: head.instructions, injection: NOTHING_INJECTED };
    return this.#emitAhead(working, request, tools, composed, { retention: "keep", stableMessages: 0 });
  }

  /** The source's memories in earlier turns of the conversation, as far as they are current. */
  async standing(working: WorkingScope, request: ComposeRequest): Promise<readonly MemoryId[]> {
    const past = await this.#readPast(working, request);
    return standingMemories(working.state, this.#input(working, request, past, this.parts.now()).input);
  }

  /** What the scope knows for planning requests with these texts after the same messages. A text without a block cannot be cached. */
  async known(
    working: WorkingScope,
    request: ComposeRequest,
    texts: readonly (readonly Digest[])[],
  ): Promise<KnownTexts> {
    const past = await this.#readPast(working, request);
    const { state } = working;
    const { register } = state;
    const wanted = texts.map((ofRequest) => new Set(ofRequest.flatMap((text) => register.withText(text) ?? [])));
    const { input } = this.#input(working, request, past, this.parts.now());
    const { cached, recent } = batchKnowledge(state, input, wanted);
    const textsOf = (labels: Iterable<Label>) =>
      [...labels].map((label) => register.get(label)?.textDigest).filter((text) => text !== undefined);
    return {
      cached: cached.map(({ labels, lastUsed }) => ({ texts: textsOf(labels), lastUsed })),
      recent: recent.map(textsOf),
    };
  }

  /** The scope's cluster tree. */
  clusters({ state: { register, published } }: WorkingScope): readonly ClusteredTexts[] {
    const textsOf = (labels: readonly Label[]) => labels.flatMap((label) => register.get(label)?.textDigest ?? []);
    return published.clusters.stored().map((node) => ({ ...node, blocks: textsOf(node.blocks) }));
  }

  /** Stores the tree that a batch's planner made of {@link clusters}. Texts that no prompt was given, and forgotten ones, are left out. */
  async replaceClusters(working: WorkingScope, nodes: readonly ClusteredTexts[]): Promise<void> {
    if (!working.isStored) return;
    const { register, published, requests } = working.state;
    const unknown = new Map<Digest, Label>();
    const labelOf = (text: Digest): Label =>
      register.withText(text) ?? keptIn(unknown, text, () => (register.nextLabel + unknown.size) as Label);
    published.clusters.replace(
      nodes.map((node) => ({ ...node, blocks: node.blocks.map(labelOf) })),
      requests,
    );
    published.clusters.forget(new Set(unknown.values()));
    await working.commit((held) => held.commitChanges(deltaOf(working.state)));
  }

  /** What is stored of a request's past. Conversations that were read stay in memory. */
  async #past(working: WorkingScope, request: ComposeRequest): Promise<StoredPast> {
    const past = await this.#readPast(working, request);
    const { conversation } = past;
    if (conversation?.isRead === true) working.keep(conversation.id, conversation);
    await this.law.refresh();
    return past;
  }

  #readPast(working: WorkingScope, request: ComposeRequest): Promise<StoredPast> {
    const { conversationId, messages } = request;
    const form = { inResult: this.#isInResult(request), keepsInstructions: this.#keepsInstructions(request) };
    return readPast(this.parts.store, working, {
      conversationId,
      messages,
      history: this.#historyOf(request),
      ...form,
    });
  }

  /** The core's input, with warnings about the request's history. */
  #input(
    working: WorkingScope,
    request: ComposeRequest,
    past: StoredPast,
    now: number,
    {
      memories,
      changed,
      ended,
      front,
      depth,
      tools = this.#toolsOf(request, past.conversation),
    }: PromptMemories = NO_MEMORIES,
  ): { readonly input: ComposeInput; readonly warnings: readonly Warning[] } {
    const { scope, state } = working;
    const { messages, historyTerms, warnings } = this.#saidIn(request, past);
    const { defaults, countTokens } = this.parts;
    const cache = this.#lookupFor(scope, request);
    const engine = this.law.modelFor(modelOf(request) || null);
    const { maxPromptTokens, acceptedTokens } = this.limits.of(request);
    const textOf = (label: Label) => state.register.get(label)?.textDigest;
    const { conversationId } = request;
    const earlier = working.earlier.get(conversationId) ?? (conversationId === null ? undefined : working.newest);
    const sentAfter = past.conversation?.turns.sentAfter ?? null;
    const root = past.conversation === null ? (earlier?.root ?? null) : (sentAfter?.root ?? null);
    const isListed = sentAfter !== null && (sentAfter.root.tools === null || sentAfter.tools.length > 0);
    const isPlanned = front.length > 0 && request.policy === null;
    const policy: ScopePolicy = isPlanned
      ? plannedOrder(front, textOf)
      : ORDERING_POLICIES[request.policy ?? defaults.policy];
    // Field by field: copying the request would take longer than everything else here.
    const input: ComposeInput = {
      memories,
      changed,
      ended,
      conversation: past.conversation,
      isCut: past.conversation?.isCut === true,
      messages,
      keepsInstructions: this.#keepsInstructions(request),
      historyTerms,
      isOurs: past.isOurs,
      recalled: past.recalled,
      now,
      countTokens,
      cache,
      policy,
      engine: cache.blockTokens === null ? engine : { ...engine, blockTokens: cache.blockTokens },
      depth: depth ?? undefined,
      retention: request.retention ?? defaults.retention,
      annotations: request.annotations,
      inResult: this.#isInResult(request),
      dedupe: request.dedupe ?? undefined,
      memoryBudgetTokens: request.memoryBudgetTokens,
      memoryBudgetRatio: request.memoryBudgetRatio,
      mayCarry: !isNarrowed(request),
      maxPromptTokens,
      acceptedTokens,
      root: rootOf(request, tools),
      toolChanges: isListed ? tools.changes : null,
      earlier: {
        head: earlier?.head ?? null,
        root,
        ageMs: earlier === undefined ? null : Math.max(0, now - earlier.at),
      },
    };
    return { input, warnings };
  }

  /** The request's messages, and the stored conversation if the request leaves it out. */
  #saidIn(request: ComposeRequest, { history: stored, conversation }: StoredPast): SaidMessages {
    const { messages, historyRatio } = request;
    if (conversation === null) return { messages, warnings: [] };
    const { isCut } = conversation;
    const ratio = historyRatio ?? DEFAULT_HISTORY_RATIO;
    return readHistory(stored, { messages, history: this.#historyOf(request), ratio, isCut });
  }

  #emitAhead(
    { scope }: WorkingScope,
    request: ComposeRequest,
    tools: SentTools,
    composed: Pick<ComposedPromptParts, "messages" | "head" | "injection">,
    plan: Pick<ReusePlan, "retention" | "stableMessages">,
  ): EngineEmission & Pick<ColdHead, "toolTexts"> {
    const layout = request.conversationId === null ? "single" : "conversation";
    // Not the request's own id, which belongs to the final prompt.
    const requestId = this.parts.newRequestId();
    const form = this.#formOf(request, tools);
    const emitted = form.engine.emit(enginePrompt({ requestId, scope, ...composed }, { layout, ...plan }, form));
    return { ...emitted, toolTexts: form.toolTexts };
  }

  #formOf(request: ComposeRequest, { texts }: SentTools): AnswerForm {
    const toolTexts = texts.length === 0 ? null : texts;
    return { request, engine: this.#engineOf(request), cacheSecret: this.tenant.cacheSecret, toolTexts };
  }

  #toolsOf({ toolTexts }: ComposeRequest, conversation: Pick<WorkingConversation, "turns"> | null): SentTools {
    const known = conversation?.turns.sentAfter?.tools ?? NO_TOOLS;
    const given = toolTexts ?? NO_TOOLS;
    const before = this.#tools.get(given);
    if (before?.known === known) return before.sent;
    const sent = toolsToSend(given, known, this.parts.defaults.stableTools ?? true);
    this.#tools.set(given, { known, sent });
    return sent;
  }

  #besideTokens({ destination, toolTexts }: ComposeRequest): number {
    return destination?.besideTokens ?? (toolTexts == null ? 0 : this.parts.countTokens(`[${toolTexts.join()}]`));
  }

  #engineOf(request: ComposeRequest): EngineAdapter {
    return this.parts.engines[this.#familyOf(request)];
  }

  #familyOf(request: ComposeRequest): EngineName {
    return request.engine ?? engineFamilyFor(this.parts.defaults, modelOf(request) || null);
  }

  /** The cache that the prompt will meet; undefined: unknown. */
  #cacheOf(request: ComposeRequest): TenantParts["cache"] {
    return goesElsewhere(request, this.parts.defaults) ? undefined : this.parts.cache;
  }

  #lookupFor(scope: Scope, request: ComposeRequest): CacheLookup {
    const found = this.#cacheOf(request)?.lookup(streamOf(scope, request.conversationId));
    if (found === undefined) return endlessLookup(this.parts.residency);
    return found;
  }

  /** The prompt's prices; null: no known provider bills it. */
  #priceOf(request: ComposeRequest): ProviderPrice | null {
    const { defaults } = this.parts;
    const host = goesElsewhere(request, defaults) ? null : (defaults.engineHost ?? null);
    return priceOf({ host, family: this.#familyOf(request) }, modelOf(request) || null);
  }

  /** Not where the engine continues its own history: it gets the request's instructions in any case. */
  #keepsInstructions({ sentNow }: ComposeRequest): boolean {
    return this.parts.defaults.stableInstructions === true && sentNow === undefined;
  }

  #historyOf({ history }: ComposeRequest): HistoryName {
    return history ?? DEFAULT_HISTORY;
  }

  /** The workers to choose from; empty: no routing. */
  #workersOf({ workers }: ComposeRequest): readonly string[] {
    return workers ?? this.parts.defaults.workers ?? [];
  }

  /** The worker of a prompt, chosen by its batch or here; undefined if none are named. */
  async #workerFor(
    working: WorkingScope,
    request: ComposeRequest,
    prompt: RoutablePrompt,
    now: number,
  ): Promise<string | undefined> {
    if (request.worker != null) return request.worker;
    const names = this.#workersOf(request);
    return names.length === 0 ? undefined : this.routing.route(working, prompt, names, now);
  }

  /** Whether memories go into tool results: the engine family or the model takes no user message after them. */
  #isInResult(request: ComposeRequest): boolean {
    const { inResult = false, model } = request;
    return inResult || this.#engineOf(request).inResult === true || isMistralModel(model) || keepsThoughtsByName(model);
  }
}

/** A single prompt under a name of its own, by which a history that begins so is found. */
function continuable(composition: Composition, request: ComposeRequest, requestId: RequestId): Composition {
  if (request.isRecognised !== true || request.conversationId !== null) return composition;
  return { ...composition, turn: { ...composition.turn, conversationId: `unnamed:${requestId}` as ConversationId } };
}

function areCached(memories: Composition["memories"]): boolean {
  return memories.length > 0 && memories.every(({ placement }) => placement === "cached_prefix");
}

function hasOnlyText({ content }: ChatMessage): boolean {
  return !Array.isArray(content) || content.every(({ type }) => type === "text");
}

/** Whether the caller sends the prompt to another engine family than the configured one. */
function goesElsewhere(request: ComposeRequest, defaults: ComposeDefaults): boolean {
  const { destination, engine } = request;
  return destination == null && engine !== null && engine !== engineFamilyFor(defaults, modelOf(request) || null);
}

function rootOf(request: ComposeRequest, { digest }: SentTools): PromptRoot {
  return { model: modelOf(request), tools: digest };
}

/** What to store of a conversation; null: what is stored. */
function sentAfterNow(known: SentAfter | null, now: SentAfter): SentAfter | null {
  const { model, tools } = now.root;
  const isSame =
    known !== null && known.tools === now.tools && known.root.model === model && known.root.tools === tools;
  return isSame ? null : now;
}

function movedWarnings({ moved = [] }: ComposeRequest): readonly Warning[] {
  if (moved.length === 0) return [];
  const message =
    "stood in front of the messages, as Mem0's AI SDK provider puts memories there; taken out and composed with the request's";
  return [{ code: "provider_memories_moved", message, memoryIds: moved }];
}

/** A composition for routing. A restated turn was never sent; the conversation's `newest` turn before it was. */
function routable({ plan, memories, turn: { parent }, restated }: Composition, newest: TurnId | null): RoutablePrompt {
  return { plan, memories, previous: restated.some(({ turn }) => turn.id === parent) ? newest : parent };
}

function carriedBlocks(memories: Composition["memories"]): readonly Label[] {
  return memories.flatMap(({ label, placement }) => (placement === "carried_over" ? [label] : []));
}
