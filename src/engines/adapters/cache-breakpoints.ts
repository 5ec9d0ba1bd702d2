import { blockBounds, type ChatMessage, type ContentPart } from "../../core/index.js";
import type { AdapterPrompt } from "./engine-adapter.js";
import type { BreakpointLimits } from "./provider-limits.js";

/** A provider's form of breakpoints (marks). */
export interface BreakpointStyle {
  /** The field of a content part that holds the mark. */
  readonly field: string;
  readonly mark: Readonly<Record<string, unknown>>;
  readonly limits: BreakpointLimits;
  /** Whether this part of this message may carry one. */
  readonly canMark: (message: ChatMessage, part: ContentPart) => boolean;
}

/** A place for a mark: the end of a content part. */
interface MarkPlace {
  readonly message: number;
  readonly part: number;
}

/**
 * The prompt's messages with marks where prefixes are to be cached: first the end of the earlier prompt's cached prefix, so that it is hit,
 * then the reusable ends, most useful first. The caller's own marks stay, and count against the limit. Messages that begin with memories
 * are always split behind them, so that a message is the same in every prompt that contains it.
 */
export function withBreakpoints(prompt: AdapterPrompt, style: BreakpointStyle): readonly ChatMessage[] {
  const { messages } = prompt;
  const { field, limits } = style;
  const parts = messages.map(contentParts);
  const own = messages.reduce((sum, message, at) => sum + callersMarks(message, parts[at] ?? [], field), 0);
  let free = Math.max(0, limits.maxMarks - own - (prompt.marksElsewhere ?? 0));
  const marked = new Map<number, Set<number>>();
  for (const { message, part } of placesOf(prompt, parts, style)) {
    if (free === 0) break;
    const already = marked.get(message) ?? new Set();
    if (already.has(part) || parts[message]?.[part]?.[field] != null) continue;
    marked.set(message, already.add(part));
    free--;
  }
  return messages.map((message, at) => {
    const marks = marked.get(at) ?? new Set();
    const own = parts[at] ?? [];
    if (marks.size === 0 && own.length <= (typeof message.content === "string" ? 1 : (message.content?.length ?? 0)))
      return message;
    return {
      ...message,
      content: own.map((part, n) => (marks.has(n) ? { ...part, [field]: style.mark } : part)),
    };
  });
}

/** Marks in the messages, the caller's and ours. */
export function countMarks(messages: readonly ChatMessage[], field: string): number {
  return messages.reduce((sum, message) => sum + callersMarks(message, contentParts(message), field), 0);
}

/** Some clients set a mark on the message itself, which gateways then put on its last part. */
function callersMarks(message: ChatMessage, parts: readonly ContentPart[], field: string): number {
  return (message[field] == null ? 0 : 1) + parts.filter((part) => part[field] != null).length;
}

/** Places for marks, most useful first. */
function placesOf(
  prompt: AdapterPrompt,
  parts: readonly (readonly ContentPart[])[],
  style: BreakpointStyle,
): MarkPlace[] {
  const { messages, reusableMessages, reusableMemories, cachedMessage, prefixTokens, model } = prompt;
  const minimum = style.limits.minimumTokens(model);
  const isLongEnough = (message: number) =>
    minimum === null || prefixTokens?.[message] === undefined || prefixTokens[message] >= minimum;

  /** The last part at or before the end of a message that can carry a mark. */
  const endOf = (from: number): MarkPlace[] => {
    for (let message = Math.min(from, messages.length - 1); message >= 0; message--) {
      const part = lastMarkable(messages[message] as ChatMessage, parts[message] ?? [], style);
      if (part >= 0) return isLongEnough(message) ? [{ message, part }] : [];
    }
    return [];
  };
  const memoriesOf = (message: number | undefined): MarkPlace[] => {
    const holder = message === undefined ? undefined : messages[message];
    if (message === undefined || holder === undefined || !beginsWithMemories(holder) || !isLongEnough(message))
      return [];
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
    wasCachedTo.every((place) => blocksBetween(messages, parts, place, nearest) < style.limits.lookBackBlocks);
  return isFound ? [...writes, ...wasCachedTo] : [...wasCachedTo, ...writes];
}

function lastMarkable(message: ChatMessage, parts: readonly ContentPart[], { canMark }: BreakpointStyle): number {
  for (let at = parts.length - 1; at >= 0; at--) {
    if (canMark(message, parts[at] as ContentPart)) return at;
  }
  return -1;
}

/** Content blocks between two places; tool calls count as blocks. */
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

/** A message's content as parts. Splitting never changes the text: the parts' texts in a row are the message's. */
function contentParts({ content }: ChatMessage): readonly ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : splitText({ type: "text", text: content });
  if (content === null || content === undefined) return [];
  const [first, ...others] = content;
  return first === undefined ? [] : [...splitText(first), ...others];
}

/** Whether a message's first part is, or will be, injected memories and nothing else. */
function beginsWithMemories({ content }: ChatMessage): boolean {
  const [first, second] = typeof content === "string" ? [content] : (content ?? []).map((part) => part["text"]);
  if (typeof first !== "string") return false;
  if (blockBounds(first).length > 0) return true;
  // Split before: the rest of the section is in the part behind it.
  return typeof second === "string" && blockBounds(first + second).at(-1) === first.length;
}

/**
 * Memories become a part of their own, because a mark stands at the end of a part, and what follows them (annotations, the question)
 * differs every turn. Depends on the part's text alone, so a message is split in the same place in every prompt.
 */
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
