import type { ReportedUsage } from "./composing.js";

/*
 * Answers of OpenAI's clients (chat completions, Responses) and Anthropic's, as far as their text and their prompt's tokens go. Tolerant:
 * what is not there is null. Read by hand: adapters are used where zod is not installed.
 */

/** Tokens of an answer's prompt, and how many of them were cached. Anthropic counts those beside `input_tokens`. */
export function usageIn(answer: unknown): ReportedUsage {
  const usage = field(answer, "usage");
  if (typeof usage !== "object" || usage === null) return {};
  const counted = (name: string) => countIn(usage, name);
  const [input, read] = [counted("input_tokens"), counted("cache_read_input_tokens")];
  if (read != null && input != null) {
    return { promptTokens: input + read + (counted("cache_creation_input_tokens") ?? 0), cachedTokens: read };
  }
  const details = field(usage, "prompt_tokens_details") ?? field(usage, "input_tokens_details");
  return { promptTokens: counted("prompt_tokens") ?? input, cachedTokens: countIn(details, "cached_tokens") };
}

/** What an answer says, or a text itself; null where it says nothing, as the call of a tool. */
export function textIn(answer: unknown): string | null {
  const text = textOf(answer) ?? textOf(field(answer, "output_text")) ?? contentText(field(answer, "content"));
  return text === "" ? null : text;
}

/** A text, or that of a chat completion's first choice. */
function textOf(answer: unknown): string | null {
  if (typeof answer === "string") return answer;
  const choices = field(answer, "choices");
  const said = Array.isArray(choices) ? field(field(choices[0], "message"), "content") : null;
  return typeof said === "string" ? said : null;
}

/** A content's text: its own, or that of its parts. */
function contentText(content: unknown): string | null {
  if (!Array.isArray(content)) return typeof content === "string" ? content : null;
  return content.map((part: unknown) => textOf(field(part, "text")) ?? "").join("");
}

function countIn(holder: unknown, name: string): number | null {
  const value = field(holder, name);
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function field(holder: unknown, name: string): unknown {
  return typeof holder === "object" && holder !== null ? Reflect.get(holder, name) : undefined;
}
