import type { ChatMessage } from "../text/message.js";
import type { TokenCounter } from "../text/token-counter.js";
import type { Outline, Segment } from "./prompt-outline.js";

/** How far two prompts are the same from the start. */
export interface SharedPrefix {
  /** Segments that are the same, whole. */
  readonly segments: number;
  /** Characters that are the same of the first two that differ, where both are plain messages whose text is known. */
  readonly characters: number;
}

/** How far two outlined prompts are the same bytes: never further than they are. */
export function sharedPrefix(a: Outline, b: Outline): SharedPrefix {
  const most = Math.min(a.segments.length, b.segments.length);
  let segments = 0;
  while (segments < most && a.segments[segments]?.key === b.segments[segments]?.key) segments++;
  return { segments, characters: sharedText(a.segments[segments], b.segments[segments])?.length ?? 0 };
}

/** Tokens that two differing messages have in common; the last one before the difference may be cut otherwise, so it does not count. */
export function sharedTextTokens(a: Segment | undefined, b: Segment | undefined, countTokens: TokenCounter): number {
  const text = sharedText(a, b) ?? "";
  return text === "" ? 0 : Math.max(0, countTokens(text) - 1);
}

function sharedText(a: Segment | undefined, b: Segment | undefined): string | null {
  const [one, other] = [textIn(a), textIn(b)];
  if (one === null || other === null || one.role !== other.role) return null;
  return one.text.slice(0, sharedCharacters(one.text, other.text));
}

/** The text of a message that is nothing else; one with other fields may have them before its text. */
function textIn(segment: Segment | undefined): { readonly role: string; readonly text: string } | null {
  if (segment?.kind !== "instructions" && segment?.kind !== "message") return null;
  const { plain } = segment;
  return plain !== null && isBare(plain) ? { role: plain.role, text: plain.content } : null;
}

function isBare(message: ChatMessage): message is ChatMessage & { readonly content: string } {
  return typeof message.content === "string" && Object.keys(message).length === 2;
}

/** By halves: comparing slices is far faster than comparing characters, and messages may be long. */
function sharedCharacters(a: string, b: string): number {
  let [same, differing] = [0, Math.min(a.length, b.length) + 1];
  while (differing - same > 1) {
    const middle = (same + differing) >>> 1;
    if (a.slice(same, middle) === b.slice(same, middle)) same = middle;
    else differing = middle;
  }
  return same;
}
