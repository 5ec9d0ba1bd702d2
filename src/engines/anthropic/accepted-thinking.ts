import { isSealed } from "../turns/carried-reasoning.js";
import { type JsonObject, listIn, record } from "../upstream/json-values.js";

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
    return (
      role === "user" && !(Array.isArray(content) && content.some((block) => record(block)["type"] === "tool_result"))
    );
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
