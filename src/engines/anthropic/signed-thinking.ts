import { digestOf } from "../../core/index.js";
import { append } from "../../core/text/lists.js";
import { LruMap } from "../../core/text/lru-map.js";
import { ANTHROPIC_BLOCKS, REASONING_NAMES } from "../turns/carried-reasoning.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";

/** Answers that are remembered. */
const MOST_ANSWERS = 1_000;
/** Characters of one answer's blocks, as JSON; longer ones are not. */
const MOST_CHARACTERS = 64 * 1_024;

/**
 * The signed thinking of answers that call tools, for clients of chat completions that return the reasoning's text but drop fields that they
 * do not know. In memory only: after a restart such a loop goes on without its thinking. A client gets back what it returns: the blocks are
 * found by the call's id and the text together.
 */
export class SignedThinking {
  readonly #blocks = new LruMap<string, readonly unknown[]>(MOST_ANSWERS);

  /** Remembers a chat message that was answered. */
  answered(message: JsonObject): void {
    const key = keyOf(message);
    const blocks = message[ANTHROPIC_BLOCKS];
    if (key === null || !Array.isArray(blocks) || JSON.stringify(blocks).length > MOST_CHARACTERS) return;
    this.#blocks.set(key, blocks);
  }

  /** The message with its blocks, where its client dropped them and nothing else of its thinking. */
  returned<T extends JsonObject>(message: T): T {
    if (message["role"] !== "assistant" || message[ANTHROPIC_BLOCKS] != null) return message;
    const key = keyOf(message);
    const blocks = key === null ? undefined : this.#blocks.get(key);
    return blocks === undefined ? message : { ...message, [ANTHROPIC_BLOCKS]: blocks };
  }
}

/** Reads a chat message of the chunks of a stream, as far as it is remembered. */
export class StreamedThinking {
  readonly #message: { reasoning_content: string; tool_calls: unknown[]; anthropic_blocks: unknown[] } = {
    reasoning_content: "",
    tool_calls: [],
    anthropic_blocks: [],
  };

  take(chunk: JsonObject): void {
    // Of a longer one nothing is remembered.
    if (this.#message.reasoning_content.length > MOST_CHARACTERS) return;
    const { reasoning_content, tool_calls, anthropic_blocks } = record(record(listIn(chunk["choices"])[0])["delta"]);
    this.#message.reasoning_content += text(reasoning_content);
    append(
      this.#message.tool_calls,
      listIn(tool_calls).filter((call) => text(record(call)["id"]) !== ""),
    );
    append(this.#message.anthropic_blocks, listIn(anthropic_blocks));
  }

  get message(): JsonObject {
    return this.#message;
  }
}

/** Null: a message without calls, or without a text of reasoning. */
function keyOf(message: JsonObject): string | null {
  const id = text(record(listIn(message["tool_calls"])[0])["id"]);
  const said = REASONING_NAMES.map((name) => text(message[name])).find((given) => given !== "");
  return id === "" || said === undefined ? null : `${id} ${digestOf(said)}`;
}
