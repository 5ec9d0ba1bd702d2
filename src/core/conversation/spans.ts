import { escapeText } from "../escaping/escaping.js";
import { parsedJson } from "../text/json.js";
import type { ChatMessage, ContentPart } from "../text/message.js";

/* Spans: parts of a tool's result that an earlier message has word for word. Source: https://arxiv.org/abs/2511.03475, section 1 (3). */

/** Characters at a span's start by which it is found, in whole units. */
const ANCHOR = 80;
/** Shorter spans stay: a reference has up to 140 characters. */
const SHORTEST = 400;
/** Characters quoted from a span's start and end. */
const QUOTED = 40;
const LONGEST_UNIT = 512;
/** The rest of a longer prompt is not read. Ordinary texts of 3 MB have fewer units. */
const MOST_UNITS = 100_000;
const SENTENCE_ENDS = ".!?;";

/** The original of each message with references. */
const ORIGINALS = new WeakMap<ChatMessage, ChatMessage>();

/** Undoes {@link withSpanReferences}, for a prompt that leaves out what they refer to. */
export function withoutSpanReferences(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.map((message) => ORIGINALS.get(message) ?? message);
}

/**
 * Replaces each longer part of a tool's result that an earlier message contains by a reference:
 *     <same-as-above>from "first words" to "last words"</same-as-above>
 * Later messages do not matter, so equal histories stay equal. JSON results, users' and the model's messages stay unmodified. Linear time.
 */
export function withSpanReferences(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const above = new TextAbove();
  return messages.map((message) => {
    const shorter = shortened(message, above);
    if (shorter !== message) ORIGINALS.set(shorter, message);
    return shorter;
  });
}

function shortened(message: ChatMessage, above: TextAbove): ChatMessage {
  const { role, content } = message;
  const read = (text: string) => above.read(text, role === "tool" && parsedJson(text) === undefined);
  if (typeof content === "string") {
    const shorter = read(content);
    return shorter === content ? message : { ...message, content: shorter };
  }
  if (content === null || content === undefined) return message;
  const parts = content.map((part): ContentPart => {
    if (typeof part["text"] !== "string") return part;
    const shorter = read(part["text"]);
    return shorter === part["text"] ? part : { ...part, text: shorter };
  });
  return parts.every((part, at) => part === content[at]) ? message : { ...message, content: parts };
}

class Units {
  /** The start of each unit, and the text's end. */
  readonly #bounds: readonly number[];

  constructor(readonly text: string) {
    const bounds = [0];
    for (let at = 0, from = 0; at < text.length; at++) {
      const isEnd =
        text[at] === "\n" ||
        (text[at] === " " && SENTENCE_ENDS.includes(text[at - 1] ?? " ")) ||
        (at - from >= LONGEST_UNIT && !isFirstHalf(text, at));
      if (!isEnd && at < text.length - 1) continue;
      from = at + 1;
      bounds.push(from);
    }
    this.#bounds = bounds;
  }

  get count(): number {
    return this.#bounds.length - 1;
  }

  slice(from: number, to: number): string {
    return this.text.slice(this.#bounds[from], this.#bounds[to]);
  }

  characters(from: number, to: number): number {
    return (this.#bounds[to] ?? 0) - (this.#bounds[from] ?? 0);
  }

  /** The unit after the anchor that begins here; null if the text ends before. */
  anchorEnd(from: number): number | null {
    for (let to = from + 1; to <= this.count; to++) if (this.characters(from, to) >= ANCHOR) return to;
    return null;
  }
}

class TextAbove {
  readonly #anchors = new Map<string, { readonly units: Units; readonly end: number }>();
  #units = 0;

  /** The text with references. Later texts may refer to what remains. */
  read(text: string, mayRefer: boolean): string {
    if (this.#units > MOST_UNITS) return text;
    const units = new Units(text);
    this.#units += units.count;
    if (this.#units > MOST_UNITS) return text;
    const said: string[] = [];
    const kept: Units[] = [];
    let from = 0;
    for (let at = 0; mayRefer && at < units.count; ) {
      const end = this.#spanEnd(units, at);
      if (units.characters(at, end) < SHORTEST) at++;
      else {
        const before = units.slice(from, at);
        kept.push(new Units(before));
        said.push(before, referenceTo(units.slice(at, end)));
        from = at = end;
      }
    }
    const rest = units.slice(from, units.count);
    kept.push(from === 0 ? units : new Units(rest));
    for (const piece of kept) this.#add(piece);
    return from === 0 ? text : said.join("") + rest;
  }

  /** The unit up to which a text from `from` is above; `from` itself for none. */
  #spanEnd(units: Units, from: number): number {
    const anchored = units.anchorEnd(from);
    const above = anchored === null ? undefined : this.#anchors.get(units.slice(from, anchored));
    if (anchored === null || above === undefined) return from;
    let [end, there] = [anchored, above.end];
    while (end < units.count && there < above.units.count) {
      // No line break follows at a text's end.
      if (units.slice(end, end + 1).trimEnd() !== above.units.slice(there, there + 1).trimEnd()) break;
      end++;
      there++;
    }
    return end;
  }

  /** The first of equal anchors counts: nothing before it refers to it. */
  #add(units: Units): void {
    for (let at = 0; at < units.count; at++) {
      const end = units.anchorEnd(at);
      if (end === null) return;
      const anchor = units.slice(at, end);
      if (!this.#anchors.has(anchor)) this.#anchors.set(anchor, { units, end });
    }
  }
}

function isFirstHalf(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0xd800 && code < 0xdc00;
}

/** No memory can have this tag (`escaping.ts`), and a tool's words in it get none. */
function referenceTo(span: string): string {
  const words = span.trim();
  const first = words.slice(0, QUOTED).replace(/\s+\S*$|[\uD800-\uDBFF]$/, "");
  const last = words.slice(-QUOTED).replace(/^\S*\s+|^[\uDC00-\uDFFF]/, "");
  const [from, to] = [first, last].map((quote) => escapeText(quote.replace(/\s+/g, " ")));
  return `<same-as-above>from "${from}" to "${to}"</same-as-above>${span.endsWith("\n") ? "\n" : ""}`;
}
