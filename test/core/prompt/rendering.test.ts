import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Annotation,
  type InjectedBlock,
  type Injection,
  parseSection,
  renderAnnotation,
  renderSection,
  type TextOf,
  type Update,
  updatesIn,
} from "../../../src/core/prompt/section.js";
import type { Label } from "../../../src/core/text/ids.js";
import { canonicalText } from "../../../src/core/text/memory-text.js";
import { label, labels } from "../cache/served-sequences.js";
import { hostileText } from "../escaping/hostile-text.js";
import { labelsNamed } from "./prompt-promises.js";

const someLabels = fc.uniqueArray(fc.integer({ min: 1, max: 2_000 }).map(label), { minLength: 1, maxLength: 4 });

const anyAnnotation: fc.Arbitrary<Annotation> = fc.oneof(
  fc.record({ kind: fc.constant("order" as const), labels: someLabels }),
);

const anyUpdate = (among: readonly Label[]): fc.Arbitrary<Update> =>
  fc.record({ kind: fc.constant("update" as const), label: fc.constantFrom(...among), replaces: someLabels });

/** References before, among and after so many blocks, in the order in which they stand there. */
const anyReferences = (blocks: number): fc.Arbitrary<Annotation[]> =>
  fc
    .array(fc.tuple(fc.nat({ max: blocks }), fc.integer({ min: 1, max: 99 }).map(label)), { maxLength: 3 })
    .map((places) =>
      places.sort(([a], [b]) => a - b).map(([after, one]) => ({ kind: "location", labels: [one], after })),
    );

/** Of sections without labels: each quotes one text, which is one of the section's here. */
const anyQuote = (among: readonly Label[]): fc.Arbitrary<Annotation> =>
  fc.oneof(
    fc.record({ kind: fc.constant("best" as const), labels: fc.tuple(fc.constantFrom(...among)) }),
    anyUpdate(among),
  );

const someBlocks = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 2_000 }).map(label), hostileText), {
  selector: ([block]) => block,
  minLength: 1,
  maxLength: 5,
});

/** An injection with the canonical text of each of its blocks. */
const anySection: fc.Arbitrary<{ injection: Injection; texts: ReadonlyMap<Label, string> }> = fc
  .tuple(someBlocks, fc.boolean())
  .chain(([blocks, isLabelled]) => {
    const among = blocks.map(([block]) => block);
    const labelled = fc.oneof(
      anyAnnotation,
      anyUpdate(among).map((update): Annotation => ({ ...update, isLabelled: true })),
    );
    const annotation = isLabelled ? labelled : anyQuote(among);
    const references = isLabelled ? anyReferences(blocks.length) : fc.constant([]);
    return fc.tuple(references, fc.array(annotation, { maxLength: 3 })).map(([places, lines]) => ({
      injection: {
        blocks: among.map((one) => (isLabelled ? { label: one, isLabelled } : { label: one })),
        annotations: [...places, ...lines],
      },
      texts: new Map(blocks.map(([block, text]) => [block, canonicalText(text)])),
    }));
  });

const textIn =
  (texts: ReadonlyMap<Label, string>): TextOf =>
  (wanted) =>
    texts.get(wanted) ?? "";

/** Its own tags, and no template token. */
function expectNoStructure(section: string): void {
  expect(section.match(/<\/?memories>/gi)).toEqual(["<memories>", "</memories>"]);
  expect(section).not.toMatch(/<[|｜]|\[\/?INST\]|<<\/?SYS>>|<\/?(?:s|think|tool_call)>|<\w+_of_turn>|<BOS_TOKEN>/i);
}

describe("a section", () => {
  it("is a list between tags, then lines that quote texts", () => {
    const injection: Injection = {
      blocks: [{ label: label(3) }, { label: label(12) }],
      annotations: [
        { kind: "update", label: label(1), replaces: labels(8, 9) },
        { kind: "update", label: label(2), replaces: [], isAgain: true },
        { kind: "best", labels: labels(12) },
      ],
    };
    const texts = new Map([
      [label(1), `Lives in Bonn.\nAlone.${" Still.".repeat(70)}`],
      [label(2), `Works from home${".".repeat(400)}`],
      [label(3), "Likes tea.\nGreen tea."],
      [label(12), "Lives in Oslo."],
    ]);
    expect(renderSection(injection, textIn(texts))).toBe(`<memories>
- Likes tea.
  Green tea.
- Lives in Oslo.
</memories>
Update: Lives in Bonn.
  Alone.${" Still.".repeat(70)}
Update: Works from home${".".repeat(385)}…
Most relevant: Lives in Oslo.`);
  });

  it("with labels is blocks between tags, then annotations that name them", () => {
    const injection: Injection = {
      blocks: [
        { label: label(3), isLabelled: true },
        { label: label(12), isLabelled: true },
      ],
      annotations: [
        { kind: "location", labels: labels(7), after: 1 },
        { kind: "update", label: label(5), replaces: labels(7), isLabelled: true },
        { kind: "order", labels: labels(12, 3) },
      ],
    };
    const texts = new Map([
      [label(3), "Likes tea.\nGreen tea."],
      [label(5), "Eats [7]."],
      [label(12), "Lives in Oslo."],
    ]);
    expect(renderSection(injection, textIn(texts))).toBe(`<memories>
[Doc_3] Likes tea.
  Green tea.
Please refer to [Doc_7] in the previous conversation.
[Doc_12] Lives in Oslo.
</memories>
Update: [Doc_5] Eats [\\7].
Please read the context in the following priority order: [Doc_12] > [Doc_3] and answer the question.`);
  });

  it("reads back as exactly the blocks, texts and annotations that were put in, whatever the texts are", () => {
    const roundTrip = fc.property(anySection, ({ injection, texts }) => {
      const read = ({ label, isLabelled }: InjectedBlock) => ({
        label: isLabelled ? label : null,
        text: texts.get(label),
      });
      expect(parseSection(renderSection(injection, textIn(texts)))).toEqual({
        blocks: injection.blocks.map(read),
        updates: updatesIn(injection).map(read),
        annotations: injection.annotations.map((each) => renderAnnotation(each, textIn(texts))),
      });
    });
    fc.assert(roundTrip, { numRuns: 1_000 });
  });

  it("holds no label, tag, template token or line but its own, whatever the texts are", () => {
    const sections = fc.property(anySection, ({ injection, texts }) => {
      const isLabelled = injection.blocks[0]?.isLabelled === true;
      const shown = isLabelled ? { ...injection, annotations: [] } : injection;
      const section = renderSection(shown, textIn(texts));
      expect(labelsNamed(section)).toEqual(isLabelled ? injection.blocks.map((block) => block.label) : []);
      expectNoStructure(section);
      const ownLines = section.split("\n").filter((line) => !line.startsWith("  "));
      expect(ownLines).toHaveLength(shown.blocks.length + shown.annotations.length + 2);
    });
    fc.assert(sections, { numRuns: 1_500 });
  });
});

describe("a strict reader", () => {
  const refused = {
    "no opening": "1 a\n</memories>",
    "no closing": "<memories>\n[Doc_1] a\n",
    "a closing on a block's line": "<memories>\n[Doc_1] a</memories>",
    "an empty line": "<memories>\n[Doc_1] a\n\n</memories>",
    "an annotation before the closing": "<memories>\n[Doc_1] a\nMost relevant first: [Doc_1].\n</memories>",
    "a continuation of nothing": "<memories>\n  a\n</memories>",
    "a tag inside": "<memories>\n[Doc_1] a\n<memories>\n</memories>",
    "a text behind the closing": "<memories>\n[Doc_1] a\n</memories>\ntea",
    "an empty line behind the closing": "<memories>\n[Doc_1] a\n</memories>\n",
    "a continuation behind the closing": "<memories>\n[Doc_1] a\n</memories>\n  b",
  };

  it.each(Object.entries(refused))("refuses %s", (_what, section) => {
    expect(parseSection(section)).toBeNull();
  });
});
