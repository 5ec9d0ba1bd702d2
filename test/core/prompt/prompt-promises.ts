import { expect } from "vitest";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import type { Composition } from "../../../src/core/compose/compose.js";
import { unescapeText } from "../../../src/core/escaping/escaping.js";
import { messagesTokens } from "../../../src/core/prompt/prompt.js";
import { type ParsedSection, parseSection, sectionAtStart } from "../../../src/core/prompt/section.js";
import { canonicalText } from "../../../src/core/text/memory-text.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { countTokens } from "../compose/scope-fixture.js";

/** The sections of a prompt as a strict reader sees them, first to last. */
export function sectionsOf(messages: readonly ChatMessage[]): ParsedSection[] {
  return messages.flatMap(({ role, content }) => {
    const texts = Array.isArray(content) ? content.map(({ text }) => text) : [content];
    // Behind a tool's result, before any other text.
    const text = role === "tool" ? texts.at(-1) : texts[0];
    const start = role === "tool" && typeof text === "string" ? startAtEnd(text) : 0;
    const section = typeof text === "string" && start >= 0 ? sectionAtStart(text.slice(start)) : null;
    const parsed = section === null ? null : parseSection(section);
    return parsed === null ? [] : [parsed];
  });
}

/** Where the section at the end of a tool's result begins, or -1; the client's own text has none behind a blank line. */
function startAtEnd(text: string): number {
  const at = text.lastIndexOf("<memories>\n");
  return at === 0 || text.startsWith("\n\n", at - 2) ? at : -1;
}

/** The texts of all memory blocks in a prompt, first to last. */
export function textsIn(messages: readonly ChatMessage[]): string[] {
  return sectionsOf(messages).flatMap(({ blocks }) => blocks.map(({ text }) => text));
}

/** Labels named in a piece of rendered text: those at the start of a line, and those in brackets anywhere. */
export function labelsNamed(text: string): number[] {
  return [...text.matchAll(/\[Doc_(\d+)\]/g)].map(([, digits]) => Number(digits));
}

/**
 * What every composed prompt must keep (docs/internals/architecture.md, "Promises"), read from the messages alone: each requested
 * text once, every reference resolved before it is made, every memory accounted for, and a plan that adds up.
 */
export function expectPromises(composition: Composition, requested: readonly RetrievedMemory[]): void {
  expectComplete(composition, requested);
  expectReferencesResolve(composition.messages);
  expectPlanAddsUp(composition);
}

/** Each requested text stands once, and the composition accounts for it. */
export function expectComplete(
  { messages, memories, annotations }: Pick<Composition, "messages" | "memories" | "annotations">,
  requested: readonly RetrievedMemory[],
): void {
  const sections = sectionsOf(messages);
  const blocks = sections.flatMap((section) => section.blocks);
  const isLabelled = blocks.some(({ label }) => label !== null);
  expect(
    blocks.filter(({ label }) => (label !== null) !== isLabelled),
    "all blocks of a prompt have labels, or none",
  ).toEqual([]);
  const fresh = [
    ...new Set(memories.filter(({ placement }) => placement !== "earlier_turn").map(({ label }) => label as number)),
  ];
  const injectsNow = fresh.length > 0 || annotations.length > 0;
  const last = injectsNow ? sections.at(-1) : undefined;
  const here = last?.blocks ?? [];
  // Blocks without labels stand in the order in which the answer lists them, which their texts confirm.
  const listed = isLabelled ? blocks : here.map((block, at) => ({ ...block, label: fresh[at] }));
  const textOf = new Map(listed.map(({ label, text }) => [label ?? -1, text]));
  const standing = new Set(blocks.map(({ label, text }) => (isLabelled ? label : text)));
  expect(standing.size, "a label stands once, and without labels a text").toBe(blocks.length);
  const textsBefore = new Set(blocks.slice(0, blocks.length - here.length).map(({ text }) => text));
  const givenEarlier = new Map<string, number>();
  for (const { id, text } of requested) {
    const canonical = canonicalText(text);
    expect(blocks.filter((block) => block.text === canonical).length, `"${text}" stands once`).toBe(1);
    const placed = memories.filter(({ memoryId }) => memoryId === id);
    const isPlaced = placed.some(({ label, placement }) =>
      isLabelled || placement !== "earlier_turn" ? textOf.get(label) === canonical : textsBefore.has(canonical),
    );
    expect(isPlaced, `memory ${id} with "${text}" is accounted for`).toBe(true);
    // One text has one label, also where the prompt does not show it.
    const [only] = placed;
    if (placed.length !== 1 || only?.placement !== "earlier_turn") continue;
    expect(givenEarlier.get(canonical) ?? only.label, `"${text}" has one label`).toBe(only.label);
    givenEarlier.set(canonical, only.label);
  }
  expect(new Set(givenEarlier.values()).size, "a label has one text").toBe(givenEarlier.size);
  const asked = new Set(requested.map(({ id }) => id));
  const corrections = memories.filter(({ memoryId }) => !asked.has(memoryId));
  expect(
    corrections.filter(({ replaces }) => replaces.length === 0),
    "what was not asked for replaces a text of the prompt",
  ).toEqual([]);
  const there = new Set(memories.map(({ memoryId }) => memoryId));
  expect(
    [...asked].filter((id) => !there.has(id)),
    "what was asked for is there",
  ).toEqual([]);
  expect(fresh, "this turn's memories are listed as they stand").toEqual(
    here.map(({ label }, at) => label ?? fresh[at] ?? "not listed"),
  );
  expect([...annotations]).toEqual(last?.annotations ?? []);
}

export function expectReferencesResolve(messages: readonly ChatMessage[]): void {
  const sections = sectionsOf(messages);
  if (sections.some(({ blocks }) => blocks.some(({ label }) => label !== null))) expectLabelsResolve(sections);
  else expectQuotesResolve(sections);
}

function expectLabelsResolve(sections: readonly ParsedSection[]): void {
  const before = new Set<number>();
  const texts: string[] = [];
  for (const { blocks, annotations } of sections) {
    const here = new Set(blocks.flatMap(({ label }) => label ?? []));
    const replaced = blocks.flatMap(({ replaces }) => replaces);
    expect(
      replaced.filter((label) => !before.has(label)),
      "what is replaced stands before",
    ).toEqual([]);
    for (const line of annotations) {
      const quote = quoteOf(line);
      if (quote?.kind === "Most relevant") {
        texts.push(...blocks.map(({ text }) => text));
        expect(
          texts.some((text) => isQuoteOf(quote.quoted, text)),
          `"${line}" quotes a text that stands`,
        ).toBe(true);
        continue;
      }
      const meant = line.startsWith("Please read") ? new Set([...before, ...here]) : before;
      expect(labelsNamed(line), `"${line}" names labels`).not.toEqual([]);
      expect(
        labelsNamed(line).filter((label) => !meant.has(label)),
        `"${line}" points at nothing`,
      ).toEqual([]);
    }
    for (const label of here) before.add(label);
    texts.push(...blocks.map(({ text }) => text));
  }
}

function expectQuotesResolve(sections: readonly ParsedSection[]): void {
  const before = new Set<string>();
  const over = new Set<string>();
  for (const { blocks, annotations } of sections) {
    const here = new Set(blocks.map(({ text }) => text));
    const ended = new Set<string>();
    for (const [at, line] of annotations.entries()) {
      expect(labelsNamed(line), `"${line}" names no label`).toEqual([]);
      const { kind, quoted } = quoteOf(line) ?? {};
      const meant = kind === "Most relevant" ? new Set([...before, ...here]) : before;
      const texts = [...meant].filter((text) => quoted !== undefined && isQuoteOf(quoted, text));
      expect(texts, `"${line}" quotes a text that stands`).not.toEqual([]);
      if (kind === "Most relevant") {
        expect(at, "the best is named once, after all that is corrected").toBe(annotations.length - 1);
        expect(
          texts.filter((text) => !ended.has(text)),
          `"${line}" quotes what holds`,
        ).not.toEqual([]);
      }
      if (kind === "Current again") for (const text of texts) over.delete(text);
      if (kind !== "No longer true") continue;
      // Of long texts with one beginning, another may have been meant before.
      const [text] = texts.filter((one) => !over.has(one));
      expect(text, `"${line}" says what was not said before`).toBeDefined();
      if (text !== undefined) over.add(text);
      if (text !== undefined) ended.add(text);
    }
    for (const text of here) before.add(text);
  }
}

/** How a line begins that quotes a text, and the text. */
function quoteOf(line: string): { readonly kind: string; readonly quoted: string } | null {
  const [, kind, quoted] = /^(Most relevant|Current again|No longer true): (.*)$/s.exec(line) ?? [];
  return kind === undefined || quoted === undefined ? null : { kind, quoted: unescapeText(quoted) };
}

/** Characters of a text that a line quotes. */
const LONGEST_QUOTE = 400;

/** Whether a text is quoted: whole, or its beginning where it is long. */
function isQuoteOf(quoted: string, text: string): boolean {
  if (text.length <= LONGEST_QUOTE) return quoted === text;
  const beginning = quoted.slice(0, -1);
  const isWhole =
    beginning ===
    text
      .slice(0, LONGEST_QUOTE)
      .replace(/[\uD800-\uDBFF]$/, "")
      .trimEnd();
  return quoted.endsWith("…") && isWhole;
}

/** The texts that a prompt gives and does not say are replaced or no longer true, in either form. */
export function textsHeld(messages: readonly ChatMessage[]): ReadonlySet<string> {
  const texts = new Map<number | string, string>();
  const over = new Set<number | string>();
  for (const { blocks, annotations } of sectionsOf(messages)) {
    for (const { label, text, replaces } of blocks) {
      texts.set(label ?? text, text);
      over.delete(label ?? text);
      for (const old of replaces) over.add(old);
    }
    for (const line of annotations) {
      const quote = quoteOf(line);
      const isLabelled = labelsNamed(line).length > 0;
      const named = isLabelled
        ? labelsNamed(line)
        : [...texts.keys()].filter(
            (text) => typeof text === "string" && quote !== null && isQuoteOf(quote.quoted, text),
          );
      const [current, ...replaced] = named;
      if (quote?.kind === "Current again" && current !== undefined) over.delete(current);
      if (quote?.kind === "Current again" && isLabelled) for (const old of replaced) over.add(old);
      if (quote?.kind === "No longer true") for (const old of named) over.add(old);
    }
  }
  return new Set([...texts].flatMap(([key, text]) => (over.has(key) ? [] : [text])));
}

function expectPlanAddsUp({ messages, plan }: Composition): void {
  expect(plan.expectedCachedTokens + plan.uncachedTokens).toBe(plan.totalTokens);
  expect(plan.expectedCachedTokens).toBeGreaterThanOrEqual(0);
  expect(plan.uncachedTokens).toBeGreaterThan(0);
  expect(plan.stableMessages).toBeLessThan(messages.length);
  // Estimated line by line and rounded up each time: never less than the messages come to, and at most a token more a line.
  const exact = messagesTokens(messages, countTokens);
  const lines = messages.reduce((sum, message) => sum + JSON.stringify(message).split("\\n").length + 1, 0);
  expect(plan.totalTokens).toBeGreaterThanOrEqual(exact);
  expect(plan.totalTokens).toBeLessThanOrEqual(exact + lines);
}
