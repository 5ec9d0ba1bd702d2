/*
 * reasoning: what an engine said of its reasoning, on its way through an API that has other fields for it, and back.
 * Enters: the messages and deltas of chat completions. Leaves: texts with a sealed rest, which clients return unread where their API has
 * signatures and encrypted content; and what a client returned, as the fields that the engine gave.
 */

import { z } from "zod";
import { type ChatMessage, digestOf, messageDigest } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { isRecord, type JsonObject, listIn, parsedJson, record, text } from "../../core/text/json.js";

/** Names of a chat completion's reasoning text: DeepSeek's, Qwen's, GLM's, SGLang's, older vLLM's; newer vLLM's, OpenRouter's, Groq's. */
export const REASONING_NAMES = ["reasoning_content", "reasoning"] as const;
export type ReasoningName = (typeof REASONING_NAMES)[number];

/** Field of a chat message that keeps the blocks of Anthropic's that OpenAI's form lacks, to be sent back unmodified. */
export const ANTHROPIC_BLOCKS = "anthropic_blocks";

/** Fields of the engine's own, with a digest of what they sign. */
const signed = z.object({ of: z.string(), fields: z.record(z.string(), z.unknown()).readonly() });
export type Signed = z.output<typeof signed>;

const carried = z.object({
  /** Digest of the reasoning text that it belongs to; absent: it stands without one. */
  of: z.string().optional(),
  /** That text, for clients that return nothing else. */
  text: z.string().optional(),
  /** The fields in which the engine gave the text. */
  names: z.array(z.enum(REASONING_NAMES)).readonly().optional(),
  /** Whether the engine gave it as a part of the message's content, as Mistral's do. */
  inContent: z.boolean().optional(),
  /** OpenRouter's `reasoning_details`. */
  details: z.array(z.unknown()).readonly().optional(),
  /** LiteLLM's `thinking_blocks`. */
  thinking: z.array(z.unknown()).readonly().optional(),
  /** Other fields of reasoning, by their names. */
  others: z.record(z.string(), z.unknown()).readonly().optional(),
  /** Anthropic's blocks, as `anthropic_blocks` has them. */
  blocks: z.array(z.record(z.string(), z.unknown()).readonly()).readonly().optional(),
  /** By the id of a call: fields beside its function, as Gemini's signatures are. */
  calls: z.record(z.string(), signed).optional(),
  /** Fields beside the message's text. */
  message: signed.optional(),
  /** Characters of its message's text that stand before it. Absent: none does. */
  behind: z.number().optional(),
});
/** What another API has no field for. */
export type CarriedReasoning = z.output<typeof carried>;

/** What every sealed text begins with; no signature of a provider's does. */
const SEAL = "memprefix.reasoning.";

/** The text that a client returns unread. Plain JSON: what quotes a memory is found in it, and goes with the memory. */
export function sealed(reasoning: CarriedReasoning): string {
  return SEAL + JSON.stringify(reasoning);
}

/** Whether a signature, or encrypted content, is memprefix's own: no provider takes it. */
export function isSealed(value: unknown): boolean {
  return typeof value === "string" && value.startsWith(SEAL);
}

/** Whether a body may hold a sealed text: one look, where to read it takes many. */
export function mayHoldSealed(json: string): boolean {
  return json.includes(SEAL);
}

/** What a sealed text holds. Null: it is none, or not as it was sealed. */
export function unsealed(value: unknown): CarriedReasoning | null {
  if (typeof value !== "string" || !value.startsWith(SEAL)) return null;
  return carried.safeParse(parsedJson(value.slice(SEAL.length))).data ?? null;
}

/** Digest of a call that a signature belongs to, the same however its arguments' JSON is written. */
export function callSigned(name: string, json: unknown): string {
  const input = typeof json === "string" ? (parsedJson(json.trim() === "" ? "{}" : json) ?? json) : (json ?? {});
  return messageDigest({ role: name, input });
}

/** Fields of a detail that are streamed in pieces. Encrypted data comes whole. */
const STREAMED = ["text", "summary", "thinking"] as const;

/**
 * OpenRouter's `reasoning_details` or LiteLLM's `thinking_blocks` with the fragments of a stream joined: those of one type that follow each
 * other and have the same index, up to the signature.
 * Sources: https://openrouter.ai/docs/use-cases/reasoning-tokens, "Preserving reasoning"; https://docs.litellm.ai/docs/reasoning_content
 */
function mergedDetails(details: readonly unknown[]): readonly unknown[] {
  const merged: unknown[] = [];
  for (const detail of details) {
    const [last, next] = [record(merged.at(-1)), record(detail)];
    if (merged.length > 0 && isContinued(last, next)) merged[merged.length - 1] = joined(last, next);
    else merged.push(detail);
  }
  return merged;
}

function isContinued(last: JsonObject, next: JsonObject): boolean {
  if (last["type"] !== next["type"] || last["index"] !== next["index"]) return false;
  return STREAMED.some((field) => typeof next[field] === "string") || typeof next["signature"] === "string"
    ? typeof last["data"] !== "string" && text(last["signature"]) === ""
    : false;
}

function joined(last: JsonObject, next: JsonObject): JsonObject {
  const known = Object.entries(next).filter(([, value]) => value != null);
  const texts = STREAMED.filter((field) => typeof last[field] === "string" && typeof next[field] === "string");
  return {
    ...last,
    ...Object.fromEntries(known),
    ...Object.fromEntries(texts.map((field) => [field, `${last[field]}${next[field]}`])),
  };
}

/** Whether a detail signs a text that it does not have. */
function signsNothing(detail: unknown): boolean {
  const { type, text, signature } = record(detail);
  return type === "reasoning.text" && typeof signature === "string" && (typeof text !== "string" || text === "");
}

/** Whether a message's field is of its reasoning: those of known forms, and others, such as GitHub Copilot's `reasoning_opaque`. */
export function isOfReasoning(field: string): boolean {
  return /^(?:reasoning|thinking|thought)/.test(field);
}

/** The fields of reasoning in other forms than the known ones: texts, objects and lists. */
function othersIn(given: JsonObject): JsonObject {
  const isKnown = (name: string, value: unknown) =>
    typeof value === "string"
      ? REASONING_NAMES.some((known) => known === name)
      : Array.isArray(value) && LISTS.has(name);
  const isSaid = (value: unknown) => text(value) !== "" || Object.keys(record(value)).length > 0;
  const others = Object.entries(given).filter(([name, value]) => isOfReasoning(name) && isSaid(value));
  return Object.fromEntries(others.filter(([name, value]) => !isKnown(name, value)));
}

const LISTS: ReadonlySet<string> = new Set(["reasoning_details", "thinking_blocks"]);
/** Names under which such fields, or the objects in them, have text; the others are sealed. */
const TEXTS = ["content", "text", "summary", "thinking", "reasoning_text", "thought"];

function otherText(others: JsonObject): string {
  for (const holder of [others, ...Object.values(others).map(record)])
    for (const name of TEXTS) if (text(holder[name]) !== "") return text(holder[name]);
  return "";
}

/** A field with more of it: texts and lists go on, an object's fields have their last values, but for its text. */
function withMore(known: unknown, more: unknown): unknown {
  if (typeof known === "string" && typeof more === "string") return known + more;
  if (Array.isArray(known) && Array.isArray(more))
    return [...(known as readonly unknown[]), ...(more as readonly unknown[])];
  if (Array.isArray(more) || !isRecord(known) || !isRecord(more)) return more;
  const texts = TEXTS.filter((name) => text(known[name]) !== "" && text(more[name]) !== "");
  return { ...known, ...more, ...Object.fromEntries(texts.map((name) => [name, `${known[name]}${more[name]}`])) };
}

/** What a message or a delta of a chat completion says of its reasoning. */
export interface SaidReasoning {
  readonly text: string;
  readonly names: readonly ReasoningName[];
  /** Whether it is a part of the content. */
  readonly inContent: boolean;
  readonly details: readonly unknown[];
  readonly thinking: readonly unknown[];
  readonly others: JsonObject;
  readonly blocks: readonly JsonObject[];
}

/** Reads a message's reasoning, or a delta's. Where details or thinking blocks stand alone, theirs is the text. */
export function reasoningIn(given: JsonObject): SaidReasoning {
  const names = REASONING_NAMES.filter((name) => text(given[name]) !== "");
  const [first] = names;
  const details = listIn(given["reasoning_details"]);
  const inContent = listIn(given["content"]).map(thinkingOf).join("");
  const thinking = listIn(given["thinking_blocks"]);
  const others = othersIn(given);
  const unnamed =
    inContent || details.map(detailText).join("") || thinking.map(blockText).join("") || otherText(others);
  const said = first === undefined ? unnamed : text(given[first]);
  // A name stands for this text, not for another.
  const same = names.filter((name) => given[name] === said);
  const blocks = listIn(given[ANTHROPIC_BLOCKS]).map(record);
  const isInContent = inContent !== "" && inContent === said;
  return { text: said, names: same, inContent: isInContent, details, thinking, others, blocks };
}

/** The text of a message's content, or of a delta's: Mistral's models that reason give parts, of which some are no text. */
export function contentText(content: unknown): string {
  if (!Array.isArray(content)) return text(content);
  return content.map((part) => (record(part)["type"] === "text" ? text(record(part)["text"]) : "")).join("");
}

/** Source: https://docs.mistral.ai/capabilities/reasoning/, `ThinkChunk` */
function thinkingOf(part: unknown): string {
  const { type, thinking } = record(part);
  return type === "thinking" ? contentText(thinking) : "";
}

function blockText(block: unknown): string {
  return text(record(block)["thinking"]);
}

function detailText(detail: unknown): string {
  const { text: said, summary } = record(detail);
  return text(said) || text(summary);
}

/** Whether there is anything of reasoning beside a text. */
export function isSilent({ text: said, details, thinking, others, blocks }: SaidReasoning): boolean {
  return said === "" && details.length + thinking.length + blocks.length + Object.keys(others).length === 0;
}

/** Most characters of a text that is signed; what is longer goes back without signatures. */
export const MOST_SEALED = 4_000_000;

/** A run of reasoning, as an answer or its deltas have it. */
export class ReasoningRun {
  #text = "";
  #characters = 0;
  readonly #names = new Set<ReasoningName>();
  #inContent = false;
  readonly #details: unknown[] = [];
  readonly #thinking: unknown[] = [];
  #others: JsonObject = {};
  readonly #blocks: JsonObject[] = [];

  take({ text: said, names, inContent, details, thinking, others, blocks }: SaidReasoning): this {
    this.#inContent ||= inContent;
    for (const name of names) this.#names.add(name);
    this.#characters += said.length;
    if (this.#characters > MOST_SEALED) return this;
    this.#text += said;
    addMerged(this.#details, details);
    addMerged(this.#thinking, thinking);
    for (const [name, more] of Object.entries(others))
      this.#others = { ...this.#others, [name]: withMore(this.#others[name], more) };
    append(this.#blocks, blocks);
    return this;
  }

  /**
   * @param withText whether its client may return nothing else
   * @param offset characters of the message's text in front of it
   */
  carried(withText: boolean, offset: number): CarriedReasoning {
    const isWhole = this.#characters <= MOST_SEALED;
    return {
      ...(offset === 0 ? {} : { behind: offset }),
      ...(this.#names.size === 0 ? {} : { names: [...this.#names] }),
      ...(this.#inContent ? { inContent: true } : {}),
      ...(isWhole && this.#text !== "" ? { of: digestOf(this.#text) } : {}),
      ...(isWhole && withText && this.#text !== "" ? { text: this.#text } : {}),
      ...(isWhole && this.#details.length > 0 ? { details: this.#details } : {}),
      ...(isWhole && this.#thinking.length > 0 ? { thinking: this.#thinking } : {}),
      ...(isWhole && Object.keys(this.#others).length > 0 ? { others: this.#others } : {}),
      ...(isWhole && this.#blocks.length > 0 ? { blocks: this.#blocks } : {}),
    };
  }
}

function addMerged(known: unknown[], more: readonly unknown[]): void {
  for (const detail of more) {
    const last = known.pop();
    append(known, last === undefined ? [detail] : mergedDetails([last, detail]));
  }
}

/**
 * The reasoning of one assistant's message as its client returned it, as fields of a chat completion's message. A signature goes back with
 * what it was made for, and with nothing else: where a text or a call was changed, the text goes without it.
 */
export class ReturnedReasoning {
  #text = "";
  #isAsGiven = true;
  #inContent = false;
  readonly #names = new Set<ReasoningName>();
  readonly #details: unknown[] = [];
  readonly #thinking: unknown[] = [];
  #others: JsonObject = {};
  readonly #blocks: JsonObject[] = [];
  readonly #calls = new Map<string, Signed>();
  #message: Signed | null = null;

  /**
   * Takes the next piece.
   *
   * @param said its text; null: the client returned none
   * @param carried what was sealed with it; null: nothing, or it is another's
   */
  take(said: string | null, carried: CarriedReasoning | null): void {
    const own = said ?? carried?.text ?? "";
    const isIntact = carried === null ? own === "" : carried.of === undefined || carried.of === digestOf(own);
    this.#text += own;
    for (const name of carried?.names ?? []) this.#names.add(name);
    this.#inContent ||= carried?.inContent === true;
    this.#isAsGiven &&= isIntact;
    if (carried === null) return;
    if (isIntact) {
      append(this.#details, carried.details ?? []);
      append(this.#thinking, carried.thinking ?? []);
      for (const [name, more] of Object.entries(carried.others ?? {}))
        this.#others = { ...this.#others, [name]: withMore(this.#others[name], more) };
      append(this.#blocks, carried.blocks ?? []);
    }
    for (const [id, signed] of Object.entries(carried.calls ?? {})) this.#calls.set(id, signed);
    this.#message = carried.message ?? this.#message;
  }

  /**
   * The message's fields beside its text and its calls; also its content where that has the reasoning.
   *
   * @param content the message's own text
   */
  fields(content: ChatMessage["content"]): JsonObject {
    const details = this.#isAsGiven ? mergedDetails(this.#details).filter((detail) => !signsNothing(detail)) : [];
    const thinking = this.#isAsGiven ? this.#thinking : [];
    const others = this.#isAsGiven ? this.#others : {};
    const isElsewhere = details.length + thinking.length + Object.keys(others).length > 0;
    const isUnnamed = (isElsewhere && this.#names.size === 0) || this.#inContent;
    const names = this.#names.size > 0 ? [...this.#names] : isUnnamed ? [] : [DEFAULT_NAME];
    const whole = contentText(content);
    const isSigned = this.#message !== null && this.#message.of === digestOf(whole);
    return {
      ...(this.#inContent && this.#text !== "" ? { content: partsOf(this.#text, whole) } : {}),
      ...(this.#text === "" ? {} : Object.fromEntries(names.map((name) => [name, this.#text]))),
      ...(details.length === 0 ? {} : { reasoning_details: details }),
      ...(thinking.length === 0 ? {} : { thinking_blocks: thinking }),
      ...others,
      ...(this.#blocks.length === 0 ? {} : { [ANTHROPIC_BLOCKS]: this.#blocks }),
      ...(isSigned ? { extra_content: this.#message?.fields["extra_content"] } : {}),
    };
  }

  /** A tool call of the message, with what the engine gave beside it. */
  withSignature<T extends JsonObject>(call: T): T {
    const { name, arguments: json } = record(call["function"]);
    const signed = this.#calls.get(text(call["id"]));
    return signed === undefined || signed.of !== callSigned(text(name), json) ? call : { ...signed.fields, ...call };
  }
}

function partsOf(thought: string, said: string): readonly JsonObject[] {
  const thinking = { type: "thinking", thinking: [{ type: "text", text: thought }] };
  return said === "" ? [thinking] : [thinking, { type: "text", text: said }];
}

/** Of reasoning that no engine of this API's gave: the name that most of them take. */
const DEFAULT_NAME: ReasoningName = "reasoning_content";
