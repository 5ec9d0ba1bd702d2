import { LruMap } from "../../core/text/lru-map.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import type { UpstreamAnswer } from "../upstream/upstream.js";
import { REASONING_NAMES, type ReasoningName } from "./carried-reasoning.js";

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
