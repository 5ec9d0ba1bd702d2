/*
 * escaping: memory text is untrusted. What has the shape of a label, a section's boundary, an annotation or a template's token is written
 * so that it cannot be taken for one, and only that is altered.
 * Enters: a memory's text. Leaves: the text as it may stand in a prompt, and the way back; also quotes found in any encoding, for forgetting.
 */

import { ConfiguredMarker } from "./configured-marker.js";
import { CANDIDATES, isMarkerAt, OPENER_CLASS } from "./marker-shapes.js";

/**
 * How the text of a block is written, so that nothing in it can be taken for structure. It is kept with every block that a turn
 * injected: what was sent stays as it was sent.
 */
export interface Escaping {
  /** `shapes`: what has the shape of a marker. `list`: the tokens that were known before there were shapes. */
  readonly by: "shapes" | "list";
  /** Texts that are markers besides, by configuration: those of them that stand in this one. */
  readonly markers: readonly string[];
}

/** How texts are written today, as far as no configured marker stands in them. */
export const BY_SHAPES: Escaping = { by: "shapes", markers: [] };
/** How all texts were written by versions that knew a list of tokens. */
export const BY_LIST: Escaping = { by: "list", markers: [] };

/*
 * What is to be escaped gets a backslash behind its first character: `[7]` is written `[\7]`, `[\7]` is written `[\\7]`. Whether it is
 * escaped does not depend on backslashes that stand there, so that the inverse takes one from each place that has one too many.
 */

/** A canonical text as it stands in a section. Takes time in proportion to the text. */
export function escapeText(text: string, { by, markers }: Escaping = BY_SHAPES): string {
  if (by === "list") return escapeListed(text);
  let escaped = text.replace(CANDIDATES, (opener, at: number) => (isMarkerAt(text, at) ? `${opener}\\` : opener));
  for (const marker of markers) escaped = new ConfiguredMarker(marker).escape(escaped);
  return escaped.replace(LINE_BREAKS, "$&  ");
}

/** The inverse of {@link escapeText}. */
export function unescapeText(written: string, { by, markers }: Escaping = BY_SHAPES): string {
  if (by === "list") return unescapeListed(written);
  let text = written.replace(INDENTED, "$1");
  for (const marker of [...markers].reverse()) text = new ConfiguredMarker(marker).unescape(text);
  const escaped = text;
  return escaped.replace(ESCAPED_OPENERS, (both, opener: string, at: number) =>
    isMarkerAt(escaped, at) ? opener : both,
  );
}

/** How a text is written by which some of the configured markers may stand. */
export function escapingOf(text: string, configured: readonly string[]): Escaping {
  const markers = configured.filter((marker) => new ConfiguredMarker(marker).isIn(text));
  return markers.length === 0 ? BY_SHAPES : { by: "shapes", markers };
}

/** Whether a text is written alike both ways; most texts hold nothing that is to be escaped. */
export function isWrittenAlike(text: string, a: Escaping, b: Escaping): boolean {
  if (a === b) return true;
  const isPlain = a.markers.length === 0 && b.markers.length === 0 && !ESCAPABLE.test(text);
  return isPlain || escapeText(text, a) === escapeText(text, b);
}

/**
 * Whether a line of memstem's own, as a caller words it, would hold a label, a section's tag or one of the tokens of the list. Other
 * markers are the caller's to write, as in a system prompt.
 */
export function forgesStructure(line: string): boolean {
  return escapeListed(line) !== line || OWN_STRUCTURE.test(escapeText(line));
}

/** A label or a section's tag that was escaped. */
const OWN_STRUCTURE = /[[［﹇]\\\s*\p{N}+\s*[\]］﹈]|[<＜﹤]\\\s*[/／]?\s*memories/iu;
const ESCAPED_OPENERS = new RegExp(String.raw`(${OPENER_CLASS})\\`, "g");

/** What begins a new line to anybody: Python's `str.splitlines` knows more of them than JavaScript. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: separators of files, groups and records are line breaks to Python
const BREAK = /[\n\r\u000b\u000c\u001c-\u001e\u0085\u2028\u2029]/;
const LINE_BREAKS = new RegExp(BREAK, "g");
/** What one form may write otherwise than another: all of them indent behind a line feed. */
const ESCAPABLE = new RegExp(`${CANDIDATES.source}|(?!\\n)${BREAK.source}`);
const INDENTED = new RegExp(`(${BREAK.source})  `, "g");

/** What a square bracket opened in the list: a label; turns and tools of Llama 2, Mistral and GLM. */
const LISTED_BRACKETED = String.raw`\d+|\/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID)|[gs]MASK`;
/**
 * What an angle bracket opened: a section's tags; `<|…|>` of most templates, `<｜…｜>` of DeepSeek's; beginnings and ends as Llama 2, Gemma,
 * Cohere and GLM mark them; thoughts and tools as Qwen's and Hermes' do.
 */
const LISTED_ANGLED = String.raw`\/?memories|[|｜]|<\/?SYS>>|\/?(?:s|bos|eos|sop|eop|think|tool_call|tool_response|tools)>|\w{1,32}_of_\w{1,32}>|\w{1,32}_TOKEN>`;
const LISTED = new RegExp(String.raw`\[(\\*)(${LISTED_BRACKETED})\]|<(\\*)(${LISTED_ANGLED})`, "gi");
const ESCAPED_LISTED = new RegExp(String.raw`\[\\(\\*)(${LISTED_BRACKETED})\]|<\\(\\*)(${LISTED_ANGLED})`, "gi");

/** Never to be changed: prompts that were sent are rendered with it. */
function escapeListed(text: string): string {
  return text
    .replace(LISTED, (_all, a: string | undefined, inside: string, b: string | undefined, mark: string) =>
      a !== undefined ? `[\\${a}${inside}]` : `<\\${b ?? ""}${mark}`,
    )
    .replaceAll("\n", "\n  ");
}

function unescapeListed(written: string): string {
  return written
    .replaceAll("\n  ", "\n")
    .replace(ESCAPED_LISTED, (_all, a: string | undefined, inside: string, b: string | undefined, mark: string) =>
      a !== undefined ? `[${a}${inside}]` : `<${b ?? ""}${mark}`,
    );
}
