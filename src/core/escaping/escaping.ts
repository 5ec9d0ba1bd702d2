/*
 * escaping: memory text is untrusted. Whatever looks like a label, a section's boundary, an annotation or a template token is escaped so
 * that it cannot be taken for one; nothing else is changed.
 * Enters: a memory's text. Leaves: the text as it may be in a prompt, and the inverse; also quotes found in any encoding, for forgetting.
 */

import { ConfiguredMarker } from "./configured-marker.js";
import { BREAK, escapeNumberedLines, unescapeNumberedLines } from "./line-breaks.js";
import { CANDIDATES, isMarkerAt, OPENER_CLASS } from "./marker-shapes.js";

/**
 * How the text of a block is escaped: everything with the shape of a marker, the number of a further line that begins as a block's does, and
 * what is configured. Stored with every block that was injected otherwise than {@link NO_MARKERS}, so that a sent text is rendered again to
 * the same bytes.
 */
export interface Escaping {
  /** The configured markers that this text contains. */
  readonly markers: readonly string[];
}

/** The escaping of a text without configured markers. */
export const NO_MARKERS: Escaping = { markers: [] };

/*
 * A backslash is inserted after a marker's first character: `[7]` becomes `[\7]`, `[\7]` becomes `[\\7]`. Existing backslashes do not
 * affect whether a marker matches, so the inverse removes one from each match.
 */

/** Escapes a canonical text for a section. Linear time. */
export function escapeText(text: string, { markers }: Escaping = NO_MARKERS): string {
  if (markers.length === 0 && !MAY_CHANGE.test(text)) return text;
  let escaped = text.replace(CANDIDATES, (opener, at: number) => (isMarkerAt(text, at) ? `${opener}\\` : opener));
  for (const marker of markers) escaped = new ConfiguredMarker(marker).escape(escaped);
  return escapeNumberedLines(escaped).replace(LINE_BREAKS, "$&  ");
}

/** The inverse of {@link escapeText}. */
export function unescapeText(written: string, { markers }: Escaping = NO_MARKERS): string {
  let text = unescapeNumberedLines(written.replace(INDENTED, "$1"));
  for (const marker of [...markers].reverse()) text = new ConfiguredMarker(marker).unescape(text);
  const escaped = text;
  return escaped.replace(ESCAPED_OPENERS, (both, opener: string, at: number) =>
    isMarkerAt(escaped, at) ? opener : both,
  );
}

/** The escaping for a text that may contain some of the configured markers. */
export function escapingOf(text: string, configured: readonly string[]): Escaping {
  const markers = configured.filter((marker) => new ConfiguredMarker(marker).isIn(text));
  return markers.length === 0 ? NO_MARKERS : { markers };
}

/** Whether two escapings give the same bytes for a text; true for most, which contain no configured marker. */
export function isEscapedAlike(text: string, a: Escaping, b: Escaping): boolean {
  return a === b || (a.markers.length === 0 && b.markers.length === 0) || escapeText(text, a) === escapeText(text, b);
}

/**
 * Whether a line of an annotation, worded by a caller, contains a label, a section's tag or a token of the list. Other markers are allowed,
 * because the caller can write them in a system prompt too.
 */
export function forgesStructure(line: string): boolean {
  return LISTED.test(line) || OWN_STRUCTURE.test(escapeText(line));
}

/** An escaped label or section tag. */
const OWN_STRUCTURE = /[[［﹇]\\\s*\p{N}+\s*[\]］﹈]|[<＜﹤]\\\s*[/／]?\s*memories/iu;
const ESCAPED_OPENERS = new RegExp(String.raw`(${OPENER_CLASS})\\`, "g");

const LINE_BREAKS = new RegExp(BREAK, "g");
/** What a text has if anything but a configured marker is escaped in it: one look, where escaping takes three. */
const MAY_CHANGE = new RegExp(`${OPENER_CLASS}|${BREAK}`);
const INDENTED = new RegExp(`(${BREAK})  `, "g");

/** Listed tokens after a square bracket: a label; turns and tools of Llama 2, Mistral and GLM. */
const LISTED_BRACKETED = String.raw`\d+|\/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID)|[gs]MASK`;
/**
 * Listed tokens after an angle bracket: a section's tags; `<|…|>` of most templates, `<｜…｜>` of DeepSeek's; start and end tokens of Llama
 * 2, Gemma, Cohere and GLM; reasoning and tools of Qwen and Hermes.
 */
const LISTED_ANGLED = String.raw`\/?memories|[|｜]|<\/?SYS>>|\/?(?:s|bos|eos|sop|eop|think|tool_call|tool_response|tools)>|\w{1,32}_of_\w{1,32}>|\w{1,32}_TOKEN>`;
/** A token of the list, escaped or not, or a further line. */
const LISTED = new RegExp(String.raw`\[\\*(?:${LISTED_BRACKETED})\]|<\\*(?:${LISTED_ANGLED})|\n`, "i");
