import {
  type Composition,
  type ConversationId,
  compose,
  IN_FLIGHT_MS,
  type RequestId,
  type Scope,
  type TurnId,
  type Warning,
} from "../../core/index.js";
import type { ObservedCompose } from "../base/memstem-observer.js";
import type { TenantParts } from "../base/memstem-parts.js";
import type { Tenant } from "../base/tenant.js";
import { sentAs, streamOf } from "../learning/shared-prompts.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scope.js";
import { answerAgain, type ComposeAnswer, composeAnswer, saidNow } from "./compose-answer.js";
import type { ComposeRequest } from "./compose-request.js";
import { settleLookup, unusableWarnings } from "./memory-lookup.js";
import { plannedReuse } from "./planned-reuse.js";
import { bounded, type PlanningInput, type Retrieved } from "./planning-input.js";
import type { PromptRouting } from "./prompt-routing.js";
import { requestDigest } from "./request-digest.js";

/** An answer, and whether it is a stored one that is repeated. */
export interface PlannedPrompt {
  readonly answer: ComposeAnswer;
  readonly isRepeated: boolean;
  /** What is told of it once it is stored; null: nothing, it is a repeated one. */
  readonly observed: ObservedCompose | null;
  /** Stores the prompt, unless it is a repeated one; call once. */
  commit(): Promise<void>;
}

const REQUEST_ID_REUSED: Warning = {
  code: "request_id_reused",
  message: "this request id was answered before for another request; that answer is repeated",
};

const BUDGET_UNUSED: Warning = {
  code: "memory_budget_unused",
  message: 'only the policy "carry-over" uses a memory budget; this one sends what was retrieved',
};

/** Plans prompts of one tenant, each in its working scope. */
export class PromptPlanner {
  constructor(
    private readonly parts: TenantParts,
    private readonly tenant: Tenant,
    private readonly routing: PromptRouting,
    private readonly input: PlanningInput,
  ) {}

  /**
   * Composes one request in its scope, or repeats the stored answer of its id. What planning needs of the store is read first; it is synchronous
   * itself. The scope must not change before the commit.
   */
  async plan(working: WorkingScope, request: ComposeRequest, retrieved: Retrieved): Promise<PlannedPrompt> {
    const { scope, state } = working;
    // Another process's answer since then makes the commit stale.
    const repeated = working.base === retrieved.freeAt ? null : await this.repeat(working, request);
    if (repeated !== null) return { answer: repeated, isRepeated: true, observed: null, commit: async () => {} };
    const { store, now, newRequestId } = this.parts;
    const at = now();
    // Prompts of concurrent requests may not be in the cache yet when the engine gets this one.
    const underWay = await working.requests.since(at - IN_FLIGHT_MS);
    const settledAt = underWay === null ? at : underWay - 1;
    const past = await this.input.past(working, request);
    const firstNew = state.register.nextLabel;
    const settled = settleLookup(retrieved.lookup, state.register, this.input.topKOf(request), at);
    const said = this.input.saidIn(request, past);
    const input = this.input.of(working, request, said, past, { ...retrieved, ...settled }, at);
    const before = input.conversation?.turns.newest ?? null;
    const newest = before?.id ?? null;
    const composition = bounded(() => compose(state, input));
    const requestId = request.requestId ?? newRequestId();
    const hasBudget = request.memoryBudgetTokens !== null || request.memoryBudgetRatio !== null;
    const isBudgetUnused = hasBudget && input.policy.name !== "carry-over";
    const answer = {
      memories: composition.memories,
      plan: composition.plan,
      warnings: [
        ...movedWarnings(request),
        ...unusableWarnings(request),
        ...settled.warnings,
        ...said.warnings,
        ...composition.warnings,
        ...(isBudgetUnused ? [BUDGET_UNUSED] : []),
        ...(retrieved.depth?.warnings ?? []),
      ],
      grounds: { settledAt, headTokens: composition.headTokens },
      worker: await this.routing.route(scope, state, request, routable(composition, newest), at),
    };
    if (answer.worker !== undefined) this.routing.record(state, request, answer.worker, composition.memories);
    const { messages, head, annotations, turn } = composition;
    const { injection } = turn;
    return {
      answer: composeAnswer(
        { requestId, scope, messages, head, injection, annotations },
        answer,
        this.#formOf(request),
      ),
      isRepeated: false,
      observed: {
        scope,
        requestId,
        conversationId: request.conversationId,
        at,
        engine: request.engine ?? this.parts.defaults.engineFamily,
        model: request.destination?.model || null,
        plan: composition.plan,
        warnings: answer.warnings,
        reuse: plannedReuse(composition, {
          before,
          headBefore: working.newestHead,
          firstNew,
          register: state.register,
        }),
      },
      commit: async () => {
        const stored = { id: requestId, body: requestDigest(request), answer };
        const record = { composition, delta: deltaOf(state), request: stored, at };
        await working.commit((base) => store.commitCompose(scope, base, record));
        working.requests.composed(requestId, at);
        if (request.conversationId === null) working.newestHead = turn.head;
        // A try that counts in no figures is sent to no engine.
        if (request.recordUsage !== false) this.#sent(scope, request.conversationId, requestId, composition, at);
        if (answer.worker !== undefined) this.routing.assigned(answer.worker, answer.plan, at);
      },
    };
  }

  /** The stored answer of a request's id; null for none. */
  async repeat(working: WorkingScope, request: ComposeRequest): Promise<ComposeAnswer | null> {
    const { scope, state } = working;
    const { requestId } = request;
    const answered = requestId === null ? null : await this.parts.store.findRequest(scope, requestId, request.messages);
    if (requestId === null || answered === null) return null;
    // It is sent without a commit.
    await working.check();
    const worker = await this.routing.routeAgain(scope, state, request, answered, this.parts.now());
    const of = { ...answered, answer: { ...answered.answer, worker } };
    const again = answerAgain({ requestId, scope }, of, state.register.textOf, this.#formOf(request));
    return requestDigest(request) === answered.body
      ? again
      : { ...again, warnings: [...again.warnings, REQUEST_ID_REUSED] };
  }

  /** The engine is about to be sent a prompt. */
  #sent(scope: Scope, conversation: ConversationId | null, id: RequestId, composed: Composition, at: number): void {
    const { sharedCache } = this.parts;
    if (sharedCache === undefined) return;
    const { plan, knownTokens: known, headTokens: head } = composed;
    const stream = streamOf(scope, conversation);
    const requestId = sentAs(scope, id);
    sharedCache.served({
      stream,
      requestId,
      at,
      total: plan.totalTokens,
      cached: plan.expectedCachedTokens,
      known,
      head,
    });
  }

  #formOf(request: ComposeRequest) {
    return {
      prompt: request.prompt,
      engine: this.input.engineOf(request),
      marksElsewhere: request.marksElsewhere,
      said: saidNow(request),
      given: request.given ?? null,
      cacheSecret: this.tenant.cacheSecret,
    };
  }
}

function movedWarnings({ moved = [] }: ComposeRequest): readonly Warning[] {
  if (moved.length === 0) return [];
  const message =
    "stood in front of the messages, as Mem0's AI SDK provider puts memories there; taken out and composed with the request's";
  return [{ code: "provider_memories_moved", message, memoryIds: moved }];
}

/** A composition as its routing reads it. A restated turn was not sent; what was, is the conversation's `newest` turn before it. */
function routable({ plan, memories, turn: { parent }, restated }: Composition, newest: TurnId | null) {
  return { plan, memories, previous: restated.some(({ turn }) => turn.id === parent) ? newest : parent };
}
