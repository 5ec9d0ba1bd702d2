import type { PromptEnd } from "../../core/cost/expected-reads.js";
import {
  type ChatMessage,
  type ConversationId,
  DROPS_NOTHING,
  digestOf,
  type Injection,
  isEmptyInjection,
  LruMap,
  NOTHING_INJECTED,
  type Plan,
  type RequestId,
  renderAnnotation,
  renderSection,
  type Scope,
  type StoredPrompt,
  standingInjections,
  type TextOf,
  turnMessages,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import type { AdapterPrompt, EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import { routingHeaders } from "../../engines/adapters/session-routers.js";
import type { AnsweredRequest, StoredAnswer } from "../../store/store.js";
import type { ComposeAnswer } from "../base/call-types.js";
import { type GivenPrompt, restored } from "../fields/given-messages.js";
import type { ComposeRequest } from "./compose-request.js";

/** What a request itself has of messages, without those that memprefix remembers and put in front of them. */
function saidNow({ messages, sentNow }: Pick<ComposeRequest, "messages" | "sentNow">): readonly ChatMessage[] {
  return sentNow === undefined ? messages : messages.slice(messages.length - sentNow);
}

/** What a prompt is answered, and sent to its engine, by. */
export interface AnswerForm {
  readonly request: Pick<ComposeRequest, "messages" | "sentNow" | "given" | "marksElsewhere">;
  /** The engine family that the prompt goes to. */
  readonly engine: EngineAdapter;
  /** The secret from which the tenant's cache salts are derived. */
  readonly cacheSecret: string;
}

/** A composed prompt, as far as its answer and its engine's adapter depend on it. */
export interface ComposedPromptParts {
  readonly requestId: RequestId;
  readonly scope: Scope;
  readonly messages: readonly ChatMessage[];
  /** How many messages at the front are instructions. */
  readonly head: number;
  /** What this turn injected before its last message. */
  readonly injection: Injection;
  /** Its annotations, as printed in the prompt. */
  readonly annotations: readonly string[];
}

/** Builds the answer from a new or a stored composition. */
export function composeAnswer(
  composed: ComposedPromptParts,
  { memories, plan, warnings, worker, grounds }: StoredAnswer,
  form: AnswerForm,
): ComposeAnswer {
  const given = form.request.given ?? null;
  const emitted = form.engine.emit(enginePrompt(composed, plan, form, grounds.unread));
  const prompt = restored(given, emitted.messages);
  const answer: { -readonly [Field in keyof ComposeAnswer]: ComposeAnswer[Field] } = {
    requestId: composed.requestId,
    messages: prompt.messages,
    blocks: memories,
    annotations: composed.annotations,
    plan: given === null ? plan : { ...plan, stableMessages: stableOf(given, emitted.messages, prompt.messages, plan) },
    engine: {
      fields: emitted.fields,
      headers: worker === undefined ? emitted.headers : { ...emitted.headers, ...routingHeaders(worker) },
    },
    warnings,
  };
  if (prompt.system !== undefined) answer.system = prompt.system;
  if (worker !== undefined) answer.worker = worker;
  return answer;
}

/** How many leading messages, in the format of the given ones, are made of those that an earlier prompt had. */
function stableOf(
  given: GivenPrompt,
  composed: readonly ChatMessage[],
  restoredAll: readonly unknown[],
  plan: Plan,
): number {
  const stable = restored(given, composed.slice(0, plan.stableMessages)).messages;
  // Of the last one more chat messages may have become part.
  const differs = stable.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(restoredAll[at]));
  return differs < 0 ? stable.length : differs;
}

/** Rebuilds a stored answer: its messages byte for byte from the turns. */
export function answerAgain(
  { requestId, scope }: Pick<ComposedPromptParts, "requestId" | "scope">,
  request: AnsweredRequest,
  textOf: TextOf,
  form: AnswerForm,
): ComposeAnswer {
  const messages = storedMessages(request, textOf);
  const injection = request.turns.at(-1)?.turn.injection ?? NOTHING_INJECTED;
  const annotations = injection.annotations.map((annotation) => renderAnnotation(annotation, textOf));
  const parts = { requestId, scope, messages, head: request.head.length, injection, annotations };
  return composeAnswer(parts, request.answer, form);
}

/** A stored prompt's messages, byte for byte. */
export function storedMessages(
  { head, turns: spoken }: Pick<StoredPrompt, "head" | "turns">,
  textOf: TextOf,
): readonly ChatMessage[] {
  const turns = spoken.map(({ turn }) => turn);
  const last = turns.at(-1);
  const standing = standingInjections(turns.slice(0, -1), last ?? DROPS_NOTHING);
  if (last !== undefined) standing.push(last.injection);
  const said = spoken.flatMap(({ turn, given }, at) =>
    turnMessages(given, turn.placement, renderSection(standing[at] ?? NOTHING_INJECTED, textOf)),
  );
  return [...head, ...said];
}

/** What of a plan says where later prompts will diverge. */
export type ReusePlan = Pick<Plan, "layout" | "retention" | "stableMessages" | "epoch">;

/**
 * An engine adapter's view of a composed prompt; the same for a new and a repeated answer.
 *
 * @param unread its ends that no later prompt is expected to read
 */
export function enginePrompt(
  composed: Omit<ComposedPromptParts, "annotations">,
  plan: ReusePlan,
  { request, cacheSecret }: Pick<AnswerForm, "request" | "cacheSecret">,
  unread: readonly PromptEnd[] = [],
): AdapterPrompt {
  const { requestId, scope, messages, head, injection } = composed;
  const section = isEmptyInjection(injection) ? null : messages.length - 1;
  const isRead = (end: PromptEnd) => !unread.includes(end);
  const cachedMessage = isRead("turn") ? plan.stableMessages - 1 : -1;
  const turn = isRead("turn") ? lastSharedMessage(composed, plan, section) : -1;
  const instructions = isRead("instructions") ? head - 1 : -1;
  return {
    requestId,
    tenantKey: tenantKeyOf(cacheSecret),
    scopeKey: scopeKeyOf(scope, cacheSecret),
    messages,
    marksElsewhere: request.marksElsewhere,
    said: saidNow(request),
    reusableMessages: [...new Set([turn, instructions])].filter((at) => at >= 0),
    reusableMemories: isRead("memories") ? reusableMemories(plan, head, section) : undefined,
    isRead: isRead("turn") || isRead("memories"),
    cachedMessage: cachedMessage < 0 ? undefined : cachedMessage,
  };
}

/**
 * An engine adapter's view of messages that were not composed: only the cache keys, which separate tenants' caches.
 *
 * @param scope null: the request names nobody
 */
export function plainPrompt(requestId: RequestId, scope: Scope | null, cacheSecret: string): AdapterPrompt {
  const keys = {
    tenantKey: tenantKeyOf(cacheSecret),
    scopeKey: scope === null ? null : scopeKeyOf(scope, cacheSecret),
  };
  return { requestId, ...keys, messages: [], reusableMessages: [] };
}

/** An opaque key of a conversation; without one, of the scope. */
export function sessionKeyOf(scope: Scope, conversationId: ConversationId | null, cacheSecret: string): string {
  const { userId, agentId } = scope;
  return digestOf(JSON.stringify(["memprefix session", cacheSecret, userId, agentId, conversationId]));
}

/** By cache secret: every prompt of a tenant has the same key, … */
const TENANT_KEYS = new LruMap<string, string>(1_000);
/** … and every prompt of a scope in memory, which has its object. */
const SCOPE_KEYS = new WeakMap<Scope, { readonly cacheSecret: string; readonly key: string }>();

function tenantKeyOf(cacheSecret: string): string {
  return keptIn(TENANT_KEYS, cacheSecret, () => digestOf(JSON.stringify(["memprefix tenant", cacheSecret])));
}

function scopeKeyOf(scope: Scope, cacheSecret: string): string {
  const known = SCOPE_KEYS.get(scope);
  if (known?.cacheSecret === cacheSecret) return known.key;
  const key = digestOf(JSON.stringify(["memprefix scope", cacheSecret, scope.userId, scope.agentId]));
  SCOPE_KEYS.set(scope, { cacheSecret, key });
  return key;
}

/** Index of the last message that the next prompt shares. */
function lastSharedMessage(
  { messages, injection }: Pick<ComposedPromptParts, "messages" | "injection">,
  { layout, retention }: ReusePlan,
  section: number | null,
): number {
  const keepsAll =
    section === null ||
    (layout === "conversation" &&
      (retention === "keep" || (retention === "volatile" && injection.annotations.length === 0)));
  return keepsAll ? messages.length - 1 : section - 1;
}

/** The message whose memories a later prompt may have too: the head of an epoch, else this turn's. */
function reusableMemories({ layout, retention, epoch }: ReusePlan, head: number, section: number | null) {
  if ((epoch?.headTokens ?? 0) > 0) return head;
  // A single prompt's memories may return with another question; a conversation's stay, or are retrieved again.
  return section !== null && (layout === "single" || retention !== "ephemeral") ? section : undefined;
}
