import {
  type ChatMessage,
  type ConversationId,
  digestOf,
  type Injection,
  isEmptyInjection,
  LruMap,
  messageText,
  NOTHING_INJECTED,
  type PlacedMemory,
  type Plan,
  type RequestId,
  renderAnnotation,
  renderSection,
  type Scope,
  standingInjections,
  type TextOf,
  turnMessages,
  type Warning,
} from "../../core/index.js";
import type { AdapterPrompt, EngineAdapter, MarksElsewhere } from "../../engines/adapters/engine-adapter.js";
import { routingHeaders } from "../../engines/adapters/routing-headers.js";
import type { AnsweredRequest, StoredAnswer } from "../../store/api/store.js";
import type { Instructions } from "../base/call-options.js";
import type { GivenPrompt } from "../base/given-prompt.js";
import { restored } from "../fields/given-messages.js";
import type { ComposeRequest } from "./compose-request.js";

/** What to add to the request to the engine. */
export interface EngineHints {
  /** Fields of the engine's request body. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Headers; the request id makes the engine's eviction events name this request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A composed prompt as callers receive it. */
export interface ComposeAnswer {
  readonly requestId: RequestId;
  /** With the engine's cache marks, if it has any; in the format of the request's messages. */
  readonly messages: readonly ChatMessage[];
  /** The request's instructions, where its messages are Anthropic's: their API takes them beside the messages. */
  readonly system?: Instructions;
  /** The prompt as one text, if requested: for completion endpoints without a chat template. */
  readonly prompt?: string;
  /** Every distinct memory of the request: this turn's in prompt order, then those of earlier turns. */
  readonly blocks: readonly PlacedMemory[];
  /** This turn's annotation lines, as printed in the prompt. */
  readonly annotations: readonly string[];
  readonly plan: Plan;
  readonly engine: EngineHints;
  /** The worker to send it to; absent where none were named. Its affinity headers are among the engine's. */
  readonly worker?: string;
  readonly warnings: readonly Warning[];
}

/** What a request itself has of messages, without those that memstem remembers and put in front of them. */
export function saidNow({ messages, sentNow }: Pick<ComposeRequest, "messages" | "sentNow">): readonly ChatMessage[] {
  return sentNow === undefined ? messages : messages.slice(messages.length - sentNow);
}

/** The requested form of an answer. */
export interface AnswerForm {
  /** Whether to include the prompt as one text. */
  readonly prompt: boolean;
  /** The engine family that the prompt goes to. */
  readonly engine: EngineAdapter;
  /** The caller's cache marks outside the messages in the request to the engine. */
  readonly marksElsewhere?: MarksElsewhere | undefined;
  /** The messages that the request itself has, without what memstem put in front of them. */
  readonly said: readonly ChatMessage[];
  /** The request's messages, if they are of another API than chats. */
  readonly given: GivenPrompt | null;
  /** The secret from which the tenant's cache salts are derived. */
  readonly cacheSecret: string;
}

/** The composed parts of an answer. */
export interface Composed {
  readonly requestId: RequestId;
  readonly scope: Scope;
  readonly messages: readonly ChatMessage[];
  /** The instructions at the front of the messages. */
  readonly head: readonly ChatMessage[];
  /** What this turn injected into them … */
  readonly injection: Injection;
  /** … and its annotations, as lines. */
  readonly annotations: readonly string[];
}

/** Builds the answer from a new or a stored composition. */
export function composeAnswer(
  composed: Composed,
  { memories, plan, warnings, worker }: StoredAnswer,
  form: AnswerForm,
): ComposeAnswer {
  const { requestId, scope, messages, injection, annotations } = composed;
  const { cacheSecret } = form;
  const served = { requestId, scope, messages, head: composed.head.length, plan, injection, cacheSecret };
  const emitted = form.engine.emit(enginePrompt(served, form));
  const prompt = restored(form.given, emitted.messages);
  const answer: { -readonly [Field in keyof ComposeAnswer]: ComposeAnswer[Field] } = {
    requestId,
    messages: prompt.messages,
    blocks: memories,
    annotations,
    plan:
      form.given === null ? plan : { ...plan, stableMessages: stableOf(form, emitted.messages, prompt.messages, plan) },
    engine: {
      fields: emitted.fields,
      headers: worker === undefined ? emitted.headers : { ...emitted.headers, ...routingHeaders(worker) },
    },
    warnings,
  };
  if (prompt.system !== undefined) answer.system = prompt.system;
  if (form.prompt) answer.prompt = promptText(messages);
  if (worker !== undefined) answer.worker = worker;
  return answer;
}

/** How many leading messages, in the format of the given ones, are made of those that an earlier prompt had. */
function stableOf(
  form: AnswerForm,
  composed: readonly ChatMessage[],
  restoredAll: readonly unknown[],
  plan: Plan,
): number {
  const stable = restored(form.given, composed.slice(0, plan.stableMessages)).messages;
  // Of the last one more chat messages may have become part.
  const differs = stable.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(restoredAll[at]));
  return differs < 0 ? stable.length : differs;
}

/** Rebuilds a stored answer: its messages byte for byte from the turns, without memories forgotten since. */
export function answerAgain(
  { requestId, scope }: Pick<Composed, "requestId" | "scope">,
  request: AnsweredRequest,
  textOf: TextOf,
  form: AnswerForm,
): ComposeAnswer {
  const turns = request.turns.map(({ turn }) => turn);
  const last = turns.at(-1);
  const standing = standingInjections(turns.slice(0, -1), last?.freshStart ?? false);
  if (last !== undefined) standing.push(last.injection);
  const messages = [
    ...request.head,
    ...request.turns.flatMap(({ turn, given }, at) =>
      turnMessages(given, turn.placement, renderSection(standing[at] ?? NOTHING_INJECTED, textOf)),
    ),
  ];
  const injection = last?.injection ?? NOTHING_INJECTED;
  const annotations = injection.annotations.map(renderAnnotation);
  return composeAnswer(
    { requestId, scope, messages, head: request.head, injection, annotations },
    request.answer,
    form,
  );
}

const SPEAKERS: Readonly<Record<string, string>> = {
  system: "System",
  developer: "System",
  user: "User",
  assistant: "Assistant",
  tool: "Tool",
  function: "Tool",
};

/** Append-only like the messages: a longer conversation's text starts with the shorter one's, except its last line. */
function promptText(messages: readonly ChatMessage[]): string {
  const turns = messages.map((message) => `${SPEAKERS[message.role] ?? message.role}: ${messageText(message)}\n\n`);
  return `${turns.join("")}Assistant:`;
}

/** An engine adapter's view of a composed prompt; the same for a new and a repeated answer. */
export interface PromptForEngine {
  readonly requestId: RequestId;
  readonly scope: Scope;
  readonly messages: readonly ChatMessage[];
  /** How many messages at the front are instructions. */
  readonly head: number;
  readonly plan: Pick<Plan, "layout" | "retention" | "stableMessages" | "epoch">;
  /** What this turn injected before its last message. */
  readonly injection: Injection;
  /** The secret from which the tenant's cache salts are derived. */
  readonly cacheSecret: string;
}

/** Tells the adapter where later prompts will diverge, from what the plan keeps of this turn. */
export function enginePrompt(
  served: PromptForEngine,
  { marksElsewhere, said }: Pick<AnswerForm, "marksElsewhere" | "said">,
): AdapterPrompt {
  const { requestId, scope, messages, head, plan, injection, cacheSecret } = served;
  const section = isEmptyInjection(injection) ? null : messages.length - 1;
  const cachedMessage = plan.stableMessages - 1;
  const ends = [lastSharedMessage(served, section), head - 1].filter((at) => at >= 0);
  return {
    requestId,
    tenantKey: tenantKeyOf(cacheSecret),
    scopeKey: scopeKeyOf(scope, cacheSecret),
    messages,
    marksElsewhere,
    said,
    reusableMessages: ends[0] === ends[1] ? ends.slice(1) : ends,
    reusableMemories: reusableMemories(served, section),
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
  return digestOf(JSON.stringify(["memstem session", cacheSecret, userId, agentId, conversationId]));
}

/** By cache secret: every prompt of a tenant has the same key, … */
const TENANT_KEYS = new LruMap<string, string>(1_000);
/** … and every prompt of a scope in memory, which has its object. */
const SCOPE_KEYS = new WeakMap<Scope, { readonly cacheSecret: string; readonly key: string }>();

function tenantKeyOf(cacheSecret: string): string {
  const known = TENANT_KEYS.get(cacheSecret);
  if (known !== undefined) return known;
  const key = digestOf(JSON.stringify(["memstem tenant", cacheSecret]));
  TENANT_KEYS.set(cacheSecret, key);
  return key;
}

function scopeKeyOf(scope: Scope, cacheSecret: string): string {
  const known = SCOPE_KEYS.get(scope);
  if (known?.cacheSecret === cacheSecret) return known.key;
  const key = digestOf(JSON.stringify(["memstem scope", cacheSecret, scope.userId, scope.agentId]));
  SCOPE_KEYS.set(scope, { cacheSecret, key });
  return key;
}

/** Index of the last message that the next prompt shares. */
function lastSharedMessage({ messages, plan, injection }: PromptForEngine, section: number | null): number {
  const keepsAll =
    section === null ||
    (plan.layout === "conversation" &&
      (plan.retention === "keep" || (plan.retention === "volatile" && injection.annotations.length === 0)));
  return keepsAll ? messages.length - 1 : section - 1;
}

/** The message whose memories a later prompt may have too: the head of an epoch, else this turn's. */
function reusableMemories({ plan, head }: PromptForEngine, section: number | null): number | undefined {
  if ((plan.epoch?.headTokens ?? 0) > 0) return head;
  return section !== null && repeatsMemories(plan) ? section : undefined;
}

/** A single prompt's memories may return with another question; a conversation's stay, or are retrieved again. */
function repeatsMemories({ layout, retention }: PromptForEngine["plan"]): boolean {
  return layout === "single" || retention !== "ephemeral";
}
