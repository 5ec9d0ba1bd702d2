import { type JsonObject, listIn, record } from "../upstream/json-values.js";
import { ANTHROPIC_BLOCKS, REASONING_NAMES } from "./carried-reasoning.js";

/** Fields of an assistant's message that another API's engine gave: no engine of chat completions takes them. */
const FOREIGN = [ANTHROPIC_BLOCKS] as const;
/** Fields that OpenAI's own API rejects; it gives none of them. */
const NOT_OPENAIS = [...REASONING_NAMES, "reasoning_details", "extra_content"] as const;

/** What the engine takes. */
interface Dialect {
  /** Whether it is OpenAI's own API. */
  readonly isOpenAi: boolean;
}

/**
 * A chat completion's body, as JSON, without what its engine would not take of reasoning: signed blocks of Anthropic's, which were given by
 * another engine; with OpenAI's own API all of it. The same text where there is nothing of that.
 */
export function withoutForeignReasoning(json: string, { isOpenAi }: Dialect): string {
  const dropped: readonly string[] = isOpenAi ? [...FOREIGN, ...NOT_OPENAIS] : FOREIGN;
  if (!dropped.some((field) => json.includes(`"${field}"`))) return json;
  const body = record(JSON.parse(json));
  const messages = listIn(body["messages"]).map((message) => {
    if (record(message)["role"] !== "assistant") return message;
    const said = without(record(message), dropped);
    const calls = said["tool_calls"];
    if (!Array.isArray(calls)) return said;
    return { ...said, tool_calls: calls.map((call) => without(record(call), dropped)) };
  });
  return JSON.stringify({ ...body, messages });
}

function without(given: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([field]) => !fields.includes(field)));
}
