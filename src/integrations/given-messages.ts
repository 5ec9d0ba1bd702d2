import type { ChatMessage, ContentPart } from "../core/index.js";

/** A message of a composed prompt, and where it came from. */
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
  const lastOf = (isIt: (one: ChatMessage) => boolean): number => {
    let at = left - 1;
    while (at >= 0 && !isIt(given[at] as ChatMessage)) at--;
    return at;
  };
  for (const message of composed.toReversed()) {
    const same = lastOf((one) => isSame(one, message));
    const of = same >= 0 ? same : lastOf((one) => isWithMore(message, one));
    found.push({ message, of: of < 0 ? null : of, isSame: same >= 0 });
    if (of >= 0) left = of;
  }
  return found.reverse();
}

/** What memstem puts into a message, whole: in front of its text, or after it. */
const SECTION = /^\s*<memories>\n[\s\S]*<\/memories>\s*$/;

/** Whether a message is the given one with a section or cache marks in its content. */
function isWithMore({ content, ...message }: ChatMessage, { content: given, ...own }: ChatMessage): boolean {
  if (message.role !== own.role || !isSame(message, own)) return false;
  const [parts, ownParts] = [partsOf(content), partsOf(given)];
  const [text, said] = [textOf(parts), textOf(ownParts)];
  const isInFront = text.endsWith(said);
  if (!isInFront && !text.startsWith(said)) return false;
  const more = isInFront ? text.slice(0, text.length - said.length) : text.slice(said.length);
  return (more === "" || SECTION.test(more)) && isSame(othersIn(parts), othersIn(ownParts));
}

function partsOf(content: ChatMessage["content"]): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
}

function textOf(parts: readonly ContentPart[]): string {
  return parts.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : "")).join("");
}

/** Parts that are no text, without engines' cache marks. */
function othersIn(parts: readonly ContentPart[]): readonly object[] {
  return parts
    .filter(({ type }) => type !== "text")
    .map(({ cache_control: _mark, prompt_cache_breakpoint: _breakpoint, ...part }) => part);
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
  const [of, others] = [fieldsIn(a), fieldsIn(b)];
  return (
    of.length === others.length &&
    of.every(([name, value]) => Object.hasOwn(b, name) && isSame(value, fieldOf(b, name)))
  );
}

function fieldsIn(value: object): readonly (readonly [string, unknown])[] {
  return Object.entries(value).filter(([, field]) => field !== undefined);
}

function fieldOf(value: object, name: string): unknown {
  return (value as Readonly<Record<string, unknown>>)[name];
}
