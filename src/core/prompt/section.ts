import { escapeText, unescapeText } from "../escaping/escaping.js";
import type { Label } from "../text/ids.js";
import type { ChatMessage, ContentPart } from "../text/message.js";

/** A block as one turn put it into the prompt. */
export interface InjectedBlock {
  readonly label: Label;
  /** Labels in the same prompt that this block supersedes (an updated memory). */
  readonly replaces: readonly Label[];
  /** Written with its label, because annotations refer to it. Of a section all blocks are, or none. */
  readonly isLabelled?: true;
}

/** What most blocks supersede. */
export const NOTHING_REPLACED: readonly Label[] = [];

/** One line after a section's closing tag. */
export type Annotation =
  /** ContextPilot's ranking, best first, because blocks were reordered (docs/internals/algorithms.md, "Annotations"). */
  | { readonly kind: "order"; readonly labels: readonly Label[] }
  /** The most relevant block again, because blocks without labels were reordered; one label. */
  | { readonly kind: "best"; readonly labels: readonly Label[] }
  /** ContextPilot's reference to a retrieved block that is earlier in this prompt (Alg. 3); one label. */
  | { readonly kind: "location"; readonly labels: readonly Label[] }
  /** A memory's current text became, perhaps again, one that this prompt already contains. Quoted: names it by its text. */
  | {
      readonly kind: "restored";
      readonly label: Label;
      readonly replaces: readonly Label[];
      readonly isQuoted?: true;
    }
  /** Blocks of this prompt whose memories no longer hold, and which no other text replaces. */
  | { readonly kind: "withdrawn"; readonly labels: readonly Label[] }
  /** The text of a block that no longer holds, whether a block without a label replaces it or none does; one label. */
  | { readonly kind: "outdated"; readonly labels: readonly Label[] };

/**
 * What one turn put into the prompt, as labels: texts are stored once, in the blocks. Rendering is a pure function, so replay is
 * byte-exact, and forgetting a block removes its text everywhere.
 */
export interface Injection {
  readonly blocks: readonly InjectedBlock[];
  readonly annotations: readonly Annotation[];
}

export const NOTHING_INJECTED: Injection = { blocks: [], annotations: [] };

export function isEmptyInjection(injection: Injection): boolean {
  return injection.blocks.length === 0 && injection.annotations.length === 0;
}

/** Whether its blocks are written with their labels; false without blocks. */
export function hasLabels({ blocks }: Pick<Injection, "blocks">): boolean {
  return blocks[0]?.isLabelled === true;
}

/** Every label that occurs in the injection, in any role. */
export function labelsIn(injection: Injection): ReadonlySet<Label> {
  const labels = new Set<Label>();
  for (const block of injection.blocks) {
    labels.add(block.label);
    for (const label of block.replaces) labels.add(label);
  }
  for (const annotation of injection.annotations) {
    if (annotation.kind === "restored") labels.add(annotation.label);
    for (const label of annotation.kind === "restored" ? annotation.replaces : annotation.labels) labels.add(label);
  }
  return labels;
}

/**
 * Where a turn's section goes: before its question's text; after its tool result, in a user message of its own whose content is a text, or
 * a list of parts if the client's is; or inside the tool result's message, after its text, for engines and chat templates that accept no
 * user message there (Mistral's).
 */
export const SECTION_PLACEMENTS = [
  "in-question",
  "after-tool-result",
  "in-tool-result",
  "after-tool-result-as-parts",
] as const;
export type SectionPlacement = (typeof SECTION_PLACEMENTS)[number];

export function isOwnMessage(placement: SectionPlacement): boolean {
  return placement === "after-tool-result" || placement === "after-tool-result-as-parts";
}

/**
 * The placement of a section in a message of its own after the first `count` of a client's plain messages. Its content has the form of the
 * last user message before it, so that it fits the client's message type.
 */
export function ownMessageBehind(messages: readonly ChatMessage[], count = messages.length): SectionPlacement {
  for (let at = count - 1; at >= 0; at--) {
    const message = messages[at];
    if (message?.role === "user")
      return Array.isArray(message.content) ? "after-tool-result-as-parts" : "after-tool-result";
  }
  return "after-tool-result";
}

/*
 * A section is what memprefix injects into a message:
 *
 *   section      = "<memories>" LF *block "</memories>" *( LF annotation )
 *   block        = ( 1*DIGIT SP [ "(replaces " labels ") " ] / "- " ) text LF *( SP SP text LF )
 *   labels       = 1*( "[" 1*DIGIT "]" )
 *   annotation   = a line that names a label or begins with one of three fixed words, but with neither digits and a space, "- ", "[", "<"
 *                  nor white space *( LF SP SP text )
 *
 * Blocks are items of a list, which small models read better than numbered lines, and annotations quote them after the closing tag, next to
 * the question, where both models that were asked make more of them (docs/quality.md). With ContextPilot's annotations, which name labels, a block begins
 * with its label as a bare number, which takes two tokens less than one in brackets. Memory text is untrusted. Every line except the first is
 * indented, and anything that looks like structure is escaped with a backslash (see escaping.ts), so no memory can forge structure: no empty
 * line either, which ends a section's annotations.
 */

/** Separates a section from the message's own text. */
const GLUE = "\n\n";

/** Opens every section; before the first block, so it is cached with it. */
export const SECTION_OPENING = "<memories>\n";
/** Closes the blocks of a section that is a message of its own. */
export const LONE_SECTION_CLOSING = "</memories>";
/** Closes a section without annotations that is followed by the message's own text. */
export const SECTION_CLOSING = LONE_SECTION_CLOSING + GLUE;

/** The text of a block; throws for an unknown label, which is a defect of memprefix, not of the input. */
export type TextOf = (label: Label) => string;

/** Labels as annotations refer to them, without separators: `][` is one token in most tokenizers, a comma and a space need three. */
function renderLabels(labels: readonly Label[]): string {
  return labels.map((label) => `[${label}]`).join("");
}

/** One block's line or lines, line break included. */
export function renderBlock(block: InjectedBlock, text: string): string {
  if (!block.isLabelled) return `- ${escapeText(text)}\n`;
  const mark = block.replaces.length === 0 ? "" : `(replaces ${renderLabels(block.replaces)}) `;
  return `${block.label} ${mark}${escapeText(text)}\n`;
}

/** Characters of a text that is given again; its start is enough to find it in the list. */
const LONGEST_AGAIN = 400;

const BEST = "Most relevant: ";
const OUTDATED = "No longer true: ";
const RESTORED = "Current again: ";
/** One annotation's line, without the line break; of several lines where it gives a text of several again. */
export function renderAnnotation(annotation: Annotation, textOf: TextOf): string {
  const quoted = (labels: readonly Label[]) => labels.map(textOf).map(givenAgain).join(" ");
  if (annotation.kind === "best") return `${BEST}${quoted(annotation.labels)}`;
  if (annotation.kind === "outdated") return `${OUTDATED}${quoted(annotation.labels)}`;
  if (annotation.kind === "restored") {
    if (annotation.isQuoted) return `${RESTORED}${quoted([annotation.label])}`;
    const mark = annotation.replaces.length === 0 ? "" : ` (replaces ${renderLabels(annotation.replaces)})`;
    return `${RESTORED}${renderLabels([annotation.label])}${mark}.`;
  }
  if (annotation.kind === "withdrawn") return `${OUTDATED}${renderLabels(annotation.labels)}.`;
  const labels = annotation.labels.map((label) => `[${label}]`).join(" > ");
  return annotation.kind === "order"
    ? `Please read the context in the following priority order: ${labels} and answer the question.`
    : `Please refer to ${labels} in the previous conversation.`;
}

const NAMED_LABEL = /\[(\d+)\]/g;

/** What the line of an annotation refers to: labels, or a text as {@link givenAgain} has it. A label in a quoted text is escaped, so none. */
export function referencesIn(line: string): { readonly labels: readonly number[]; readonly quoted: string | null } {
  const labels = [...line.matchAll(NAMED_LABEL)].map(([, digits]) => Number(digits));
  const words = labels.length > 0 ? undefined : [BEST, OUTDATED, RESTORED].find((start) => line.startsWith(start));
  return { labels, quoted: words === undefined ? null : line.slice(words.length) };
}

/** A memory's text as annotations quote it. */
export function givenAgain(text: string): string {
  if (text.length <= LONGEST_AGAIN) return escapeText(text);
  // No half of a character that is two UTF-16 units.
  const start = text.slice(0, LONGEST_AGAIN).replace(/[\uD800-\uDBFF]$/, "");
  return escapeText(`${start.trimEnd()}…`);
}

/** The whole section, byte-stable: the same injection and texts give the same bytes. Empty for an empty injection. */
export function renderSection(injection: Injection, textOf: TextOf): string {
  if (isEmptyInjection(injection)) return "";
  // Joined, as V8 keeps a sum of strings in its parts, and sections are kept.
  const parts = [SECTION_OPENING];
  for (const block of injection.blocks) parts.push(renderBlock(block, textOf(block.label)));
  parts.push(LONE_SECTION_CLOSING);
  for (const annotation of injection.annotations) parts.push("\n", renderAnnotation(annotation, textOf));
  return parts.join("");
}

/** The message with the section before its own content. */
export function injectInto(message: ChatMessage, section: string): ChatMessage {
  if (section === "") return message;
  const { content } = message;
  if (!Array.isArray(content)) return { ...message, content: `${section}${GLUE}${content ?? ""}` };
  // Engines and chat templates write parts without anything between them: a line would go on in the question.
  const isLine = !section.endsWith(LONE_SECTION_CLOSING) && content.length > 0;
  return { ...message, content: [{ type: "text", text: isLine ? section + GLUE : section }, ...content] };
}

/** The message with the section after its own content: a tool's result, which programs parse from its start. */
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
 * Removes a section from the front of a message, if there is one and `isOurs` recognises it as sent by memprefix (clients do send composed
 * messages back). `null`: the message was nothing but a section. The same object: there was none.
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
  if (!Array.isArray(content)) return message;
  for (const count of SECTION_PARTS) {
    const text = joinedText(content.slice(0, count), count);
    const rest = text === null ? null : afterSection(text, isOurs);
    if (rest === null) continue;
    const others = content.slice(count);
    // Before parts, a section is a part of its own. So this was a plain text that a client or a cache mark turned into parts.
    if (others.length === 0) return rest === "" ? null : { ...message, content: withoutGlue(rest) };
    const left = withoutGlue(rest);
    const last: ContentPart = { ...content[count - 1], type: "text", text: left };
    return { ...message, content: left === "" ? others : [last, ...others] };
  }
  return message;
}

/** How many parts a section may have become: cache marks split it after its blocks. */
const SECTION_PARTS = [1, 2];

/** The text of so many parts; null where they are not as many text parts. */
function joinedText(parts: readonly ContentPart[], count: number): string | null {
  const texts = parts.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : null));
  return texts.length < count || texts.includes(null) ? null : texts.join("");
}

/** A tool's result without the section at its end, which a client or a cache mark may have split into one or two parts. */
function withoutSectionAtEnd(message: ChatMessage, isOurs: (section: string) => boolean): ChatMessage {
  const { content } = message;
  if (typeof content === "string") {
    const rest = beforeSection(content, isOurs);
    return rest === null ? message : { ...message, content: rest };
  }
  if (!Array.isArray(content)) return message;
  for (const count of SECTION_PARTS) {
    const others = content.slice(0, -count);
    const text = joinedText(content.slice(-count), count);
    const rest = text === null ? null : beforeSection(text, isOurs);
    if (rest === null) continue;
    // There is no other part, so the text before the section was the whole content, which a client turned into one part.
    if (others.length === 0) return { ...message, content: rest };
    return { ...message, content: rest === "" ? others : [...others, { type: "text", text: rest }] };
  }
  return message;
}

/** The text before a section of memprefix's at the end of a text; null if there is none. */
function beforeSection(text: string, isOurs: (section: string) => boolean): string | null {
  // A section never contains another section's opening.
  const at = text.lastIndexOf(SECTION_OPENING);
  if (at < 0) return null;
  const section = text.slice(at);
  if (sectionAtStart(section) !== section || !isOurs(section)) return null;
  return at === 0 ? "" : text.startsWith(GLUE, at - GLUE.length) ? text.slice(0, at - GLUE.length) : null;
}

/** The text after a section of memprefix's at the front of a text; null if there is none. */
function afterSection(text: string, isOurs: (section: string) => boolean): string | null {
  const section = sectionAtStart(text);
  return section !== null && isOurs(section) ? text.slice(section.length) : null;
}

function withoutGlue(text: string): string {
  return text.startsWith(GLUE) ? text.slice(GLUE.length) : text;
}

/** The end of the annotations that follow a closing tag, which ends at an offset; that offset without any. */
function annotationsEnd(text: string, from: number): number {
  let end = from;
  while (text.startsWith("\n", end)) {
    const next = text.indexOf("\n", end + 1);
    const line = text.slice(end + 1, next < 0 ? text.length : next);
    if (!isAnnotation(line) && (end === from || lineKindAt(line, 0) !== "continued")) break;
    end += 1 + line.length;
  }
  return end;
}

/** Whether a line after a closing tag is memprefix's, not the text that follows the section. */
function isAnnotation(line: string): boolean {
  if (lineKindAt(line, 0) !== "annotation") return false;
  const { labels, quoted } = referencesIn(line);
  return labels.length > 0 || quoted !== null;
}

/** The kind of a section's line; `close`: starts with the closing tag. */
type LineKind = "block" | "continued" | "annotation" | "close" | "none";

const BLOCK = /(?:\d+|-) /y;
const NO_ANNOTATION = /[[<\s]/y;

function lineKindAt(text: string, at: number): LineKind {
  if (text.startsWith("  ", at)) return "continued";
  if (text.startsWith(LONE_SECTION_CLOSING, at)) return "close";
  if (isAt(BLOCK, text, at)) return "block";
  return at >= text.length || isAt(NO_ANNOTATION, text, at) ? "none" : "annotation";
}

/**
 * Finds the ends of sections in one untrusted text: clients send them back, models repeat them, and attackers write half a section ten thousand
 * times. Linear time: lines that were scanned without success are not scanned again.
 */
class SectionScan {
  /** Lines of blocks that led to no section. */
  #vain: { readonly from: number; readonly to: number } | null = null;

  constructor(private readonly text: string) {}

  /** The end of the well-formed section that starts at an offset; -1 for none. */
  endFrom(start: number): number {
    const { text } = this;
    if (!text.startsWith(SECTION_OPENING, start)) return -1;
    let read: { readonly from: number; to: number } | null = null;
    for (let at = start + SECTION_OPENING.length; ; at = text.indexOf("\n", at) + 1) {
      const kind = lineKindAt(text, at);
      if (kind === "close") return annotationsEnd(text, at + LONE_SECTION_CLOSING.length);
      const isOfBlock = kind === "block" || (kind === "continued" && read !== null);
      const isKnown = this.#vain !== null && at >= this.#vain.from && at <= this.#vain.to;
      if (!isOfBlock || isKnown || text.indexOf("\n", at) < 0) break;
      if (read === null) read = { from: at, to: at };
      else read.to = at;
    }
    if (read !== null) this.#vain = read;
    return -1;
  }
}

export function withoutSections(text: string): string {
  const scan = new SectionScan(text);
  let kept = "";
  let from = 0;
  for (let at = text.indexOf(SECTION_OPENING); at >= 0; at = text.indexOf(SECTION_OPENING, at)) {
    const end = scan.endFrom(at);
    if (end < 0) at += SECTION_OPENING.length;
    else {
      kept += text.slice(from, at);
      from = end;
      at = end;
    }
  }
  return kept + text.slice(from);
}

function isAt(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

/** The well-formed section at the start of a text; null if there is none. */
export function sectionAtStart(text: string): string | null {
  const end = new SectionScan(text).endFrom(0);
  return end < 0 ? null : text.slice(0, end);
}

/**
 * The bounds of the blocks in the section at the start of a text: the offset, in characters, where each block starts and, last, where the
 * last one ends. The rest of the section differs from turn to turn. Empty without a section or blocks.
 */
export function blockBounds(text: string): readonly number[] {
  const section = sectionAtStart(text);
  if (section === null) return [];
  const bounds: number[] = [];
  let at = SECTION_OPENING.length;
  for (const line of section.slice(SECTION_OPENING.length).split("\n")) {
    const kind = lineKindAt(line, 0);
    if (kind === "block") bounds.push(at);
    else if (kind !== "continued") break;
    at += line.length + 1;
  }
  return bounds.length === 0 ? [] : [...bounds, at];
}

/** A strictly parsed section: the blocks with their texts, and the annotation lines. */
export interface ParsedSection {
  /** Without labels: null. */
  readonly blocks: readonly {
    readonly label: number | null;
    readonly replaces: readonly number[];
    readonly text: string;
  }[];
  readonly annotations: readonly string[];
}

const BLOCK_LINE = /^(?:(\d+) (?:\(replaces ((?:\[\d+\])+)\) )?|- )(.*)$/s;

/** Parses a section by its grammar; null for any violation. The inverse of {@link renderSection}. */
export function parseSection(section: string): ParsedSection | null {
  if (!section.startsWith(SECTION_OPENING)) return null;
  const blocks: { label: number | null; replaces: number[]; lines: string[] }[] = [];
  const annotations: string[][] = [];
  /** The lines of what the last line belongs to. */
  let open: string[] | null = null;
  let isClosed = false;
  for (const line of section.slice(SECTION_OPENING.length).split("\n")) {
    const kind = lineKindAt(line, 0);
    const match = kind === "block" ? BLOCK_LINE.exec(line) : null;
    if (kind === "continued" && open !== null) open.push(line);
    else if (match !== null && !isClosed) {
      const [, label, replaced = "", text = ""] = match;
      open = [text];
      blocks.push({
        label: label === undefined ? null : Number(label),
        replaces: [...replaced.matchAll(/\d+/g)].map(([digits]) => Number(digits)),
        lines: open,
      });
    } else if (isClosed && isAnnotation(line)) {
      open = [line];
      annotations.push(open);
    } else if (line === LONE_SECTION_CLOSING && !isClosed) {
      open = null;
      isClosed = true;
    } else return null;
  }
  if (!isClosed) return null;
  return {
    blocks: blocks.map(({ label, replaces, lines: text }) => ({
      label,
      replaces,
      text: unescapeText(text.join("\n")),
    })),
    annotations: annotations.map((lines) => lines.join("\n")),
  };
}
