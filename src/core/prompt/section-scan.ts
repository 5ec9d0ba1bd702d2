/*
 * Finds sections in untrusted texts: clients send them back, models repeat them, and attackers write half a section ten thousand times.
 * Linear time.
 */

/** Opens every section. */
export const OPEN = "<memories>\n";
/** Closes every section. */
export const CLOSE = "</memories>";

/** The kind of a section's line; `close`: starts with the closing tag. */
export type LineKind = "block" | "continued" | "annotation" | "close" | "none";

const BLOCK = /(?:\d+|-) /y;
const NO_ANNOTATION = /[[<\s]/y;

/** The kind of the line at an offset of a text. */
export function lineKindAt(text: string, at: number): LineKind {
  if (text.startsWith("  ", at)) return "continued";
  if (text.startsWith(CLOSE, at)) return "close";
  if (isAt(BLOCK, text, at)) return "block";
  return at >= text.length || isAt(NO_ANNOTATION, text, at) ? "none" : "annotation";
}

/** The part of a section that the scan is in: before the blocks, in them, or in the annotations after them. */
type SectionPart = "opening" | "blocks" | "annotations";

/** Transitions; a line kind that is missing here means that this is not a section. */
const NEXT: Readonly<Record<SectionPart, Partial<Record<LineKind, SectionPart>>>> = {
  opening: { block: "blocks", annotation: "annotations" },
  blocks: { block: "blocks", continued: "blocks", annotation: "annotations" },
  annotations: { annotation: "annotations", continued: "annotations" },
};

/** Finds the ends of sections in one text. Lines that were scanned without success are not scanned again. */
export class SectionScan {
  /** Ranges of lines that led to no section, by the part in which they were scanned. */
  readonly #vain = new Map<SectionPart, { readonly from: number; to: number }>();

  constructor(private readonly text: string) {}

  /** The end of the well-formed section that starts at an offset; -1 for none. */
  endFrom(start: number): number {
    const { text } = this;
    if (!text.startsWith(OPEN, start)) return -1;
    let part: SectionPart = "opening";
    const read = new Map<SectionPart, { readonly from: number; to: number }>();
    for (let at = start + OPEN.length; ; at = text.indexOf("\n", at) + 1) {
      const kind = lineKindAt(text, at);
      if (kind === "close") return at + CLOSE.length;
      const next: SectionPart | undefined = NEXT[part][kind];
      const vain = next === undefined ? undefined : this.#vain.get(next);
      const isKnown = vain !== undefined && at >= vain.from && at <= vain.to;
      if (next === undefined || isKnown || text.indexOf("\n", at) < 0) break;
      part = next;
      const lines = read.get(part);
      if (lines === undefined) read.set(part, { from: at, to: at });
      else lines.to = at;
    }
    for (const [one, lines] of read) this.#vain.set(one, lines);
    return -1;
  }
}

/** A text without its sections. */
export function withoutSections(text: string): string {
  const scan = new SectionScan(text);
  let kept = "";
  let from = 0;
  for (let at = text.indexOf(OPEN); at >= 0; at = text.indexOf(OPEN, at)) {
    const end = scan.endFrom(at);
    if (end < 0) at += OPEN.length;
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
