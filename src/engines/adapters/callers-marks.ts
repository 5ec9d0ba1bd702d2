import { type ChatMessage, type ContentPart, instructionsAtHead } from "../../core/index.js";

/** Breakpoints (marks) that a caller set in one message, by where they stand. */
export interface CallersMarks {
  /** In front of the content: on blocks that only the provider reads. */
  readonly before: readonly unknown[];
  /** On each part of the content, or inside of it. */
  readonly parts: readonly (readonly unknown[])[];
  /** After the content: on calls, on system messages after it, on the message itself, which is its last part's. */
  readonly behind: readonly unknown[];
}

/** Fields of a message that stand in front of its content. */
const IN_FRONT: ReadonlySet<string> = new Set(["anthropic_blocks"]);
/** What a model called a tool with, where any name may stand for anything. */
const ARGUMENTS = "input";

/**
 * The caller's marks in a message, wherever it keeps them: every API has places of its own.
 *
 * @param parts its content, as parts
 * @param field the field that holds a mark
 */
export function callersMarks(message: ChatMessage, parts: readonly ContentPart[], field: string): CallersMarks {
  const before: unknown[] = [];
  const behind: unknown[] = [];
  for (const [name, value] of Object.entries(message)) {
    if (name === "content") continue;
    if (name === field) {
      if (value != null) behind.push(value);
    } else collect(value, field, IN_FRONT.has(name) ? before : behind);
  }
  return { before, parts: parts.map((part) => collect(part, field, [])), behind };
}

/** Adds the marks in a value to a list, in order: what stands inside of something comes before its own. */
function collect(value: unknown, field: string, found: unknown[]): unknown[] {
  if (typeof value !== "object" || value === null) return found;
  for (const [name, inner] of Object.entries(value)) {
    if (name !== field && name !== ARGUMENTS) collect(inner, field, found);
  }
  const mark = (value as Readonly<Record<string, unknown>>)[field];
  if (mark != null) found.push(mark);
  return found;
}

/**
 * A prompt's messages without marks from earlier requests: on messages that were put back in front of what the caller sends now, who may
 * have moved its marks since. After the caller's own instructions, the first ones go, until there are as many as the caller sent.
 *
 * @param said what the caller sends now
 */
export function withoutPastMarks(
  messages: readonly ChatMessage[],
  said: readonly ChatMessage[],
  field: string,
): readonly ChatMessage[] {
  let past = sumOf(messages, field) - sumOf(said, field);
  if (past <= 0) return messages;
  const head = instructionsAtHead(said) > 0 ? instructionsAtHead(messages) : 0;
  return messages.map((message, at) => {
    const count = at < head || past <= 0 ? 0 : sumOf([message], field);
    past -= count;
    return count === 0 ? message : (bare(message, field) as ChatMessage);
  });
}

function sumOf(messages: readonly ChatMessage[], field: string): number {
  return messages.reduce((sum, message) => sum + collect(message, field, []).length, 0);
}

function bare(value: unknown, field: string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => bare(one, field));
  const fields = Object.entries(value).filter(([name]) => name !== field);
  return Object.fromEntries(fields.map(([name, inner]) => [name, name === ARGUMENTS ? inner : bare(inner, field)]));
}
