/*
 * Finds sections in texts of which anything may be wrong: clients send them back, models repeat them, and whoever is hostile writes half of
 * one ten thousand times. Takes time in proportion to the text.
 */

/** What opens every section. */
export const OPEN = "<memories>\n";
/** What closes it. */
export const CLOSE = "</memories>";

/** What a line of a section is; `close`: it begins with the closing tag. */
export type LineKind = "block" | "continued" | "annotation" | "close" | "none";

const BLOCK = /\[\d+\] /y;
const NO_ANNOTATION = /[[<\s]/y;

/** What the line is that begins at a place in a text. */
export function lineKindAt(text: string, at: number): LineKind {
  if (text.startsWith("  ", at)) return "continued";
  if (text.startsWith(CLOSE, at)) return "close";
  if (isAt(BLOCK, text, at)) return "block";
  return at >= text.length || isAt(NO_ANNOTATION, text, at) ? "none" : "annotation";
}

/** What a section has come to: nothing yet, blocks, or the annotations behind them. */
type SectionPart = "opening" | "blocks" | "annotations";

/** What follows which part; a line that is not named here ends what could have been a section. */
const NEXT: Readonly<Record<SectionPart, Partial<Record<LineKind, SectionPart>>>> = {
  opening: { block: "blocks", annotation: "annotations" },
  blocks: { block: "blocks", continued: "blocks", annotation: "annotations" },
  annotations: { annotation: "annotations" },
};

/** Finds the ends of sections in one text. What it read in vain is not read again. */
export class SectionScan {
  /** Where lines were read that came to no section, by the part that they were read as: from, and up to where. */
  readonly #vain = new Map<SectionPart, { readonly from: number; to: number }>();

  constructor(private readonly text: string) {}

  /** Where the well-formed section ends that begins at a place; -1 where none does. */
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

/** A text less every section that stands in it. */
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
