import { LruMap } from "../../core/text/lru-map.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import type { UpstreamAnswer } from "../upstream/upstream.js";
import { ANTHROPIC_BLOCKS, REASONING_NAMES, type ReasoningName } from "./carried-reasoning.js";

/** Fields of an assistant's message that another API's engine gave: no engine of chat completions takes them. */
const FOREIGN = [ANTHROPIC_BLOCKS] as const;
/** Fields that OpenAI's own API rejects; it gives none of them. */
const NOT_OPENAIS = [...REASONING_NAMES, "reasoning_details", "thinking_blocks", "extra_content"] as const;

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

/** Models whose names are known at a time. */
const MOST_MODELS = 1_000;
/** Bytes of an answer that are looked at: reasoning comes first. */
const MOST_BYTES = 16 * 1_024;

/**
 * By which names each model's engine gives its reasoning: an engine reads it by those alone (newer vLLM: `reasoning`), and clients return it
 * by another (the AI SDK: `reasoning_content`). Learned from answers, in memory.
 */
export class ReasoningNames {
  readonly #names = new LruMap<string, readonly ReasoningName[]>(MOST_MODELS);

  /** A chat completion's body, as JSON, with reasoning by its engine's names. The same text where it is, or where they are not known. */
  returned(json: string): string {
    if (this.#names.size === 0 || !REASONING_NAMES.some((name) => json.includes(`"${name}"`))) return json;
    const body = record(JSON.parse(json));
    const names = this.#names.get(text(body["model"]));
    if (names === undefined) return json;
    const given = listIn(body["messages"]);
    const messages = given.map((message) => named(record(message), names));
    return messages.every((message, at) => message === given[at]) ? json : JSON.stringify({ ...body, messages });
  }

  /** Passes an answer on unmodified, and learns from its first bytes. */
  learnedFrom(answer: UpstreamAnswer, sent: string): UpstreamAnswer {
    const isEncoded = answer.headers.some(([header]) => header === "content-encoding");
    return answer.status >= 300 || isEncoded ? answer : { ...answer, body: this.#read(answer.body, sent) };
  }

  async *#read(body: AsyncIterable<Uint8Array>, sent: string): AsyncGenerator<Uint8Array, void, undefined> {
    let head: string | null = "";
    for await (const bytes of body) {
      if (head !== null) {
        head += Buffer.from(bytes).toString("latin1");
        const isWhole = head.length > MOST_BYTES || /"reasoning(_content)?"\s*:\s*"[^"][\s\S]*\n\r?\n/.test(head);
        if (isWhole) this.#learn(head, sent);
        if (isWhole) head = null;
      }
      yield bytes;
    }
    if (head !== null) this.#learn(head, sent);
  }

  #learn(head: string, sent: string): void {
    const names = REASONING_NAMES.filter((name) => GIVEN[name].test(head));
    if (names.length > 0) this.#names.set(text(record(JSON.parse(sent))["model"]), names);
  }
}

/** A field with a text that is not empty, outside of other texts, where quotes are escaped. */
const GIVEN: Readonly<Record<ReasoningName, RegExp>> = {
  reasoning_content: /(?<!\\)"reasoning_content"\s*:\s*"[^"]/,
  reasoning: /(?<!\\)"reasoning"\s*:\s*"[^"]/,
};

/** The message with its reasoning by these names; the same object where it has it by all of them, or has none. */
function named(message: JsonObject, names: readonly ReasoningName[]): JsonObject {
  const said = REASONING_NAMES.map((name) => text(message[name])).find((given) => given !== "");
  const isByAll = names.every((name) => message[name] != null);
  if (message["role"] !== "assistant" || said === undefined || isByAll) return message;
  const others = Object.entries(message).filter(([field]) => !REASONING_NAMES.some((name) => name === field));
  const own = names.map((name) => [name, message[name] ?? said]);
  return { ...Object.fromEntries(others), ...Object.fromEntries(own) };
}
