import type { PromptEnd } from "../../core/cost/expected-reads.js";
import {
  type ChatMessage,
  type ConversationId,
  DROPS_NOTHING,
  digestOf,
  type Injection,
  isEmptyInjection,
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
import type { AdapterPrompt, EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import { routingHeaders } from "../../engines/adapters/session-routers.js";
import type { AnsweredRequest, StoredAnswer } from "../../store/store.js";
import type { PlannedAnswer } from "../base/call-types.js";
import { type GivenPrompt, restored } from "../fields/given-messages.js";
import type { ComposeRequest } from "./compose-request.js";

/** The request's own messages, without the remembered ones before them. */
function saidNow({ messages, sentNow }: Pick<ComposeRequest, "messages" | "sentNow">): readonly ChatMessage[] {
  return sentNow === undefined ? messages : messages.slice(messages.length - sentNow);
}

export interface AnswerForm {
  readonly request: Pick<ComposeRequest, "messages" | "sentNow" | "given" | "marksElsewhere">;
  readonly engine: EngineAdapter;
  readonly cacheSecret: string;
  /** As they are to be sent; null: the request has none. */
  readonly toolTexts: readonly string[] | null;
}

export interface ComposedPromptParts {
  readonly requestId: RequestId;
  readonly scope: Scope;
  readonly messages: readonly ChatMessage[];
  /** How many messages at the front are instructions. */
  readonly head: number;
  /** What this turn injected before its last message. */
  readonly injection: Injection;
  readonly annotations: readonly string[];
}

export function composeAnswer(
  composed: ComposedPromptParts,
  { memories, plan, warnings, worker, grounds }: StoredAnswer,
  form: AnswerForm,
): PlannedAnswer {
  const given = form.request.given ?? null;
  const emitted = form.engine.emit(enginePrompt(composed, plan, form, grounds.unread));
  const prompt = restored(given, emitted.messages);
  const answer: { -readonly [Field in keyof PlannedAnswer]: PlannedAnswer[Field] } = {
    requestId: composed.requestId,
    messages: prompt.messages,
    blocks: memories,
    annotations: composed.annotations,
    toolTexts: form.toolTexts,
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

/** How many leading messages, in the given format, an earlier prompt had. */
function stableOf(
  given: GivenPrompt,
  composed: readonly ChatMessage[],
  restoredAll: readonly unknown[],
  plan: Plan,
): number {
  const stable = restored(given, composed.slice(0, plan.stableMessages)).messages;
  // Further chat messages may have become part of the last one.
  const differs = stable.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(restoredAll[at]));
  return differs < 0 ? stable.length : differs;
}

export function answerAgain(
  { requestId, scope }: Pick<ComposedPromptParts, "requestId" | "scope">,
  request: AnsweredRequest,
  textOf: TextOf,
  form: AnswerForm,
): PlannedAnswer {
  const messages = storedMessages(request, textOf);
  const injection = request.turns.at(-1)?.turn.injection ?? NOTHING_INJECTED;
  const annotations = injection.annotations.map((annotation) => renderAnnotation(annotation, textOf));
  const parts = { requestId, scope, messages, head: request.head.length, injection, annotations };
  return composeAnswer(parts, request.answer, form);
}

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

export type ReusePlan = Pick<Plan, "layout" | "retention" | "stableMessages" | "epoch">;

/** A prompt as its engine's adapter takes it. @param unread ends that no later prompt is expected to read */
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

/** The same for messages that were not composed: only the cache keys, which separate tenants. @param scope null: no user is named */
export function plainPrompt(requestId: RequestId, scope: Scope | null, cacheSecret: string): AdapterPrompt {
  const tenantKey = tenantKeyOf(cacheSecret);
  const scopeKey = scope && scopeKeyOf(scope, cacheSecret);
  return { requestId, tenantKey, scopeKey, messages: [], reusableMessages: [] };
}

/** The same for a call of Mem0's own: every user's has the same instructions. @param head how many messages are instructions */
export function writePrompt(
  requestId: RequestId,
  { messages, head, marksElsewhere }: Pick<AdapterPrompt, "messages" | "marksElsewhere"> & { readonly head: number },
  cacheSecret: string,
): AdapterPrompt {
  const key = tenantKeyOf(cacheSecret);
  const reusableMessages = head === 0 ? [] : [head - 1];
  return { requestId, tenantKey: key, scopeKey: key, messages, marksElsewhere, reusableMessages };
}

/** An opaque key of a conversation, or else of the scope. */
export function sessionKeyOf(scope: Scope, conversationId: ConversationId | null, cacheSecret: string): string {
  const { userId, agentId } = scope;
  return digestOf(JSON.stringify(["memprefix session", cacheSecret, userId, agentId, conversationId]));
}

/** A tenant's own salt, made of one that its client names. */
export function saltOf(cacheSecret: string, name: string, salt: unknown): string {
  return digestOf(JSON.stringify(["memprefix salt", cacheSecret, name, salt]));
}

/** Opaque and stable; the salt of a tenant's prompts. */
export function tenantKeyOf(cacheSecret: string): string {
  return digestOf(JSON.stringify(["memprefix tenant", cacheSecret]));
}

function scopeKeyOf({ userId, agentId }: Scope, cacheSecret: string): string {
  return digestOf(JSON.stringify(["memprefix scope", cacheSecret, userId, agentId]));
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

/** The message whose memories a later prompt may repeat: the head of an epoch, else this turn's. */
function reusableMemories({ layout, retention, epoch }: ReusePlan, head: number, section: number | null) {
  if ((epoch?.headTokens ?? 0) > 0) return head;
  // After a single prompt the memories may return with another question; in a conversation they stay, or are retrieved again.
  return section !== null && (layout === "single" || retention !== "ephemeral") ? section : undefined;
}
