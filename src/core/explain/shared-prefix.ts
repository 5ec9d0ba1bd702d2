import type { ChatMessage } from "../text/message.js";
import type { TokenCounter } from "../text/token-counter.js";
import type { Outline, Segment } from "./prompt-outline.js";

/** How much of two prompts is the same, from the start. */
export interface SharedPrefix {
  /** Whole segments. */
  readonly segments: number;
  /** Characters of the first two differing segments, if both are plain messages with known text. */
  readonly characters: number;
}

/** Lower bound of the bytes that two outlined prompts share. */
export function sharedPrefix(a: Outline, b: Outline): SharedPrefix {
  const most = Math.min(a.segments.length, b.segments.length);
  let segments = 0;
  while (segments < most && a.segments[segments]?.key === b.segments[segments]?.key) segments++;
  return { segments, characters: sharedText(a.segments[segments], b.segments[segments])?.length ?? 0 };
}

/** Tokens that two differing messages share; without the last one, which may be tokenized differently across the difference. */
export function sharedTextTokens(a: Segment | undefined, b: Segment | undefined, countTokens: TokenCounter): number {
  const text = sharedText(a, b) ?? "";
  return text === "" ? 0 : Math.max(0, countTokens(text) - 1);
}

function sharedText(a: Segment | undefined, b: Segment | undefined): string | null {
  const [one, other] = [textIn(a), textIn(b)];
  if (one === null || other === null || one.role !== other.role) return null;
  return one.text.slice(0, sharedCharacters(one.text, other.text));
}

/** The text of a message without other fields, which could come before the text. */
function textIn(segment: Segment | undefined): { readonly role: string; readonly text: string } | null {
  if (segment?.kind !== "instructions" && segment?.kind !== "message") return null;
  const { plain } = segment;
  return plain !== null && isBare(plain) ? { role: plain.role, text: plain.content } : null;
}

function isBare(message: ChatMessage): message is ChatMessage & { readonly content: string } {
  return typeof message.content === "string" && Object.keys(message).length === 2;
}

/** Binary search: comparing slices is much faster than comparing characters, and messages can be long. */
function sharedCharacters(a: string, b: string): number {
  let [same, differing] = [0, Math.min(a.length, b.length) + 1];
  while (differing - same > 1) {
    const middle = (same + differing) >>> 1;
    if (a.slice(same, middle) === b.slice(same, middle)) same = middle;
    else differing = middle;
  }
  return same;
}
