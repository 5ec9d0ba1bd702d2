import { z } from "zod";
import type { ReportedUsage } from "./composing.js";

/*
 * Answers of OpenAI's clients (chat completions, Responses) and Anthropic's, as far as their text and their prompt's tokens go. Tolerant:
 * what is not there is null.
 */

const count = z.int().min(0);
const details = z.object({ cached_tokens: count.nullish() }).nullish().catch(null);
const usage = z.object({
  prompt_tokens: count.nullish(),
  prompt_tokens_details: details,
  input_tokens: count.nullish(),
  input_tokens_details: details,
  cache_read_input_tokens: count.nullish(),
  cache_creation_input_tokens: count.nullish(),
});

/** Tokens of an answer's prompt, and how many of them were cached. Anthropic counts those beside `input_tokens`. */
export function usageIn(answer: unknown): ReportedUsage {
  const { success, data } = z.object({ usage }).safeParse(answer);
  if (!success) return {};
  const {
    prompt_tokens,
    input_tokens,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
  } = data.usage;
  if (read != null && input_tokens != null)
    return { promptTokens: input_tokens + read + (written ?? 0), cachedTokens: read };
  const { cached_tokens: cachedTokens } = data.usage.prompt_tokens_details ?? data.usage.input_tokens_details ?? {};
  return { promptTokens: prompt_tokens ?? input_tokens, cachedTokens };
}

const parts = z
  .array(z.looseObject({ text: z.string().catch("") }))
  .transform((list) => list.map(({ text }) => text).join(""));
const said = z.union([
  z.string(),
  z
    .object({ choices: z.tuple([z.object({ message: z.object({ content: z.string() }) })], z.unknown()) })
    .transform(({ choices: [{ message }] }) => message.content),
  z.object({ output_text: z.string() }).transform(({ output_text: text }) => text),
  z.object({ content: z.union([z.string(), parts]) }).transform(({ content }) => content),
]);

/** What an answer says, or a text itself; null where it says nothing, as the call of a tool. */
export function textIn(answer: unknown): string | null {
  const { data } = said.safeParse(answer);
  return data === undefined || data === "" ? null : data;
}
