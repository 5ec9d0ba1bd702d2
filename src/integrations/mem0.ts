/*
 * Mem0: the loop around `MemoryClient` (mem0ai) or `Memory` (mem0ai/oss): search, prompt, answer, add.
 * Enters: a question or a chat. Leaves: its composed prompt, and the exchange for Mem0 without memories.
 */

import { withoutSections } from "../core/prompt/section.js";
import { record } from "../core/text/json.js";
import type { MessageLike, QueryMessage } from "../service/base/call-types.js";
import { type AdapterOptions, composeCall, countOf, type ReportedUsage, tellError } from "./composing.js";

export interface Mem0Message {
  readonly role: string;
  readonly content?: unknown;
}

export interface Mem0 {
  search(query: string, options: { filters: Record<string, unknown> }): Promise<unknown>;
  add(messages: { role: "user" | "assistant"; content: string }[], options: { userId: string }): Promise<unknown>;
}

export type Mem0SearchOptions<C extends Mem0> = NonNullable<Parameters<C["search"]>[1]>;
export type Mem0AddOptions<C extends Mem0> = NonNullable<Parameters<C["add"]>[1]>;

/** `userId` and `agentId` are Mem0's `user_id` and `agent_id`. */
export interface Mem0Names {
  readonly userId: string;
  readonly agentId?: string | null;
  /** Absent: every prompt is a single one. */
  readonly conversationId?: string | null;
}

/** `query`: what Mem0 was searched for. */
export interface Mem0Call extends Mem0Names {
  readonly query: string;
}

export interface Mem0Options<C extends Mem0>
  extends Omit<AdapterOptions<Mem0Call>, "userId" | "agentId" | "conversationId" | "memories"> {
  /** Instructions, before the messages. */
  readonly system?: string;
  /** For every search; `filters` are added to the user's and the agent's. */
  readonly search?: Mem0SearchOptions<C>;
  /** For every exchange that is remembered. */
  readonly add?: Omit<Mem0AddOptions<C>, "userId" | "agentId">;
}

export interface Mem0Prompt<M extends MessageLike> {
  /** For the engine's client; without memories if memprefix cannot compose. */
  readonly messages: M[];
  /** Mem0's answer; null if its search failed. */
  readonly memories: unknown;
  /** Adds the question and the answer (OpenAI's, Anthropic's or a text) to Mem0, and reports its usage. Rejects as `add` does; null without text. */
  remember(answer: unknown): Promise<unknown>;
  /** Reports the usage of an answer that is not remembered. Never rejects. */
  report(answer: unknown): Promise<void>;
}

export interface Mem0Chat<C extends Mem0> {
  /** Searches and composes, for a question or a chat that ends with one. Never rejects. */
  prompt<const M extends MessageLike = QueryMessage>(
    asked: string | readonly M[],
    names: Mem0Names,
  ): Promise<Mem0Prompt<M>>;
  /** Mem0's own `add`, after removing memories from composed messages. Rejects as it does. */
  add(messages: string | readonly Mem0Message[], options: Mem0AddOptions<C>): Promise<unknown>;
}

/**
 * Wraps a Mem0 client, which stays the caller's.
 *
 * @example
 * ```ts
 * const chat = withMemprefix(memory, { memprefix, search: { topK: 5 } });
 * const { messages, remember } = await chat.prompt(question, { userId: "ana", conversationId: "trip" });
 * await remember(await openai.chat.completions.create({ model, messages }));
 * ```
 */
export function withMemprefix<C extends Mem0>(memory: C, options: Mem0Options<C>): Mem0Chat<C> {
  const { system } = options;
  const add: Mem0Chat<C>["add"] = async (messages, names) => {
    const plain = typeof messages === "string" ? plainText(messages) : messages.flatMap(plainMessage);
    if (plain.length === 0) return null;
    // Mem0 trims names: it would keep this for another user.
    checkNames(names);
    return memory.add(plain as Parameters<Mem0["add"]>[0], names);
  };
  return {
    add,
    async prompt<const M extends MessageLike = QueryMessage>(asked: string | readonly M[], names: Mem0Names) {
      const said = typeof asked === "string" ? [{ role: "user", content: asked } as MessageLike as M] : asked;
      const plain = system === undefined ? said : [{ role: "system", content: system } as MessageLike as M, ...said];
      const call: Mem0Call = { ...names, query: lastAsked(said) };
      const found = await searched(memory, options, call);
      const composed = await composeCall<Mem0Call, M>(
        { ...options, ...namesOf(names), memories: () => found ?? [] },
        call,
        plain,
      );
      const report = async (answer: unknown) => composed?.report(usageIn(answer));
      return {
        messages: composed?.messages ?? [...plain],
        memories: found,
        report,
        async remember(answer: unknown) {
          await report(answer);
          const text = textIn(answer);
          if (text === null || call.query === "") return null;
          const exchange = [
            { role: "user", content: call.query },
            { role: "assistant", content: text },
          ];
          const { userId, agentId } = names;
          return add(exchange, { ...options.add, userId, ...(agentId == null ? {} : { agentId }) });
        },
      };
    },
  };
}

function namesOf({ userId, agentId, conversationId }: Mem0Names) {
  return {
    userId,
    ...(agentId == null ? {} : { agentId }),
    ...(conversationId == null ? {} : { conversationId }),
  };
}

function checkNames({
  userId,
  agentId,
}: {
  readonly userId?: string;
  readonly agentId?: string | null | undefined;
}): void {
  for (const name of [userId, agentId]) if (name != null) checkName(name);
}

async function searched<C extends Mem0>(memory: C, options: Mem0Options<C>, call: Mem0Call): Promise<unknown> {
  const { userId, agentId, query } = call;
  if (query === "") return [];
  try {
    checkNames(call);
    const of = { user_id: userId, ...(agentId == null ? {} : { agent_id: agentId }) };
    const { filters, ...search }: { readonly filters?: object } = options.search ?? {};
    const found = await memory.search(query, { ...search, filters: { ...filters, ...of } });
    return ownOf(found, userId);
  } catch (error) {
    tellError(options, error);
    return null;
  }
}

/** Removes another user's memories, in case a server ignores a filter. */
function ownOf(found: unknown, userId: string): unknown {
  const isOwn = (item: unknown) => {
    const { user_id: user, userId: name = user } = (item ?? {}) as Readonly<Record<string, unknown>>;
    return name == null || name === userId;
  };
  if (Array.isArray(found)) return found.filter(isOwn);
  const { results } = (found ?? {}) as { readonly results?: unknown };
  return Array.isArray(results) ? { ...(found as object), results: results.filter(isOwn) } : (found ?? []);
}

/** Mem0 takes `*` for any user, and trims names, which makes one user's another's. */
function checkName(name: string): void {
  if (name === "" || name === "*" || name.trim() !== name)
    throw new TypeError(`Mem0 cannot tell ${JSON.stringify(name)} from other users or agents`);
}

/** The user's last text; empty for none. */
function lastAsked(messages: readonly MessageLike[]): string {
  return (
    messages
      .flatMap((message) =>
        "role" in message && message.role === "user" ? plainText(textIn({ content: message.content }) ?? "") : [],
      )
      .findLast((text) => text !== "") ?? ""
  );
}

function plainText(text: string): string {
  return text.includes("<memories>") ? withoutSections(text).trim() : text;
}

function plainMessage<M extends Mem0Message>(message: M): readonly M[] {
  const { content } = message;
  const plain =
    typeof content === "string" ? plainText(content) : Array.isArray(content) ? content.flatMap(plainPart) : content;
  return content != null && (plain as string | readonly unknown[]).length === 0 ? [] : [{ ...message, content: plain }];
}

function plainPart(part: unknown): readonly unknown[] {
  const { text } = (part ?? {}) as { readonly text?: unknown };
  if (typeof text !== "string") return [part];
  const plain = plainText(text);
  return plain === "" ? [] : [{ ...(part as object), text: plain }];
}

/** Anthropic's clients report cached tokens beside `input_tokens`, OpenAI's include them. */
function usageIn(answer: unknown): ReportedUsage {
  const { usage } = record(answer);
  if (typeof usage !== "object" || usage === null) return {};
  const fields = record(usage);
  const [input, read] = [countOf(fields["input_tokens"]), countOf(fields["cache_read_input_tokens"])];
  if (read !== null && input !== null) {
    const written = countOf(fields["cache_creation_input_tokens"]) ?? 0;
    return { promptTokens: input + read + written, cachedTokens: read };
  }
  const details = record(fields["prompt_tokens_details"] ?? fields["input_tokens_details"]);
  return { promptTokens: countOf(fields["prompt_tokens"]) ?? input, cachedTokens: countOf(details["cached_tokens"]) };
}

/** Null for an answer without text, such as a tool call. */
function textIn(answer: unknown): string | null {
  const { output_text, content } = record(answer);
  const text = textOf(answer) ?? textOf(output_text) ?? contentText(content);
  return text === "" ? null : text;
}

function textOf(answer: unknown): string | null {
  if (typeof answer === "string") return answer;
  const { choices } = record(answer);
  const said = Array.isArray(choices) ? record(record(choices[0])["message"])["content"] : null;
  return typeof said === "string" ? said : null;
}

function contentText(content: unknown): string | null {
  if (!Array.isArray(content)) return typeof content === "string" ? content : null;
  return content.map((part: unknown) => textOf(record(part)["text"]) ?? "").join("");
}
