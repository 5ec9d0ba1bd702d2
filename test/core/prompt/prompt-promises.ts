import { expect } from "vitest";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import type { Composition } from "../../../src/core/compose/compose.js";
import { unescapeText } from "../../../src/core/escaping/escaping.js";
import { messagesTokens } from "../../../src/core/prompt/prompt.js";
import { type ParsedSection, type ParsedText, parseSection, sectionAtStart } from "../../../src/core/prompt/section.js";
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

/** The memories that each section gives, first to last: its blocks, then its updates but those of texts that stand. */
function givenIn(sections: readonly ParsedSection[]): ParsedText[][] {
  const before: ParsedText[] = [];
  return sections.map(({ blocks, updates }) => {
    const isNew = ({ label, text }: ParsedText) =>
      !before.some((one) => (label === null ? isQuoteOf(text, one.text) : label === one.label));
    const given = [...blocks, ...updates.filter(isNew)];
    before.push(...given);
    return given;
  });
}

/** The texts of all memories in a prompt, first to last. */
export function textsIn(messages: readonly ChatMessage[]): string[] {
  return givenIn(sectionsOf(messages)).flatMap((given) => given.map(({ text }) => text));
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
  const given = givenIn(sections);
  const blocks = given.flat();
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
  const here = (injectsNow ? given.at(-1) : undefined) ?? [];
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
  const unasked = memories.filter(({ memoryId }) => !asked.has(memoryId));
  expect(
    unasked.filter(({ replaces }) => replaces.length === 0),
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
  const given = givenIn(sections);
  const isLabelled = given.flat().some(({ label }) => label !== null);
  const before: ParsedText[] = [];
  for (const [at, { annotations, updates }] of sections.entries()) {
    const all = [...before, ...(given[at] ?? [])];
    // References stand in the list, all other lines after it.
    const references = annotations.filter((line) => line.startsWith("Please refer to "));
    const lines = annotations.slice(references.length);
    expect(
      lines.slice(0, updates.length).every((line) => line.startsWith("Update: ")),
      "updates come first",
    ).toBe(true);
    for (const [n, line] of [...references, ...lines.slice(updates.length)].entries()) {
      const [, quoted] = /^Most relevant: (.*)$/s.exec(line) ?? [];
      if (quoted !== undefined) {
        const isThere = all.some(({ text }) => isQuoteOf(unescapeText(quoted), text));
        expect(isThere, `"${line}" quotes a text that stands`).toBe(true);
        expect(updates.length + n, "the best is named once, after all else").toBe(annotations.length - 1);
        continue;
      }
      expect(isLabelled, `"${line}" needs labels`).toBe(true);
      const meant = new Set((line.startsWith("Please read") ? all : before).map(({ label }) => label));
      expect(labelsNamed(line), `"${line}" names labels`).not.toEqual([]);
      expect(
        labelsNamed(line).filter((label) => !meant.has(label)),
        `"${line}" points at nothing`,
      ).toEqual([]);
    }
    before.push(...(given[at] ?? []));
  }
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
