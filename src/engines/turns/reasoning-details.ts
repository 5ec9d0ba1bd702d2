import { type JsonObject, record } from "../upstream/json-values.js";

/** Fields of a detail that are streamed in pieces. Encrypted data comes whole. */
const STREAMED = ["text", "summary"] as const;

/**
 * OpenRouter's `reasoning_details` with the fragments of a stream joined: those of one type that follow each other and have the same index.
 * Source: https://openrouter.ai/docs/use-cases/reasoning-tokens, "Preserving reasoning"
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
    ? typeof last["data"] !== "string" && typeof last["signature"] !== "string"
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
