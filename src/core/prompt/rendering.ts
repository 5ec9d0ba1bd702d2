import { type Escaping, escapeText, unescapeText } from "../escaping/escaping.js";
import type { Label } from "../text/ids.js";
import type { ChatMessage, ContentPart } from "../text/message.js";
import { type Annotation, type InjectedBlock, type Injection, isEmptyInjection } from "./injection.js";
import type { SectionPlacement } from "./section-placement.js";
import { CLOSE, lineKindAt, OPEN, SectionScan } from "./section-scan.js";

/*
 * A section is what memstem puts into a message:
 *
 *   section      = "<memories>" LF *block *annotation "</memories>"
 *   block        = label SP [ "(replaces " labels ") " ] text LF *( SP SP text LF )
 *   label        = "[" 1*DIGIT "]"
 *   labels       = 1*label
 *   annotation   = a line that begins with neither "[", "<" nor white space
 *
 * Memory text is untrusted. Every line of it but the first is indented, and what could be taken for structure gets a backslash inside
 * (see escaping.ts), so no memory can forge any.
 */

/** Stands between a section and the message's own text. */
const GLUE = "\n\n";

/** What opens every section; it stands before the first block, so it is cached with it. */
export const SECTION_OPENING = OPEN;
/** What closes every section before the message's own text goes on. */
export const SECTION_CLOSING = CLOSE + GLUE;
/** What closes a section that is a message of its own. */
export const LONE_SECTION_CLOSING = CLOSE;

/** Gives the text of a block; throws where the label is unknown, which would be a broken promise, not bad input. */
export type TextOf = (label: Label) => string;

/** A label as the reader of the prompt sees it. */
export function renderLabel(label: Label): string {
  return `[${label}]`;
}

/** Labels in a row, with nothing between them: `][` is one token to most tokenizers, a comma and a space make it three. */
export function renderLabels(labels: readonly Label[], between = ""): string {
  return labels.map(renderLabel).join(between);
}

/** One block's line or lines, line break included. */
export function renderBlock(block: InjectedBlock, text: string): string {
  const mark = block.replaces.length === 0 ? "" : `(replaces ${renderLabels(block.replaces, block.between)}) `;
  return `${renderLabel(block.label)} ${mark}${escapeText(text, block.escaping)}\n`;
}

/** One annotation's line, without the line break. */
export function renderAnnotation(annotation: Annotation): string {
  if (annotation.kind === "restored") {
    const mark =
      annotation.replaces.length === 0 ? "" : ` (replaces ${renderLabels(annotation.replaces, annotation.between)})`;
    return `Current again: ${renderLabel(annotation.label)}${mark}.`;
  }
  return annotation.template.replace("{labels}", renderLabels(annotation.labels, annotation.between));
}

/** The whole section, byte-stable: the same injection and texts give the same bytes. Empty where nothing was injected. */
export function renderSection(injection: Injection, textOf: TextOf): string {
  if (isEmptyInjection(injection)) return "";
  let section = OPEN;
  for (const block of injection.blocks) section += renderBlock(block, textOf(block.label));
  for (const annotation of injection.annotations) section += `${renderAnnotation(annotation)}\n`;
  return section + CLOSE;
}

/** The message with the section before its own content. */
export function injectInto(message: ChatMessage, section: string): ChatMessage {
  if (section === "") return message;
  const { content } = message;
  if (Array.isArray(content)) return { ...message, content: [{ type: "text", text: section }, ...content] };
  return { ...message, content: `${section}${GLUE}${content ?? ""}` };
}

/** The message with the section behind its own content: a tool's result, which programs read from its beginning. */
export function appendTo(message: ChatMessage, section: string): ChatMessage {
  if (section === "") return message;
  const { content } = message;
  if (Array.isArray(content)) return { ...message, content: [...content, { type: "text", text: section }] };
  return { ...message, content: content ? `${content}${GLUE}${section}` : section };
}

/** A section as a message of its own, for a prompt that ends with a tool's result. */
export function sectionMessage(section: string, placement: SectionPlacement): ChatMessage {
  const content = placement === "after-tool-result-as-parts" ? [{ type: "text", text: section }] : section;
  return { role: "user", content };
}

/**
 * Takes a section off the front of a message, if one is there and `isOurs` says that memstem sent it (clients do send composed
 * messages back). `null`: the message was nothing but a section. The same object: nothing was taken off.
 */
export function stripSection(message: ChatMessage, isOurs: (section: string) => boolean): ChatMessage | null {
  if (message.role === "tool" || message.role === "function") {
    const bare = withoutSectionAtEnd(message, isOurs);
    if (bare !== message) return bare;
  }
  const { content } = message;
  if (typeof content === "string") {
    const rest = afterSection(content, isOurs);
    if (rest === null) return message;
    return rest === "" ? null : { ...message, content: withoutGlue(rest) };
  }
  if (Array.isArray(content)) {
    const [first, ...others] = content;
    const rest = first?.type === "text" && typeof first.text === "string" ? afterSection(first.text, isOurs) : null;
    if (rest === null) return stripSplitSection(message, content, isOurs);
    // Sections go before parts as a part of their own. So this was a plain text, of which a client or a cache mark made one part.
    if (rest !== "" && others.length === 0) return { ...message, content: withoutGlue(rest) };
    const parts = rest === "" ? others : [{ ...first, text: withoutGlue(rest) }, ...others];
    return parts.length === 0 ? null : { ...message, content: parts };
  }
  return message;
}

/** A tool's result without the section behind it, of which a client or a cache mark may have made a part, or two. */
function withoutSectionAtEnd(message: ChatMessage, isOurs: (section: string) => boolean): ChatMessage {
  const { content } = message;
  if (typeof content === "string") {
    const rest = beforeSection(content, isOurs);
    return rest === null ? message : { ...message, content: rest };
  }
  if (!Array.isArray(content)) return message;
  for (const count of [1, 2]) {
    const others = content.slice(0, -count);
    const texts = content.slice(-count).map((part) => (part.type === "text" ? part["text"] : undefined));
    const rest = texts.every((text) => typeof text === "string") ? beforeSection(texts.join(""), isOurs) : null;
    if (rest === null) continue;
    // What stood before the section in the same text was all there was: a client made one part of it.
    if (others.length === 0) return { ...message, content: rest };
    return { ...message, content: rest === "" ? others : [...others, { type: "text", text: rest }] };
  }
  return message;
}

/** What stands before the section that memstem sent at the end of a text; null where there is none. */
function beforeSection(text: string, isOurs: (section: string) => boolean): string | null {
  // No section has another's opening inside.
  const at = text.lastIndexOf(OPEN);
  if (at < 0) return null;
  const section = text.slice(at);
  if (sectionAtStart(section) !== section || !isOurs(section)) return null;
  return at === 0 ? "" : text.startsWith(GLUE, at - GLUE.length) ? text.slice(0, at - GLUE.length) : null;
}

/** A section that was split behind its blocks, as it goes to engines whose cache marks stand at the ends of parts. */
function stripSplitSection(
  message: ChatMessage,
  [first, second, ...others]: readonly ContentPart[],
  isOurs: (section: string) => boolean,
): ChatMessage | null {
  const start = first?.type === "text" ? first["text"] : undefined;
  const end = second?.type === "text" ? second["text"] : undefined;
  const rest = typeof start === "string" && typeof end === "string" ? afterSection(start + end, isOurs) : null;
  if (rest === null) return message;
  // What follows the section in the same text was one text with it.
  if (others.length === 0) return rest === "" ? null : { ...message, content: withoutGlue(rest) };
  return {
    ...message,
    content: rest === "" ? others : [{ ...second, type: "text", text: withoutGlue(rest) }, ...others],
  };
}

/** What follows the section that memstem sent at the front of a text; null where there is none. */
function afterSection(text: string, isOurs: (section: string) => boolean): string | null {
  const section = sectionAtStart(text);
  return section !== null && isOurs(section) ? text.slice(section.length) : null;
}

function withoutGlue(text: string): string {
  return text.startsWith(GLUE) ? text.slice(GLUE.length) : text;
}

/** The well-formed section that a text begins with, or null. */
export function sectionAtStart(text: string): string | null {
  const end = new SectionScan(text).endFrom(0);
  return end < 0 ? null : text.slice(0, end);
}

/**
 * Where the blocks of the section that a text begins with stand: the offsets, in characters, at which each starts, and, last, where they
 * end. What follows there is another text every turn. Empty where there is no section or no block in it.
 */
export function blockBounds(text: string): readonly number[] {
  const section = sectionAtStart(text);
  if (section === null) return [];
  const bounds: number[] = [];
  let at = OPEN.length;
  for (const line of section.slice(OPEN.length, -CLOSE.length).split("\n")) {
    const kind = lineKindAt(line, 0);
    if (kind === "block") bounds.push(at);
    else if (kind !== "continued") break;
    at += line.length + 1;
  }
  return bounds.length === 0 ? [] : [...bounds, at];
}

/** What a strict reader sees in a section: the blocks with their texts, and the annotation lines. */
export interface ParsedSection {
  readonly blocks: readonly { readonly label: number; readonly replaces: readonly number[]; readonly text: string }[];
  readonly annotations: readonly string[];
}

const BLOCK_LINE = /^\[(\d+)\] (?:\(replaces ((?:\[\d+\])+)\) )?(.*)$/s;

/**
 * Reads a section by its grammar; null where it breaks it anywhere. The inverse of {@link renderSection}, where the texts were escaped
 * in this way.
 */
export function parseSection(section: string, escaping?: Escaping): ParsedSection | null {
  if (!section.startsWith(OPEN) || !section.endsWith(`\n${CLOSE}`)) return null;
  const lines = section.slice(OPEN.length, -CLOSE.length).split("\n");
  lines.pop();
  const blocks: { label: number; replaces: number[]; lines: string[] }[] = [];
  const annotations: string[] = [];
  for (const line of lines) {
    const last = blocks.at(-1);
    const match = BLOCK_LINE.exec(line);
    if (match) {
      if (annotations.length > 0) return null;
      const replaces = [...(match[2] ?? "").matchAll(/\d+/g)].map(([digits]) => Number(digits));
      blocks.push({ label: Number(match[1]), replaces, lines: [match[3] ?? ""] });
    } else if (lineKindAt(line, 0) === "continued") {
      if (last === undefined || annotations.length > 0) return null;
      last.lines.push(line);
    } else if (lineKindAt(line, 0) === "annotation") {
      annotations.push(line);
    } else {
      return null;
    }
  }
  return {
    blocks: blocks.map(({ label, replaces, lines: text }) => ({
      label,
      replaces,
      text: unescapeText(text.join("\n"), escaping),
    })),
    annotations,
  };
}
