import { LruMap } from "../../core/text/lru-map.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import type { UpstreamAnswer } from "../upstream/upstream.js";
import { REASONING_NAMES, type ReasoningName } from "./carried-reasoning.js";

/** Models whose names are known at a time. */
const MOST_MODELS = 1_000;
/** Bytes of an answer that are looked at: reasoning comes first. */
const MOST_BYTES = 16 * 1_024;

/**
 * By which name each model's engine gives its reasoning: an engine reads it by that name alone (newer vLLM: `reasoning`), and clients return it
 * by another (the AI SDK: `reasoning_content`). Learned from answers, in memory.
 */
export class ReasoningNames {
  readonly #names = new LruMap<string, ReasoningName>(MOST_MODELS);

  /** A chat completion's body, as JSON, with reasoning by its engine's name. The same text where it is, or where the name is not known. */
  returned(json: string): string {
    if (this.#names.size === 0 || !REASONING_NAMES.some((name) => json.includes(`"${name}"`))) return json;
    const body = record(JSON.parse(json));
    const name = this.#names.get(text(body["model"]));
    const given = listIn(body["messages"]);
    const messages = name === undefined ? given : given.map((message) => named(record(message), name));
    return messages.every((message, at) => message === given[at]) ? json : JSON.stringify({ ...body, messages });
  }

  /** Passes an answer on unmodified, and learns from its first bytes. */
  learnedFrom(answer: UpstreamAnswer, sent: string): UpstreamAnswer {
    const isEncoded = answer.headers.some(([header]) => header === "content-encoding");
    return answer.status >= 300 || isEncoded ? answer : { ...answer, body: this.#read(answer.body, sent) };
  }

  async *#read(body: AsyncIterable<Uint8Array>, sent: string): AsyncGenerator<Uint8Array, void, undefined> {
    let head = "";
    let isRead = false;
    for await (const bytes of body) {
      if (!isRead) {
        head += Buffer.from(bytes).toString("latin1");
        const names = REASONING_NAMES.filter((name) => GIVEN[name].test(head));
        const [only] = names;
        if (only !== undefined && names.length === 1) this.#names.set(modelOf(sent), only);
        // By both names at once, or by none: a client's own name is as good.
        isRead = names.length > 0 || head.length > MOST_BYTES;
        if (isRead) head = "";
      }
      yield bytes;
    }
  }
}

/** A field with a text that is not empty, outside of other texts, where quotes are escaped. */
const GIVEN: Readonly<Record<ReasoningName, RegExp>> = {
  reasoning_content: /(?<!\\)"reasoning_content"\s*:\s*"[^"]/,
  reasoning: /(?<!\\)"reasoning"\s*:\s*"[^"]/,
};

function modelOf(sent: string): string {
  return text(record(JSON.parse(sent))["model"]);
}

/** The message with its reasoning by this name; the same object where it has that, or none. */
function named(message: JsonObject, name: ReasoningName): JsonObject {
  const other = REASONING_NAMES.find((given) => given !== name && text(message[given]) !== "");
  if (message["role"] !== "assistant" || other === undefined || message[name] != null) return message;
  const fields = Object.entries(message).filter(([field]) => field !== name);
  return Object.fromEntries(fields.map(([field, value]) => [field === other ? name : field, value]));
}
