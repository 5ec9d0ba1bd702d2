import { type ChatMessage, LruMap, sectionAtStart, type ToolMemories } from "../../core/index.js";
import { isMistralModel } from "../../engines/adapters/mistral.js";
import type { PromptRefusal } from "../../engines/upstream/prompt-refusal.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { ComposeAnswer } from "../compose/composed-prompt.js";
import { modelName } from "../learning/refused-models.js";

/** Constraints that an engine puts on a prompt. */
export interface PromptConstraints {
  /** Most tokens, as memstem counts them; null: unknown. */
  readonly acceptedTokens: number | null;
  /** Placement of memories after a tool's result; null: unknown. */
  readonly toolMemories: ToolMemories | null;
}

/** Whose prompt it is, and for which model. */
export interface ConstraintsKey {
  /** The caller's tenant. */
  readonly tenant: object;
  readonly userId: string;
  readonly model: unknown;
}

/** Most tokens of a prompt, as memstem counts them, until a time in the clock's milliseconds. */
interface KnownLimit {
  readonly tokens: number;
  readonly until: number;
}

/** Most (user, model) pairs of one tenant whose limit is remembered, and most models that take no user message after a tool's result. */
const MOST_KNOWN = 1_000;
/** A limit expires: the engine may be restarted with a larger context under the same name. */
const LIMIT_KNOWN_FOR_MS = 60 * 60 * 1_000;
/** Safety margin below the engine's limit: the ratio of its tokens to ours differs from prompt to prompt. */
const MARGIN = 0.95;

/**
 * Constraints learned from an engine's refusals, so that it refuses a prompt for each of them once. In memory only: after a restart it
 * refuses one more. A token limit is kept per tenant, user and model, for an hour, so an error that one client provoked costs nobody else
 * their memories. The placement after tool results is kept for all: every engine takes memories inside the result.
 */
export class KnownConstraints {
  readonly #limits = new WeakMap<object, LruMap<string, KnownLimit>>();
  readonly #insideResults = new LruMap<string, true>(MOST_KNOWN);

  /** @param clock milliseconds, monotonic */
  constructor(private readonly clock: () => number) {}

  of(of: ConstraintsKey): PromptConstraints {
    const limit = this.#limits.get(of.tenant)?.get(limitKey(of));
    const isInside = isMistralModel(of.model) || this.#insideResults.get(modelName(of.model)) === true;
    return {
      acceptedTokens: limit !== undefined && limit.until > this.clock() ? limit.tokens : null,
      toolMemories: isInside ? "in_result" : null,
    };
  }

  /** The engine refused a prompt, and accepted one under these constraints. */
  learn(of: ConstraintsKey, { acceptedTokens, toolMemories }: PromptConstraints): void {
    if (toolMemories === "in_result") this.#insideResults.set(modelName(of.model), true);
    if (acceptedTokens === null) return;
    const limits = this.#limits.get(of.tenant) ?? new LruMap<string, KnownLimit>(MOST_KNOWN);
    this.#limits.set(of.tenant, limits);
    limits.set(limitKey(of), { tokens: acceptedTokens, until: this.clock() + LIMIT_KNOWN_FOR_MS });
  }
}

/**
 * The constraints to try after an engine refused a composed prompt; null where it refuses the client's own messages and none of them can be
 * left out.
 */
export function constraintsAfter(
  refusal: PromptRefusal,
  composed: ComposeAnswer,
  terms: PromptConstraints,
  history: ComposeRequest["history"],
): PromptConstraints | null {
  const { messages, plan } = composed;
  if (refusal.kind === "role_order") return hasOwnMessage(messages) ? { ...terms, toolMemories: "in_result" } : null;
  const mayCut = plan.layout === "conversation" && history !== "exact" && messages.filter(isOfUser).length > 1;
  if (!mayCut && !messages.some(holdsMemories)) return null;
  return { ...terms, acceptedTokens: Math.floor(roomIn(refusal, plan.totalTokens)) };
}

/** Tokens to try, as memstem counts them, where a prompt of `tokens` was refused; always fewer. */
function roomIn({ limitTokens, promptTokens }: PromptRefusal & { kind: "context_length" }, tokens: number): number {
  if (limitTokens !== null && promptTokens !== null && limitTokens < promptTokens)
    return MARGIN * tokens * (limitTokens / promptTokens);
  // Near the limit by our count may be over it by the engine's.
  if (limitTokens !== null && limitTokens < tokens) return 0.8 * limitTokens;
  return tokens / 2;
}

/** Whether memories are in a message of their own after a tool's result. */
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
