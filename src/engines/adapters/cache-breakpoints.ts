import { blockBounds, type ChatMessage, type ContentPart, instructionsAtHead } from "../../core/index.js";
import type { JsonObject } from "../../core/text/json.js";
import { type AdapterPrompt, type MarksElsewhere, NO_MARKS } from "./engine-adapter.js";

/** A provider's form of breakpoints (marks). `field` of a content part holds the mark. */
export interface BreakpointStyle {
  readonly field: string;
  /** The mark between the caller's marks; null: the provider allows none there. */
  readonly markBetween: (before: readonly unknown[], behind: readonly unknown[]) => JsonObject | null;
  readonly maxMarks: number;
  /** Content blocks searched backwards from a mark, the marked one included: 1 finds only prefixes that end at the mark. */
  readonly lookBackBlocks: number;
  readonly canMark: (message: ChatMessage, part: ContentPart) => boolean;
}

interface MarkPlace {
  readonly message: number;
  readonly part: number;
}

/**
 * Marks the end of the earlier prompt's cached prefix, so that it is hit, then reusable ends. The caller's marks stay and count against the limit.
 * A message that begins with memories is always split after them, so that it is the same in every prompt.
 */
export function withBreakpoints(given: AdapterPrompt, style: BreakpointStyle): readonly ChatMessage[] {
  const { field, maxMarks } = style;
  const messages = withoutPastMarks(given.messages, given.said ?? given.messages, field);
  const prompt = { ...given, messages };
  const parts = messages.map(contentParts);
  const callers = new CallersMarks(messages, parts, field, prompt.marksElsewhere ?? NO_MARKS);
  let free = Math.max(0, maxMarks - callers.count);
  const marked = new Map<number, Map<number, JsonObject>>();
  for (const place of placesOf(prompt, parts, style)) {
    if (free === 0) break;
    const { message, part } = place;
    const already = marked.get(message) ?? new Map();
    if (already.has(part) || callers.isTaken(place, messages[message]?.[field])) continue;
    const mark = style.markBetween(...callers.around(place));
    if (mark === null) continue;
    marked.set(message, already.set(part, mark));
    free--;
  }
  return messages.map((message, at) => {
    const marks = marked.get(at);
    const own = parts[at] ?? [];
    const given = typeof message.content === "string" ? 1 : (message.content?.length ?? 0);
    if (marks === undefined && own.length <= given) return message;
    return {
      ...message,
      content: own.map((part, n) => (marks?.has(n) ? { ...part, [field]: marks.get(n) } : part)),
    };
  });
}

/** The caller's marks in the order in which the provider reads the prompt: tools, messages, then the automatic one. */
class CallersMarks {
  /** A mark on a message itself has the number of parts as its `part`: it comes after the content. */
  readonly #marks: readonly { readonly place: MarkPlace; readonly mark: unknown }[];

  constructor(
    messages: readonly ChatMessage[],
    private readonly parts: readonly (readonly ContentPart[])[],
    field: string,
    private readonly elsewhere: MarksElsewhere,
  ) {
    this.#marks = messages.flatMap((given, message) => {
      const at = (part: number) => (mark: unknown) => ({ place: { message, part }, mark });
      const own = parts[message] ?? [];
      const onParts = own.flatMap((part, n) => collect(part, field, []).map(at(n)));
      return [...onParts, ...marksBeside(given, field).map(at(own.length))];
    });
  }

  get count(): number {
    return this.#marks.length + this.elsewhere.tools.length + (this.elsewhere.automatic == null ? 0 : 1);
  }

  isTaken({ message, part }: MarkPlace, ofMessage: unknown): boolean {
    const isMarked = (at: number) => this.#marks.some(({ place }) => place.message === message && place.part === at);
    if (isMarked(part)) return true;
    const { length = 0 } = this.parts[message] ?? [];
    if (part !== length - 1) return false;
    const isLast = message === this.parts.length - 1;
    return ofMessage != null || (this.elsewhere.automatic != null && isLast && !isMarked(length));
  }

  around(place: MarkPlace): [before: readonly unknown[], behind: readonly unknown[]] {
    const isInFront = (of: MarkPlace) =>
      of.message < place.message || (of.message === place.message && of.part < place.part);
    const { tools, automatic } = this.elsewhere;
    const inFront = this.#marks.filter((one) => isInFront(one.place)).map(({ mark }) => mark);
    const behind = this.#marks.filter((one) => !isInFront(one.place)).map(({ mark }) => mark);
    return [
      [...tools, ...inFront],
      [...behind, ...(automatic == null ? [] : [automatic])],
    ];
  }
}

/** Most useful first. */
function placesOf(
  prompt: AdapterPrompt,
  parts: readonly (readonly ContentPart[])[],
  style: BreakpointStyle,
): MarkPlace[] {
  const { messages, reusableMessages, reusableMemories, cachedMessage } = prompt;

  const endOf = (from: number): MarkPlace[] => {
    for (let message = Math.min(from, messages.length - 1); message >= 0; message--) {
      const part = lastMarkable(messages[message] as ChatMessage, parts[message] ?? [], style);
      if (part >= 0) return [{ message, part }];
    }
    return [];
  };
  const memoriesOf = (message: number | undefined): MarkPlace[] => {
    const holder = message === undefined ? undefined : messages[message];
    if (message === undefined || holder === undefined || !beginsWithMemories(holder)) return [];
    const part = parts[message]?.[0];
    return part !== undefined && style.canMark(holder, part) ? [{ message, part: 0 }] : [];
  };

  const [first = [], ...further] = reusableMessages.map(endOf);
  const memories = memoriesOf(reusableMemories);
  const writes = [...first, ...memories, ...further.flat()];
  if (cachedMessage === undefined) return writes;
  // A prompt whose annotations were dropped since was cached to the end of its memories.
  const isBehind = cachedMessage + 1 < messages.length - 1;
  const wasCachedTo = [...(isBehind ? memoriesOf(cachedMessage + 1) : []), ...endOf(cachedMessage)].slice(0, 1);
  const [nearest] = writes;
  const isFound =
    nearest !== undefined &&
    wasCachedTo.every((place) => blocksBetween(messages, parts, place, nearest) < style.lookBackBlocks);
  return isFound ? [...writes, ...wasCachedTo] : [...wasCachedTo, ...writes];
}

function lastMarkable(message: ChatMessage, parts: readonly ContentPart[], { canMark }: BreakpointStyle): number {
  for (let at = parts.length - 1; at >= 0; at--) {
    if (canMark(message, parts[at] as ContentPart)) return at;
  }
  return -1;
}

/** Tool calls count as blocks. */
function blocksBetween(
  messages: readonly ChatMessage[],
  parts: readonly (readonly ContentPart[])[],
  from: MarkPlace,
  to: MarkPlace,
): number {
  const indexOf = (place: MarkPlace) => {
    let blocks = place.part;
    for (let message = 0; message < place.message; message++) {
      const calls = messages[message]?.["tool_calls"];
      blocks += (parts[message]?.length ?? 0) + (Array.isArray(calls) ? calls.length : 0);
    }
    return blocks;
  };
  return Math.abs(indexOf(to) - indexOf(from));
}

function contentParts({ content }: ChatMessage): readonly ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : splitText({ type: "text", text: content });
  if (content === null || content === undefined) return [];
  const [first, ...others] = content;
  return first === undefined ? [] : [...splitText(first), ...others];
}

/** Whether a message's first part is, or will become, injected memories only. */
function beginsWithMemories({ content }: ChatMessage): boolean {
  const [first, second] = typeof content === "string" ? [content] : (content ?? []).map((part) => part["text"]);
  if (typeof first !== "string") return false;
  if (blockBounds(first).length > 0) return true;
  // Split already: the rest of the section is in the next part.
  return typeof second === "string" && blockBounds(first + second).at(-1) === first.length;
}

/** A mark is at the end of a part, so memories get their own. Depends on the text alone: a message is split at the same place in every prompt. */
function splitText(part: ContentPart): readonly ContentPart[] {
  const text = part["text"];
  if (part.type !== "text" || typeof text !== "string") return [part];
  const end = blockBounds(text).at(-1);
  if (end === undefined || end >= text.length) return [part];
  return [
    { type: "text", text: text.slice(0, end) },
    { ...part, text: text.slice(end) },
  ];
}

/** The arguments of a tool call, in which any name may mean anything. */
const ARGUMENTS = "input";

/** Each API has its own places for marks: on calls, on later system messages, on the message itself. */
function marksBeside(message: ChatMessage, field: string): readonly unknown[] {
  const found: unknown[] = [];
  for (const [name, value] of Object.entries(message)) {
    if (name === "content") continue;
    if (name !== field) collect(value, field, found);
    else if (value != null) found.push(value);
  }
  return found;
}

/** Adds the marks in a value to a list, inner ones first. */
function collect(value: unknown, field: string, found: unknown[]): unknown[] {
  if (typeof value !== "object" || value === null) return found;
  for (const [name, inner] of Object.entries(value)) {
    if (name !== field && name !== ARGUMENTS) collect(inner, field, found);
  }
  const mark = (value as JsonObject)[field];
  if (mark != null) found.push(mark);
  return found;
}

/** Removes marks of earlier requests, because the caller may have moved its marks. As many stay as the caller sends now (`said`). */
function withoutPastMarks(
  messages: readonly ChatMessage[],
  said: readonly ChatMessage[],
  field: string,
): readonly ChatMessage[] {
  let past = countMarks(messages, field) - countMarks(said, field);
  if (past <= 0) return messages;
  const head = instructionsAtHead(said) > 0 ? instructionsAtHead(messages) : 0;
  return messages.map((message, at) => {
    const count = at < head || past <= 0 ? 0 : countMarks([message], field);
    past -= count;
    return count === 0 ? message : (bare(message, field) as ChatMessage);
  });
}

export function countMarks(messages: readonly ChatMessage[], field: string): number {
  return messages.reduce((sum, message) => sum + collect(message, field, []).length, 0);
}

function bare(value: unknown, field: string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => bare(one, field));
  const fields = Object.entries(value).filter(([name]) => name !== field);
  return Object.fromEntries(fields.map(([name, inner]) => [name, name === ARGUMENTS ? inner : bare(inner, field)]));
}
