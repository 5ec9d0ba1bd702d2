import { type ChatMessage, LruMap, sectionAtStart, type ToolMemories } from "../../core/index.js";
import { isMistralModel } from "../../engines/adapters/mistral.js";
import type { PromptRefusal } from "../../engines/upstream/prompt-refusal.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import { modelName } from "../fields/model-name.js";

/** What a prompt has to be like for its engine to take it. */
export interface PromptTerms {
  /** Tokens that it may have, by our own count; null: nothing is known. */
  readonly maxPromptTokens: number | null;
  /** Where memories stand behind a tool's result; null: nothing is known. */
  readonly toolMemories: ToolMemories | null;
}

/** Whose prompt it is. */
export interface TermsOf {
  /** The caller's tenant. */
  readonly tenant: object;
  readonly userId: string;
  readonly model: unknown;
}

/** Tokens that a prompt may have, by our own count, and until when (the clock's milliseconds) that is taken to hold. */
interface KnownLimit {
  readonly tokens: number;
  readonly until: number;
}

/** Users with a model each whose limit is remembered, of one tenant; and models that take no user's message behind a tool's result. */
const MOST_KNOWN = 1_000;
/** An engine may be started again with a larger context under the same name. */
const LIMIT_KNOWN_FOR_MS = 60 * 60 * 1_000;
/** Of what an engine's own count says that fits: other prompts have other tokens for the same number of ours. */
const MARGIN = 0.95;

/**
 * What an engine was found to take, so that it is asked for the same twice by nobody. Kept in memory: after a restart an engine refuses one
 * more prompt. A limit is a user's own with one model, for an hour: an error that a client provoked costs nobody else their memories. Where
 * memories stand behind tool results holds for all, as inside the result they are taken everywhere.
 */
export class KnownTerms {
  readonly #limits = new WeakMap<object, LruMap<string, KnownLimit>>();
  readonly #insideResults = new LruMap<string, true>(MOST_KNOWN);

  /** @param clock milliseconds, monotonic */
  constructor(private readonly clock: () => number) {}

  of(of: TermsOf): PromptTerms {
    const limit = this.#limits.get(of.tenant)?.get(limitKey(of));
    const isInside = isMistralModel(of.model) || this.#insideResults.get(modelName(of.model)) === true;
    return {
      maxPromptTokens: limit !== undefined && limit.until > this.clock() ? limit.tokens : null,
      toolMemories: isInside ? "in_result" : null,
    };
  }

  /** The engine refused a prompt, and took one on these terms. */
  learn(of: TermsOf, { maxPromptTokens, toolMemories }: PromptTerms): void {
    if (toolMemories === "in_result") this.#insideResults.set(modelName(of.model), true);
    if (maxPromptTokens === null) return;
    const limits = this.#limits.get(of.tenant) ?? new LruMap<string, KnownLimit>(MOST_KNOWN);
    this.#limits.set(of.tenant, limits);
    limits.set(limitKey(of), { tokens: maxPromptTokens, until: this.clock() + LIMIT_KNOWN_FOR_MS });
  }
}

/** What to try where an engine refused a composed prompt; null where the client's own messages are what it refuses. */
export function termsAfter(refusal: PromptRefusal, composed: ComposeAnswer, terms: PromptTerms): PromptTerms | null {
  const { messages, plan } = composed;
  if (refusal.kind === "role_order") return hasOwnMessage(messages) ? { ...terms, toolMemories: "in_result" } : null;
  if (!messages.some(holdsMemories)) return null;
  return { ...terms, maxPromptTokens: Math.floor(roomIn(refusal, plan.totalTokens)) };
}

/** Tokens, by our own count, that a prompt may have where one of so many was refused; always fewer. */
function roomIn({ limitTokens, promptTokens }: PromptRefusal & { kind: "context_length" }, tokens: number): number {
  if (limitTokens !== null && promptTokens !== null && limitTokens < promptTokens)
    return MARGIN * tokens * (limitTokens / promptTokens);
  // What is near the limit by our count may be over it by the engine's.
  if (limitTokens !== null && limitTokens < tokens) return 0.8 * limitTokens;
  return tokens / 2;
}

/** Whether memories stand in a message of their own behind a tool's result. */
function hasOwnMessage(messages: readonly ChatMessage[]): boolean {
  return messages.some(({ role, content }, at) => {
    const before = messages[at - 1]?.role;
    const isBehindResult = before === "tool" || before === "function";
    const text = textsOf(content).join("");
    return role === "user" && isBehindResult && text !== "" && sectionAtStart(text) === text;
  });
}

function holdsMemories({ content }: ChatMessage): boolean {
  return textsOf(content).some((text) => text.includes("<memories>\n"));
}

function textsOf(content: ChatMessage["content"]): readonly string[] {
  const texts = typeof content === "string" ? [content] : (content ?? []).map((part) => part["text"]);
  return texts.filter((text) => typeof text === "string");
}

function limitKey(of: TermsOf): string {
  return JSON.stringify([of.userId, modelName(of.model)]);
}
