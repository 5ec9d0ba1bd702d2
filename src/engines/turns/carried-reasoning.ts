/*
 * reasoning: what an engine said of its reasoning, on its way through an API that has other fields for it, and back.
 * Enters: the messages and deltas of chat completions. Leaves: texts with a sealed rest, which clients return unread where their API has
 * signatures and encrypted content; and what a client returned, as the fields that the engine gave.
 */

import { z } from "zod";
import { digestOf, messageDigest } from "../../core/index.js";
import { type JsonObject, record, text } from "../upstream/json-values.js";

/** Names of a chat completion's reasoning text: DeepSeek's, Qwen's, GLM's, SGLang's, older vLLM's; newer vLLM's, OpenRouter's, Groq's. */
export const REASONING_NAMES = ["reasoning_content", "reasoning"] as const;
export type ReasoningName = (typeof REASONING_NAMES)[number];

/** Field of a chat message that keeps the blocks of Anthropic's that OpenAI's form lacks, to be sent back unmodified. */
export const ANTHROPIC_BLOCKS = "anthropic_blocks";

/** Fields of the engine's own, with a digest of what they sign. */
const signed = z.object({ of: z.string(), fields: z.record(z.string(), z.unknown()) });
export type Signed = z.output<typeof signed>;

const carried = z.object({
  of: z.string().optional(),
  text: z.string().optional(),
  names: z.array(z.enum(REASONING_NAMES)).optional(),
  inContent: z.boolean().optional(),
  details: z.array(z.unknown()).optional(),
  thinking: z.array(z.unknown()).optional(),
  blocks: z.array(z.record(z.string(), z.unknown())).optional(),
  calls: z.record(z.string(), signed).optional(),
  message: signed.optional(),
  behind: z.number().optional(),
});

/** What another API has no field for. */
export interface CarriedReasoning {
  /** Digest of the reasoning text that it belongs to; absent: it stands without one. */
  readonly of?: string | undefined;
  /** That text, for clients that return nothing else. */
  readonly text?: string | undefined;
  /** The fields in which the engine gave the text. */
  readonly names?: readonly ReasoningName[] | undefined;
  /** Whether the engine gave it as a part of the message's content, as Mistral's do. */
  readonly inContent?: boolean | undefined;
  /** OpenRouter's `reasoning_details`. */
  readonly details?: readonly unknown[] | undefined;
  /** LiteLLM's `thinking_blocks`. */
  readonly thinking?: readonly unknown[] | undefined;
  /** Anthropic's blocks, as `anthropic_blocks` has them. */
  readonly blocks?: readonly JsonObject[] | undefined;
  /** By the id of a call: fields beside its function, as Gemini's signatures are. */
  readonly calls?: Readonly<Record<string, Signed>> | undefined;
  /** Fields beside the message's text. */
  readonly message?: Signed | undefined;
  /** Characters of its message's text that stand before it. Absent: none does. */
  readonly behind?: number | undefined;
}

/** What every sealed text begins with; no signature of a provider's does. */
const SEAL = "memstem.reasoning.";

/** The text that a client returns unread. Plain JSON: what quotes a memory is found in it, and goes with the memory. */
export function sealed(reasoning: CarriedReasoning): string {
  return SEAL + JSON.stringify(reasoning);
}

/** Whether a signature, or encrypted content, is memstem's own: no provider takes it. */
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
  try {
    return carried.safeParse(JSON.parse(value.slice(SEAL.length))).data ?? null;
  } catch {
    return null;
  }
}

/** Digest of a text that a signature belongs to. */
export function textSigned(text: string): string {
  return digestOf(text);
}

/** Digest of a call that a signature belongs to, the same however its arguments' JSON is written. */
export function callSigned(name: string, json: unknown): string {
  return messageDigest({ role: name, input: parsed(json) });
}

function parsed(json: unknown): unknown {
  try {
    return typeof json === "string" ? (JSON.parse(json.trim() === "" ? "{}" : json) as unknown) : (json ?? {});
  } catch {
    return json;
  }
}

/** Fields of a detail that are streamed in pieces. Encrypted data comes whole. */
const STREAMED = ["text", "summary", "thinking"] as const;

/**
 * OpenRouter's `reasoning_details` or LiteLLM's `thinking_blocks` with the fragments of a stream joined: those of one type that follow each
 * other and have the same index, up to the signature.
 * Sources: https://openrouter.ai/docs/use-cases/reasoning-tokens, "Preserving reasoning"; https://docs.litellm.ai/docs/reasoning_content
 */
export function mergedDetails(details: readonly unknown[]): readonly unknown[] {
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
export function signsNothing(detail: unknown): boolean {
  const { type, text, signature } = record(detail);
  return type === "reasoning.text" && typeof signature === "string" && (typeof text !== "string" || text === "");
}
