import {
  type ChatMessage,
  type ComposeInput,
  type Composition,
  Conversation,
  compose,
  type Depth,
  type Digest,
  type EngineModel,
  IN_FLIGHT_MS,
  KEEPS_ALL,
  NOTHING_INJECTED,
  ORDERING_POLICIES,
  plannedOrder,
  promptHead,
  type Scope,
  type ScopePolicy,
  type ToolMemories,
  type Warning,
} from "../../core/index.js";
import { DeletedMeanwhileError } from "../base/errors.js";
import type { MemstemParts } from "../base/memstem-parts.js";
import type { Tenant } from "../base/tenant.js";
import type { WorkingScope } from "../scopes/working-scopes.js";
import type { ChosenDepth } from "./chosen-depth.js";
import { answerAgain, type ComposeAnswer, composeAnswer } from "./compose-answer.js";
import type { ComposeRequest } from "./compose-request.js";
import { enginePrompt } from "./engine-prompt.js";
import { type MemoryLookup, settleLookup } from "./memory-lookup.js";
import { isDigestOf, requestDigest } from "./request-digest.js";

/** A request with its memories at hand. */
export interface FoundCompose {
  readonly request: ComposeRequest;
  /** Null: it was answered before, and nothing is looked up to repeat that. */
  readonly lookup: MemoryLookup | null;
  /** The order that a batch's plan gave its blocks, by the digests of their texts; null where none was planned. */
  readonly order: readonly Digest[] | null;
  /** Whose request it is. */
  readonly tenant: Tenant;
  /** How much of what was found it gives, and what to tell the caller of that. Default: all of it. */
  readonly depth?: ChosenDepth | null;
}

/** One that is not answered yet. */
export type LookedUpCompose = Omit<FoundCompose, "lookup" | "depth"> & { readonly lookup: MemoryLookup };

/** An answer, and whether it was stored before and only repeated now. */
export interface PlannedCompose {
  readonly answer: ComposeAnswer;
  readonly isRepeated: boolean;
  /** Commits what was planned, where it is not repeated; to be called once. */
  commit(): void;
}

/**
 * Composes one request in its scope, or repeats the answer that its id has already. Nothing else may change the scope before it is
 * committed. Throws {@link DeletedMeanwhileError} where an answer was to be repeated and is gone.
 *
 * @param engine what prompts cost the engine now
 */
export function planIn(
  working: WorkingScope,
  scope: Scope,
  found: FoundCompose,
  parts: MemstemParts,
  engine: EngineModel,
): PlannedCompose {
  const { request, lookup, tenant, depth = null } = found;
  const { store, defaults } = parts;
  const { state } = working;
  const form = {
    prompt: request.prompt,
    engine: parts.engines[request.engine ?? defaults.engineFamily],
    marksElsewhere: request.marksElsewhere ?? 0,
    cacheSecret: tenant.cacheSecret,
  };
  if (request.requestId !== null) {
    const answered = store.findRequest(scope, request.requestId);
    if (answered !== null) {
      const again = answerAgain({ requestId: request.requestId, scope }, answered, state.register.textOf, form);
      const isSame = isDigestOf(request, answered.body);
      const answer = isSame ? again : { ...again, warnings: [...again.warnings, REQUEST_ID_REUSED] };
      return { answer, isRepeated: true, commit: () => {} };
    }
  }
  if (lookup === null) throw new DeletedMeanwhileError();
  const at = parts.now();
  // What came at the same time may not have been written when the engine gets this one.
  const underWay = store.underWaySince(scope, at - IN_FLIGHT_MS);
  const settledAt = underWay === null ? at : underWay - 1;
  const { input, warnings } = composeInput(working, scope, { ...found, lookup }, parts, engine, at);
  const { policy } = input;
  const composition = compose(state, input);
  const requestId = request.requestId ?? parts.newRequestId();
  const hasBudget = request.memoryBudgetTokens !== null || request.memoryBudgetRatio !== null;
  const isBudgetUnused = hasBudget && policy.name !== "carry-over";
  const answer = {
    memories: composition.memories,
    plan: composition.plan,
    warnings: [
      ...warnings,
      ...composition.warnings,
      ...(isBudgetUnused ? [BUDGET_UNUSED] : []),
      ...(depth?.warnings ?? []),
    ],
    grounds: { settledAt, headTokens: composition.headTokens },
  };
  const changes = state.drain();
  const commit = () => {
    working.version = store.commitCompose(scope, working.version, {
      ...recordOf(composition),
      changes,
      request: { id: requestId, leaf: composition.leaf, body: requestDigest(request), answer },
      at,
    });
  };
  const { injection } = composition.turn;
  return {
    answer: composeAnswer({ ...composition, injection, requestId, scope }, answer, form),
    isRepeated: false,
    commit,
  };
}

/** A request as the core takes it, and what its lookup gives reason to say. */
export function composeInput(
  working: WorkingScope,
  scope: Scope,
  { request, lookup, order, depth }: LookedUpCompose & { readonly depth?: Depth | null },
  parts: MemstemParts,
  engine: EngineModel,
  now: number,
): { readonly input: ComposeInput; readonly warnings: readonly Warning[] } {
  const { store, defaults, countTokens } = parts;
  const { memories, warnings } = settleLookup(lookup, working.state.register, request.topK);
  const input = {
    conversation: conversationOf(working, scope, request, parts),
    messages: request.messages,
    memories,
    policy: policyFor(request, order, working, parts),
    residency: parts.residency ?? KEEPS_ALL,
    now,
    memoryBudgetTokens: request.memoryBudgetTokens,
    memoryBudgetRatio: request.memoryBudgetRatio,
    annotations: request.annotations,
    retention: request.retention ?? defaults.retention,
    engine,
    depth: depth ?? undefined,
    toolMemories: toolMemoriesFor(request, parts),
    maxPromptTokens: request.maxPromptTokens,
    countTokens,
    isOurs: (section: Digest) => store.knowsSection(scope, section),
  };
  return { input, warnings };
}

/** What of a request's prompt is known before its memories are, as it would be sent; null where little of it should be cold. */
export function coldHeadIn(
  working: WorkingScope,
  scope: Scope,
  request: ComposeRequest,
  tenant: Tenant,
  parts: MemstemParts,
): ColdHead | null {
  const { store, defaults, countTokens, residency = KEEPS_ALL } = parts;
  const retention = request.retention ?? defaults.retention;
  const head = promptHead(working.state, {
    conversation: conversationOf(working, scope, request, parts),
    messages: request.messages,
    residency,
    retention,
    now: parts.now(),
    toolMemories: toolMemoriesFor(request, parts),
    countTokens,
    isOurs: (section) => store.knowsSection(scope, section),
  });
  if (head === null || head.coldTokens < LEAST_COLD_TOKENS) return null;
  const layout = request.conversationId === null ? "single" : "conversation";
  const { messages, fields, headers } = parts.engines[request.engine ?? defaults.engineFamily].emit(
    enginePrompt({
      requestId: parts.newRequestId(),
      scope,
      // Chat templates end a chat with a question. Up to its text the prompt that follows is the same.
      messages: [...head.messages, { role: "user", content: "." }],
      head: head.instructions,
      plan: { layout, retention: "keep", stableMessages: 0 },
      injection: NOTHING_INJECTED,
      cacheSecret: tenant.cacheSecret,
    }),
  );
  return { messages, fields, headers };
}

/** The beginning of a prompt, as it goes to its engine. */
export interface ColdHead {
  readonly messages: readonly ChatMessage[];
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** Below so many tokens that would have to be computed a request of its own costs more than it saves. */
const LEAST_COLD_TOKENS = 256;

function policyFor(
  { policy }: ComposeRequest,
  order: readonly Digest[] | null,
  { state }: WorkingScope,
  { defaults }: MemstemParts,
): ScopePolicy {
  if (order === null || policy !== null) return ORDERING_POLICIES[policy ?? defaults.policy];
  return plannedOrder(order, (label) => state.register.get(label)?.textDigest);
}

function conversationOf(
  { state }: WorkingScope,
  scope: Scope,
  { conversationId: id }: ComposeRequest,
  { store }: MemstemParts,
) {
  if (id === null) return null;
  return { id, turns: state.conversation(id, () => new Conversation(store.loadConversation(scope, id))) };
}

/** Where memories stand behind tool results: as the request says, or its engine's family must have it. */
function toolMemoriesFor(
  { toolMemories, engine }: ComposeRequest,
  { engines, defaults }: MemstemParts,
): ToolMemories | null {
  return toolMemories ?? engines[engine ?? defaults.engineFamily].toolMemories ?? null;
}

const REQUEST_ID_REUSED: Warning = {
  code: "request_id_reused",
  message: "this request id was answered before for another request; that answer is repeated",
};

const BUDGET_UNUSED: Warning = {
  code: "memory_budget_unused",
  message: 'only the policy "carry-over" uses a memory budget; this one sends what was retrieved',
};

function recordOf({ turn, given, restated, head, sections }: Composition) {
  return { turn, given, restated, head, sections };
}
