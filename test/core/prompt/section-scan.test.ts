import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseSection, sectionAtStart } from "../../../src/core/prompt/rendering.js";
import { CLOSE, OPEN, withoutSections } from "../../../src/core/prompt/section-scan.js";
import { hostileText } from "../escaping/hostile-text.js";

const LINES = [
  "1 tea",
  "- tea",
  "2 (replaces [1]) tea",
  "[3] tea",
  "4th tea",
  "  more",
  "Most relevant first: [1].",
  "",
  " x",
  "[x]",
  "<b>",
  "tea <memories>",
];
const pieces = [
  ...LINES.map((line) => `${line}\n`),
  OPEN,
  OPEN,
  CLOSE,
  `${CLOSE}\n`,
  "\n",
  "<memories>",
  "tea",
  `1 ${OPEN}`,
  `tea ${OPEN}`,
];
const lined = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join("")),
  hostileText,
);

/** What the grammar says of every place, without any thrift. */
function withoutThrift(text: string): string {
  let rest = text;
  for (let at = rest.indexOf(OPEN); at >= 0; at = rest.indexOf(OPEN, at)) {
    const section = byGrammar(rest.slice(at));
    if (section === null) at++;
    else rest = rest.slice(0, at) + rest.slice(at + section.length);
  }
  return rest;
}

function byGrammar(text: string): string | null {
  const end = text.indexOf(`\n${CLOSE}`, OPEN.length - 1);
  if (!text.startsWith(OPEN) || end < 0) return null;
  const section = text.slice(0, end + 1 + CLOSE.length);
  return parseSection(section) === null ? null : section;
}

describe("sections in any text", () => {
  it("are found where the grammar has them, and nowhere else", () => {
    const found = fc.property(lined, (text) => {
      expect(sectionAtStart(text)).toBe(byGrammar(text));
      expect(sectionAtStart(`${OPEN}${text}`)).toBe(byGrammar(`${OPEN}${text}`));
      expect(withoutSections(text)).toBe(withoutThrift(text));
    });
    fc.assert(found, { numRuns: 5_000 });
  });

  it.each([
    ["openings", OPEN],
    ["openings at the ends of blocks", `1 ${OPEN}`],
    ["openings at the ends of annotations", `tea ${OPEN}`],
    ["openings at the ends of further lines", `1 a\n  b ${OPEN}`],
    ["openings that change what they stand in", `1 a ${OPEN}tea ${OPEN}`],
    ["blocks that begin none", "1 a\n"],
    ["tags", "<memories>"],
    ["sections", `${OPEN}[1] a\n${CLOSE}`],
  ])("cost in proportion to the text: %s", (_what, piece) => {
    const linesRead = (characters: number) => {
      const text = new CountedText(`${OPEN}${piece.repeat(characters / piece.length)}`);
      withoutSections(text as unknown as string);
      return text.reads;
    };
    expect(linesRead(60_000) / linesRead(20_000)).toBeLessThan(3.5);
  });
});

/** A text that counts how often it is looked at, which no clock disturbs. */
class CountedText {
  reads = 0;
  readonly length: number;

  constructor(private readonly text: string) {
    this.length = text.length;
  }

  startsWith(part: string, at?: number) {
    this.reads++;
    return this.text.startsWith(part, at);
  }

  indexOf(part: string, from?: number) {
    const found = this.text.indexOf(part, from);
    this.reads += 1 + (found < 0 ? this.text.length : found) - (from ?? 0);
    return found;
  }

  slice(from?: number, to?: number) {
    return this.text.slice(from, to);
  }

  toString() {
    return this.text;
  }
}
