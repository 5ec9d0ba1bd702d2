import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  LONE_SECTION_CLOSING,
  parseSection,
  SECTION_OPENING,
  sectionAtStart,
  withoutSections,
} from "../../../src/core/prompt/section.js";
import { hostileText } from "../escaping/hostile-text.js";

const LINES = [
  ...["[Doc_1] tea", "1 tea", "Please refer to [Doc_1] in the previous conversation.", "- tea", "[3] tea", "4th tea"],
  ...["  more", "Most relevant first: [Doc_1].", "", " x", "[x]", "<b>", "tea <memories>", "Most relevant: tea"],
];
const pieces = [
  ...LINES.map((line) => `${line}\n`),
  SECTION_OPENING,
  SECTION_OPENING,
  LONE_SECTION_CLOSING,
  `${LONE_SECTION_CLOSING}\n`,
  "\n",
  "<memories>",
  "tea",
  `[Doc_1] ${SECTION_OPENING}`,
  `tea ${SECTION_OPENING}`,
];
const lined = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join("")),
  hostileText,
);

/** What the grammar says of every place, without any thrift. */
function withoutThrift(text: string): string {
  let rest = text;
  for (let at = rest.indexOf(SECTION_OPENING); at >= 0; at = rest.indexOf(SECTION_OPENING, at)) {
    const section = byGrammar(rest.slice(at));
    if (section === null) at++;
    else rest = rest.slice(0, at) + rest.slice(at + section.length);
  }
  return rest;
}

function byGrammar(text: string): string | null {
  const end = text.indexOf(`\n${LONE_SECTION_CLOSING}`, SECTION_OPENING.length - 1);
  if (!text.startsWith(SECTION_OPENING) || end < 0) return null;
  let section = text.slice(0, end + 1 + LONE_SECTION_CLOSING.length);
  if (parseSection(section) === null) return null;
  for (const line of text
    .slice(section.length)
    .split("\n")
    .slice(text.startsWith("\n", section.length) ? 1 : 0)) {
    const longer = `${section}\n${line}`;
    if (!text.startsWith(longer) || parseSection(longer) === null) break;
    section = longer;
  }
  return section;
}

describe("sections in any text", () => {
  it("are found where the grammar has them, and nowhere else", () => {
    const found = fc.property(lined, (text) => {
      expect(sectionAtStart(text)).toBe(byGrammar(text));
      expect(sectionAtStart(`${SECTION_OPENING}${text}`)).toBe(byGrammar(`${SECTION_OPENING}${text}`));
      expect(withoutSections(text)).toBe(withoutThrift(text));
    });
    fc.assert(found, { numRuns: 5_000 });
  });

  it.each([
    ["openings", SECTION_OPENING],
    ["openings at the ends of blocks", `[Doc_1] ${SECTION_OPENING}`],
    ["openings at the ends of annotations", `tea ${SECTION_OPENING}`],
    ["openings at the ends of further lines", `[Doc_1] a\n  b ${SECTION_OPENING}`],
    ["openings that change what they stand in", `[Doc_1] a ${SECTION_OPENING}tea ${SECTION_OPENING}`],
    ["blocks that begin none", "[Doc_1] a\n"],
    ["tags", "<memories>"],
    ["sections", `${SECTION_OPENING}[Doc_1] a\n${LONE_SECTION_CLOSING}`],
    ["sections with lines behind them", `${SECTION_OPENING}${LONE_SECTION_CLOSING}\nMost relevant: a\n  b\n`],
    ["lines behind a section", "</memories>\nMost relevant: a\n"],
  ])("cost in proportion to the text: %s", (_what, piece) => {
    const linesRead = (characters: number) => {
      const text = new CountedText(`${SECTION_OPENING}${piece.repeat(characters / piece.length)}`);
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
