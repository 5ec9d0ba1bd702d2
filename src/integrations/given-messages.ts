import type { ChatMessage, ContentPart } from "../core/index.js";

/** A composed message, and where it came from. */
export interface ComposedMessage {
  readonly message: ChatMessage;
  /** Index of the given message that it is; null: memstem added it, or put it back from what was said before. */
  readonly of: number | null;
  /** Whether it is that message, unmodified. */
  readonly isSame: boolean;
}

/**
 * Finds the given messages in a composed prompt, which has them in their order, some with text added, others between them, and may leave
 * some out. From the end: what is cut or put back is in front.
 */
export function findGiven(given: readonly ChatMessage[], composed: readonly ChatMessage[]): readonly ComposedMessage[] {
  const found: ComposedMessage[] = [];
  let left = given.length;
  for (const message of composed.toReversed()) {
    const before = given.slice(0, left);
    const same = before.findLastIndex((one) => isSame(one, message));
    // A question that was asked before is the same text with other memories.
    const of = same >= 0 ? same : before.findLastIndex((one) => isWithMore(message, one));
    found.push({ message, of: of < 0 ? null : of, isSame: same >= 0 });
    if (of >= 0) left = of;
  }
  return found.reverse();
}

/** Whether a message is the given one with a section or cache marks in its content. */
function isWithMore({ content, ...message }: ChatMessage, { content: given, ...own }: ChatMessage): boolean {
  if (!isSame(message, own)) return false;
  const [text, said] = [partsOf(content), partsOf(given)].map(textOf);
  if (text === undefined || said === undefined || !(text.startsWith(said) || text.endsWith(said))) return false;
  const others = partsOf(content).filter(({ type }) => type !== "text");
  return isSame(
    others.map(withoutMarks),
    partsOf(given)
      .filter(({ type }) => type !== "text")
      .map(withoutMarks),
  );
}

function partsOf(content: ChatMessage["content"]): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
}

function textOf(parts: readonly ContentPart[]): string {
  return parts.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : "")).join("");
}

/** Fields of parts that engines' cache marks are in. */
function withoutMarks({ cache_control: _mark, prompt_cache_breakpoint: _breakpoint, ...part }: ContentPart): object {
  return part;
}

/** A composed message's content, with the given message's own parts where they are in it. */
export function contentWith(content: ChatMessage["content"], given: ChatMessage["content"]): ChatMessage["content"] {
  if (!Array.isArray(content) || !Array.isArray(given)) return content;
  const own: readonly ContentPart[] = given;
  return (content as readonly ContentPart[]).map((part) => own.find((one) => isSame(one, part)) ?? part);
}

/** Whether two values are the same as JSON, in whatever order their fields are. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [of, others] = [fieldsOf(a), fieldsOf(b)];
  return (
    of.size === others.size && [...of].every(([name, value]) => others.has(name) && isSame(value, others.get(name)))
  );
}

function fieldsOf(value: object): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(value).filter(([, field]) => field !== undefined));
}
