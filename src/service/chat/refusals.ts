import { type ChatMessage, LruMap, sectionAtStart } from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { bufferBody, isEventStream } from "../../engines/upstream/answer-body.js";
import { mayRefusePrompt, type PromptRefusal, readPromptRefusal } from "../../engines/upstream/engine-errors.js";
import { peekAtFirstEvent } from "../../engines/upstream/first-event.js";
import type { UpstreamAnswer } from "../../engines/upstream/upstream.js";
import type { ComposeAnswer } from "../base/call-types.js";
import type { ComposeRequest } from "../compose/compose-request.js";

export interface PromptConstraints {
  /** Most tokens, by memprefix's count; null: unknown. */
  readonly acceptedTokens: number | null;
  readonly inResult: boolean;
}

export interface ConstraintsKey {
  readonly tenant: object;
  readonly userId: string;
  readonly model: unknown;
}

/** Most tokens of a prompt, by memprefix's count; expires at a time of the clock. */
interface KnownLimit {
  readonly tokens: number;
  readonly until: number;
}

/** Most (user, model) pairs, and most models without user messages after tool results, that are remembered per tenant. */
const MOST_KNOWN = 1_000;
/** A limit expires: the engine may restart with a larger context under the same name. */
const LIMIT_KNOWN_FOR_MS = 60 * 60 * 1_000;
/** Margin below the engine's limit: the ratio of its tokens to ours varies. */
const MARGIN = 0.95;

/**
 * Constraints learned from an engine's refusals, so that each causes one refusal; in memory only. Kept per tenant, so that one tenant's client
 * cannot change another's prompts: a token limit per user and model, the placement after tool results per model.
 */
export class KnownConstraints {
  readonly #limits = new WeakMap<object, LruMap<string, KnownLimit>>();
  readonly #insideResults = new WeakMap<object, LruMap<string, true>>();

  constructor(private readonly clock: () => number) {}

  of(of: ConstraintsKey): PromptConstraints {
    const limit = this.#limits.get(of.tenant)?.get(limitKey(of));
    return {
      acceptedTokens: limit !== undefined && limit.until > this.clock() ? limit.tokens : null,
      inResult: this.#insideResults.get(of.tenant)?.get(modelName(of.model)) === true,
    };
  }

  /** The engine refused a prompt, and accepted one under these constraints. */
  learn(of: ConstraintsKey, { acceptedTokens, inResult }: PromptConstraints): void {
    if (inResult) keptIn(this.#insideResults, of.tenant, () => new LruMap(MOST_KNOWN)).set(modelName(of.model), true);
    if (acceptedTokens === null) return;
    const limits = keptIn(this.#limits, of.tenant, () => new LruMap(MOST_KNOWN));
    limits.set(limitKey(of), { tokens: acceptedTokens, until: this.clock() + LIMIT_KNOWN_FOR_MS });
  }
}

/** The constraints to try next; null: the engine refuses the client's own messages, and none of them can be left out. */
export function constraintsAfter(
  refusal: PromptRefusal,
  composed: ComposeAnswer,
  terms: PromptConstraints,
  history: ComposeRequest["history"],
): PromptConstraints | null {
  const { messages, plan } = composed;
  if (refusal.kind === "role_order") return hasOwnMessage(messages) ? { ...terms, inResult: true } : null;
  const mayCut = plan.layout === "conversation" && history !== "exact" && messages.filter(isOfUser).length > 1;
  if (!mayCut && !messages.some(holdsMemories)) return null;
  return { ...terms, acceptedTokens: Math.floor(roomIn(refusal, plan.totalTokens)) };
}

/** Tokens to try, by memprefix's count, after a prompt of `tokens` was refused; always fewer. */
function roomIn({ limitTokens, promptTokens }: PromptRefusal & { kind: "context_length" }, tokens: number): number {
  if (limitTokens !== null && promptTokens !== null && limitTokens < promptTokens)
    return MARGIN * tokens * (limitTokens / promptTokens);
  // A prompt near the limit by our count may exceed it by the engine's.
  if (limitTokens !== null && limitTokens < tokens) return 0.8 * limitTokens;
  return tokens / 2;
}

/** Whether memories have their own message after a tool's result. */
function hasOwnMessage(messages: readonly ChatMessage[]): boolean {
  return messages.some(({ role, content }, at) => {
    const before = messages[at - 1]?.role;
    const isBehindResult = before === "tool" || before === "function";
    const text = textsOf(content).join("");
    return role === "user" && isBehindResult && text !== "" && sectionAtStart(text) === text;
  });
}

function isOfUser({ role }: ChatMessage): boolean {
  return role === "user";
}

function holdsMemories({ content }: ChatMessage): boolean {
  return textsOf(content).some((text) => text.includes("<memories>\n"));
}

function textsOf(content: ChatMessage["content"]): readonly string[] {
  const texts = typeof content === "string" ? [content] : (content ?? []).map((part) => part["text"]);
  return texts.filter((text) => typeof text === "string");
}

function limitKey(of: ConstraintsKey): string {
  return JSON.stringify([of.userId, modelName(of.model)]);
}

const MAX_ERROR_BYTES = 256 * 1024;
/** Stands for the status of an error inside an answer. */
const IN_ANSWER = 400;

export interface RefusalCheck {
  readonly refusal: PromptRefusal | null;
  readonly answer: UpstreamAnswer;
  /** Ends a body that will not be read; null: nothing to end. */
  readonly end: (() => Promise<void>) | null;
}

/** Checks whether the engine refused a prompt. Rejects with `UpstreamError` if the answer breaks off. */
export async function checkForRefusal(answer: UpstreamAnswer): Promise<RefusalCheck> {
  const isSuccess = answer.status < 300;
  if (isSuccess && isEventStream(answer)) {
    const { event, body, end } = await peekAtFirstEvent(answer.body);
    return { refusal: event === null ? null : readPromptRefusal(IN_ANSWER, event), answer: { ...answer, body }, end };
  }
  if (!isSuccess && !mayRefusePrompt(answer.status)) return { refusal: null, answer, end: null };
  const { whole, body } = await bufferBody(answer.body, MAX_ERROR_BYTES);
  const refusal = whole === null ? null : readPromptRefusal(isSuccess ? IN_ANSWER : answer.status, whole);
  return { refusal, answer: { ...answer, body }, end: null };
}

/** Milliseconds until a refused option is tried again: the engine may have been updated. */
const ASK_AGAIN_AFTER_MS = 10 * 60_000;
const MAX_MODELS = 256;

/** Models for which an engine refused an option that memprefix added. Per tenant and for a while: a client may have caused it. */
export class RefusedModels {
  readonly #until = new WeakMap<object, LruMap<string, number>>();

  constructor(private readonly clock: () => number) {}

  /** @param tenant the same object for all of one tenant's requests */
  has(tenant: object, model: string): boolean {
    return this.clock() < (this.#until.get(tenant)?.get(model) ?? Number.NEGATIVE_INFINITY);
  }

  add(tenant: object, model: string): void {
    const models = keptIn(this.#until, tenant, () => new LruMap(MAX_MODELS));
    models.set(model, this.clock() + ASK_AGAIN_AFTER_MS);
  }
}

const MODEL_CHARACTERS = 200;

/** The model that a client's body names, truncated for comparison; empty: none. */
export function modelName(model: unknown): string {
  return typeof model === "string" ? model.slice(0, MODEL_CHARACTERS) : "";
}
