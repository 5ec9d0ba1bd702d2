/*
 * escaping: memory text is untrusted. Whatever looks like a label, a section's boundary, an annotation or a template token is escaped so
 * that it cannot be taken for one; nothing else is changed.
 * Enters: a memory's text. Leaves: the text as it may be in a prompt, and the inverse; also quotes found in any encoding, for forgetting.
 */

import { BREAK, escapeNumberedLines, unescapeNumberedLines } from "./line-breaks.js";
import { CANDIDATES, isMarkerAt, OPENER_CLASS } from "./marker-shapes.js";

/*
 * Escaped is everything with the shape of a marker, and the number of a further line that begins as a block's does. A backslash is inserted after a marker's first character: `[7]` becomes `[\7]`, `[\7]` becomes `[\\7]`. Existing backslashes do not
 * affect whether a marker matches, so the inverse removes one from each match.
 */

/** Escapes a canonical text for a section. Linear time. */
export function escapeText(text: string): string {
  if (!MAY_CHANGE.test(text)) return text;
  const escaped = text.replace(CANDIDATES, (opener, at: number) => (isMarkerAt(text, at) ? `${opener}\\` : opener));
  return escapeNumberedLines(escaped).replace(LINE_BREAKS, "$&  ");
}

/** The inverse of {@link escapeText}. */
export function unescapeText(written: string): string {
  const escaped = unescapeNumberedLines(written.replace(INDENTED, "$1"));
  return escaped.replace(ESCAPED_OPENERS, (both, opener: string, at: number) =>
    isMarkerAt(escaped, at) ? opener : both,
  );
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
/** What a text has if anything is escaped in it: one look, where escaping takes three. */
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
