import { escapeText, unescapeText } from "../escaping/escaping.js";
import type { Label } from "../text/ids.js";
import type { ChatMessage, ContentPart } from "../text/message.js";

export interface InjectedBlock {
  readonly label: Label;
  /** Written with its label. All blocks of a section are, or none. */
  readonly isLabelled?: true;
}

export type Annotation =
  /** ContextPilot's ranking of reordered blocks, best first (docs/internals/algorithms.md, "Annotations"). */
  | { readonly kind: "order"; readonly labels: readonly Label[] }
  /** Repeats the most relevant of reordered blocks without labels; one label. */
  | { readonly kind: "best"; readonly labels: readonly Label[] }
  /** ContextPilot's reference to a retrieved block earlier in this prompt (Alg. 3), after so many of this section's blocks; one label. */
  | { readonly kind: "location"; readonly labels: readonly Label[]; readonly after: number }
  /** Gives a text that supersedes others of this prompt, in place of a block. */
  | {
      readonly kind: "update";
      readonly label: Label;
      readonly replaces: readonly Label[];
      readonly isLabelled?: true;
      /** The prompt gave it before. */
      readonly isAgain?: true;
    }
  /** What replaces parts of the instructions that the prompt begins with; both empty: they hold again. */
  | { readonly kind: "instructions"; readonly lines: readonly string[]; readonly removed: readonly string[] };

export type Update = Extract<Annotation, { readonly kind: "update" }>;

/** What one turn put into the prompt, as labels, but for instructions. Texts are stored once, so that forgetting a block removes its text everywhere. */
export interface Injection {
  readonly blocks: readonly InjectedBlock[];
  readonly annotations: readonly Annotation[];
}

export const NOTHING_INJECTED: Injection = { blocks: [], annotations: [] };

export function isEmptyInjection(injection: Injection): boolean {
  return injection.blocks.length === 0 && injection.annotations.length === 0;
}

/** Whether it says anything of memories. */
export function isOfMemories({ blocks, annotations }: Injection): boolean {
  return blocks.length > 0 || annotations.some(({ kind }) => kind !== "instructions");
}

export function hasLabels({ blocks }: Pick<Injection, "blocks">): boolean {
  return blocks[0]?.isLabelled === true;
}

export function labelsIn(injection: Injection): ReadonlySet<Label> {
  const labels = new Set<Label>();
  for (const { label } of injection.blocks) labels.add(label);
  for (const annotation of injection.annotations) {
    if (annotation.kind === "instructions") continue;
    for (const label of annotation.kind === "update" ? [annotation.label] : annotation.labels) labels.add(label);
  }
  return labels;
}

export function updatesIn({ annotations }: Pick<Injection, "annotations">): readonly Update[] {
  return annotations.filter((annotation) => annotation.kind === "update");
}

/** Where a section goes: before the question's text; after the tool result, as a user message with a text or parts; or in it (Mistral's). */
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

/** A section's own message after `count` plain messages, in the form of the last user message before it. */
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
 *   section      = "<memories>" LF *( block / reference ) "</memories>" *( LF annotation )
 *                / updated instructions, where there is nothing else to say
 *   block        = ( label / "-" ) SP text LF *( SP SP text LF )
 *   reference    = "Please refer to " label " in the previous conversation." LF
 *   label        = "[Doc_" 1*DIGIT "]"
 *   annotation   = a line that names a label or begins with one of two fixed words, but with neither a label and a space, "- ", "[", "<"
 *                  nor white space *( LF SP SP text )
 *
 * Small models read list items better than numbered lines, and use quotes after the closing tag more (docs/quality.md). Every line of a memory but
 * the first is indented, and structure is escaped (escaping.ts), so no memory can forge it.
 */

const GLUE = "\n\n";

/** Before the first block, so it is cached with it. */
export const SECTION_OPENING = "<memories>\n";
/** Closes the blocks of a section that is a message of its own. */
export const LONE_SECTION_CLOSING = "</memories>";
/** Closes a section without annotations before the message's own text. */
export const SECTION_CLOSING = LONE_SECTION_CLOSING + GLUE;

/** Throws for an unknown label, which is a defect of memprefix, not of the input. */
export type TextOf = (label: Label) => string;

const renderLabel = (label: Label) => `[Doc_${label}]`;

export function renderBlock({ label, isLabelled }: InjectedBlock, text: string): string {
  return `${isLabelled ? renderLabel(label) : "-"} ${escapeText(text)}\n`;
}

/** Maximum characters of a quote, enough to find the text in the list. */
const LONGEST_AGAIN = 400;

const BEST = "Most relevant: ";
const UPDATE = "Update: ";
const INSTRUCTIONS = "Updated instructions:";
/** Without the final line break; a text may have several lines. */
export function renderAnnotation(annotation: Annotation, textOf: TextOf): string {
  if (annotation.kind === "instructions") return renderInstructions(annotation);
  if (annotation.kind === "best") return `${BEST}${annotation.labels.map(textOf).map(givenAgain).join(" ")}`;
  if (annotation.kind === "update") {
    const { label, isLabelled, isAgain } = annotation;
    const text = isAgain ? givenAgain(textOf(label)) : escapeText(textOf(label));
    return `${UPDATE}${isLabelled ? `${renderLabel(label)} ` : ""}${text}`;
  }
  const labels = annotation.labels.map(renderLabel).join(" > ");
  return annotation.kind === "order"
    ? `Please read the context in the following priority order: ${labels} and answer the question.`
    : `Please refer to ${labels} in the previous conversation.`;
}

/** The client's own instructions, so only what could end the section is escaped. */
function renderInstructions({ lines, removed }: Annotation & { kind: "instructions" }): string {
  const written = [...lines, ...removed.map((line) => `No longer: ${line}`)].map((line) =>
    /memories/i.test(line) ? escapeText(line) : line,
  );
  if (written.length === 0) return `${INSTRUCTIONS} as above.`;
  return written.length === 1 ? `${INSTRUCTIONS} ${written[0]}` : [INSTRUCTIONS, ...written].join("\n  ");
}

/** A memory's text as annotations quote it. */
function givenAgain(text: string): string {
  if (text.length <= LONGEST_AGAIN) return escapeText(text);
  // Never half a surrogate pair.
  const start = text.slice(0, LONGEST_AGAIN).replace(/[\uD800-\uDBFF]$/, "");
  return escapeText(`${start.trimEnd()}…`);
}

export function renderSection(injection: Injection, textOf: TextOf): string {
  if (isEmptyInjection(injection)) return "";
  if (!isOfMemories(injection)) return injection.annotations.map((one) => renderAnnotation(one, textOf)).join("\n");
  // Joined, because V8 keeps a sum of strings in parts, and sections are kept.
  const parts = [SECTION_OPENING];
  const references = injection.annotations.filter((annotation) => annotation.kind === "location");
  const refer = (blocks: number) => {
    for (const reference of references)
      if (reference.after === blocks) parts.push(renderAnnotation(reference, textOf), "\n");
  };
  refer(0);
  for (const [at, block] of injection.blocks.entries()) {
    parts.push(renderBlock(block, textOf(block.label)));
    refer(at + 1);
  }
  parts.push(LONE_SECTION_CLOSING);
  for (const annotation of injection.annotations)
    if (annotation.kind !== "location") parts.push("\n", renderAnnotation(annotation, textOf));
  return parts.join("");
}

export function injectInto(message: ChatMessage, section: string): ChatMessage {
  if (section === "") return message;
  const { content } = message;
  if (!Array.isArray(content)) return { ...message, content: `${section}${GLUE}${content ?? ""}` };
  // Templates join parts without a separator: a line would continue in the question.
  const isLine = !section.endsWith(LONE_SECTION_CLOSING) && content.length > 0;
  return { ...message, content: [{ type: "text", text: isLine ? section + GLUE : section }, ...content] };
}

/** After the content: programs parse a tool's result from its start. */
export function appendTo(message: ChatMessage, section: string): ChatMessage {
  if (section === "") return message;
  const { content } = message;
  if (Array.isArray(content)) return { ...message, content: [...content, { type: "text", text: section }] };
  return { ...message, content: content ? `${content}${GLUE}${section}` : section };
}

/** For a prompt that ends with a tool's result. */
export function sectionMessage(section: string, placement: SectionPlacement): ChatMessage {
  const content = placement === "after-tool-result-as-parts" ? [{ type: "text", text: section }] : section;
  return { role: "user", content };
}

/** Removes our section from a message's front, or a tool result's end. Null: nothing else was in it. The same object: there was none. */
export function stripSection(message: ChatMessage, isOurs: (section: string) => boolean): ChatMessage | null {
  const isResult = message.role === "tool" || message.role === "function";
  const atEnd = isResult ? stripped(message, (text) => beforeSection(text, isOurs), true) : message;
  return atEnd !== message ? atEnd : stripped(message, (text) => afterSection(text, isOurs), false);
}

/** Parts that a section may have become: cache marks split it after its blocks. */
const SECTION_PARTS = [1, 2];

/** @param restOf the text without its section, with the glue at its front; null for none */
function stripped(message: ChatMessage, restOf: (text: string) => string | null, isAtEnd: boolean): ChatMessage | null {
  const { content } = message;
  const own = (rest: string) => (!isAtEnd && rest.startsWith(GLUE) ? rest.slice(GLUE.length) : rest);
  const bare = (rest: string) => (rest === "" && !isAtEnd ? null : { ...message, content: own(rest) });
  if (typeof content === "string") {
    const rest = restOf(content);
    return rest === null ? message : bare(rest);
  }
  if (!Array.isArray(content)) return message;
  for (const count of SECTION_PARTS) {
    const parts = isAtEnd ? content.slice(-count) : content.slice(0, count);
    const others = isAtEnd ? content.slice(0, -count) : content.slice(count);
    const texts = parts.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : null));
    const rest = parts.length < count || texts.includes(null) ? null : restOf(texts.join(""));
    if (rest === null) continue;
    // A section beside parts is a part of its own, so a client or a cache mark turned this plain text into parts.
    if (others.length === 0) return bare(rest);
    const left = own(rest);
    const part: ContentPart = { ...(isAtEnd ? {} : parts[count - 1]), type: "text", text: left };
    if (left === "") return { ...message, content: others };
    return { ...message, content: isAtEnd ? [...others, part] : [part, ...others] };
  }
  return message;
}

/** The text before memprefix's section at the end; null for none. */
function beforeSection(text: string, isOurs: (section: string) => boolean): string | null {
  for (const opening of [SECTION_OPENING, INSTRUCTIONS]) {
    // A section never contains another section's opening.
    const at = text.lastIndexOf(opening);
    const section = at < 0 ? null : text.slice(at);
    if (section === null || sectionAtStart(section) !== section || !isOurs(section)) continue;
    if (at === 0) return "";
    if (text.startsWith(GLUE, at - GLUE.length)) return text.slice(0, at - GLUE.length);
  }
  return null;
}

function afterSection(text: string, isOurs: (section: string) => boolean): string | null {
  const section = sectionAtStart(text);
  return section !== null && isOurs(section) ? text.slice(section.length) : null;
}

/** The end of the annotations after a closing tag that ends at `from`. */
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

const NAMED_LABEL = /\[Doc_\d+\]/;

function isAnnotation(line: string): boolean {
  if (lineKindAt(line, 0) !== "annotation") return false;
  return NAMED_LABEL.test(line) || [INSTRUCTIONS, UPDATE, BEST].some((word) => line.startsWith(word));
}

/** `close`: starts with the closing tag. */
type LineKind = "block" | "continued" | "reference" | "annotation" | "close" | "none";

const BLOCK = /(?:\[Doc_\d+\]|-) /y;
const REFERENCE = /Please refer to \[Doc_\d+\] in the previous conversation\.$/my;
const NO_ANNOTATION = /[[<\s]/y;

function lineKindAt(text: string, at: number): LineKind {
  if (text.startsWith("  ", at)) return "continued";
  if (text.startsWith(LONE_SECTION_CLOSING, at)) return "close";
  if (isAt(BLOCK, text, at)) return "block";
  if (isAt(REFERENCE, text, at)) return "reference";
  return at >= text.length || isAt(NO_ANNOTATION, text, at) ? "none" : "annotation";
}

/** Finds the ends of sections in untrusted text, such as ten thousand half sections. Linear time: scans no line again without success. */
class SectionScan {
  #vain: { readonly from: number; readonly to: number } | null = null;

  constructor(private readonly text: string) {}

  /** The end of the well-formed section at an offset; -1 for none. */
  endFrom(start: number): number {
    const { text } = this;
    if (!text.startsWith(SECTION_OPENING, start)) return -1;
    let read: { readonly from: number; to: number } | null = null;
    for (let at = start + SECTION_OPENING.length; ; at = text.indexOf("\n", at) + 1) {
      const kind = lineKindAt(text, at);
      if (kind === "close") return annotationsEnd(text, at + LONE_SECTION_CLOSING.length);
      const isOfBlock = kind === "block" || kind === "reference" || (kind === "continued" && read !== null);
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

export function sectionAtStart(text: string): string | null {
  if (text.startsWith(INSTRUCTIONS)) return text.slice(0, annotationsEnd(`\n${text}`, 0) - 1);
  const end = new SectionScan(text).endFrom(0);
  return end < 0 ? null : text.slice(0, end);
}

/** The offset, in characters, where each block of the section at the start begins, and where the last one ends. May be empty. */
export function blockBounds(text: string): readonly number[] {
  const section = sectionAtStart(text);
  if (section === null || !section.startsWith(SECTION_OPENING)) return [];
  const bounds: number[] = [];
  let at = SECTION_OPENING.length;
  for (const line of section.slice(SECTION_OPENING.length).split("\n")) {
    const kind = lineKindAt(line, 0);
    if (kind === "block") bounds.push(at);
    else if (kind !== "continued" && kind !== "reference") break;
    at += line.length + 1;
  }
  return bounds.length === 0 ? [] : [...bounds, at];
}

/** Label null: written without labels. */
export interface ParsedText {
  readonly label: number | null;
  readonly text: string;
}

export interface ParsedSection {
  readonly blocks: readonly ParsedText[];
  /** The texts of its updates; of long ones that the prompt gave before, the start. */
  readonly updates: readonly ParsedText[];
  /** The references among the blocks, then all lines after them, as written. */
  readonly annotations: readonly string[];
}

const BLOCK_LINE = /^(?:\[Doc_(\d+)\]|-) (.*)$/s;
const UPDATE_LINES = new RegExp(String.raw`^${UPDATE}(?:\[Doc_(\d+)\] )?(.*)$`, "s");

/** The inverse of {@link renderSection}; null for any violation of the grammar. */
export function parseSection(section: string): ParsedSection | null {
  if (!section.startsWith(SECTION_OPENING)) return null;
  const blocks: { label: string | undefined; lines: string[] }[] = [];
  const annotations: string[][] = [];
  let open: string[] | null = null;
  let isClosed = false;
  for (const line of section.slice(SECTION_OPENING.length).split("\n")) {
    const kind = lineKindAt(line, 0);
    const match = kind === "block" ? BLOCK_LINE.exec(line) : null;
    if (kind === "continued" && open !== null) open.push(line);
    else if (match !== null && !isClosed) {
      const [, label, text = ""] = match;
      open = [text];
      blocks.push({ label, lines: open });
    } else if (isClosed ? isAnnotation(line) : kind === "reference") {
      open = [line];
      annotations.push(open);
    } else if (line === LONE_SECTION_CLOSING && !isClosed) {
      open = null;
      isClosed = true;
    } else return null;
  }
  if (!isClosed) return null;
  const written = annotations.map((lines) => lines.join("\n"));
  return {
    blocks: blocks.map(({ label, lines }) => parsedText(label, lines.join("\n"))),
    updates: written.flatMap((line) => {
      const [, label, text] = UPDATE_LINES.exec(line) ?? [];
      return text === undefined ? [] : [parsedText(label, text)];
    }),
    annotations: written,
  };
}

function parsedText(label: string | undefined, text: string): ParsedText {
  return { label: label === undefined ? null : Number(label), text: unescapeText(text) };
}
