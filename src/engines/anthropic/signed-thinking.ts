import { digestOf } from "../../core/index.js";
import { LruMap } from "../../core/text/lru-map.js";
import { ANTHROPIC_BLOCKS, isSealed, REASONING_NAMES } from "../turns/reasoning.js";
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

/** Null: a message without calls, or without a text of reasoning. */
function keyOf(message: JsonObject): string | null {
  const id = text(record(listIn(message["tool_calls"])[0])["id"]);
  const said = REASONING_NAMES.map((name) => text(message[name])).find((given) => given !== "");
  return id === "" || said === undefined ? null : `${id} ${digestOf(said)}`;
}

/**
 * A body of `/v1/messages` without thinking that the API refuses: blocks without a signature, and those in which memstem sealed another
 * engine's. Where a running tool loop has none left in front of its calls, a budget of thinking goes too, as the API requires a thinking
 * block there. The same object where there is nothing of that.
 * Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Preserving thinking blocks", "Toggling thinking modes"
 *
 * @param mayLackThinking whether the client's API may have lost the thinking of the running loop: a chat's
 */
export function withAcceptedThinking<T extends JsonObject>(body: T, mayLackThinking: boolean): T {
  const given = listIn(body["messages"]);
  const accepted = given.map(withoutRefused);
  const hasDropped = accepted.some((message, at) => message !== given[at]);
  if (!hasDropped && !mayLackThinking) return body;
  const left = accepted.filter((message) => !isEmptied(message));
  const isBudgeted = record(body["thinking"])["type"] === "enabled";
  const { thinking: _thinking, ...bare } = body;
  const own = isBudgeted && runningLoop(left).some(callsUnthought) ? (bare as unknown as T) : body;
  return hasDropped ? { ...own, messages: left } : own;
}

function withoutRefused(message: unknown): unknown {
  const { role, content } = record(message);
  if (role !== "assistant" || !Array.isArray(content)) return message;
  const blocks = (content as readonly unknown[]).filter((block) => !isRefused(record(block)));
  return blocks.length === content.length ? message : { ...record(message), content: blocks };
}

function isRefused({ type, signature, data }: JsonObject): boolean {
  if (type === "thinking") return typeof signature !== "string" || signature === "" || isSealed(signature);
  return type === "redacted_thinking" && (typeof data !== "string" || data === "" || isSealed(data));
}

function isEmptied(message: unknown): boolean {
  const { role, content } = record(message);
  return role === "assistant" && Array.isArray(content) && content.length === 0;
}

/** The assistant's messages after the last words of the user's: between them stand results of tools alone. */
function runningLoop(messages: readonly unknown[]): readonly JsonObject[] {
  const asked = messages.findLastIndex((message) => {
    const { role, content } = record(message);
    return role === "user" && !listIn(content).some((block) => record(block)["type"] === "tool_result");
  });
  return messages
    .slice(asked + 1)
    .map(record)
    .filter(({ role }) => role === "assistant");
}

function callsUnthought({ content }: JsonObject): boolean {
  const types = listIn(content).map((block) => record(block)["type"]);
  const isThought = types[0] === "thinking" || types[0] === "redacted_thinking";
  return types.includes("tool_use") && !isThought;
}
