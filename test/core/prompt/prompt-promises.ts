import { expect } from "vitest";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import type { Composition } from "../../../src/core/compose/compose.js";
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
  return [...text.matchAll(/^\s*(\d+) |\[(\d+)\]/gm)].map(([, bare, bracketed]) => Number(bare ?? bracketed));
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

function expectComplete({ messages, memories, annotations }: Composition, requested: readonly RetrievedMemory[]): void {
  const sections = sectionsOf(messages);
  const placed = [...new Set(memories.map(({ label }) => label as number))];
  // A single prompt writes none: its blocks stand as they are listed, which their texts must confirm.
  const labelAt = ({ label }: ParsedSection["blocks"][number], at: number) => label ?? placed[at];
  const blocks = sections.flatMap((section) =>
    section.blocks.map((block, at) => ({ ...block, label: labelAt(block, at) })),
  );
  const textOf = new Map(blocks.map(({ label, text }) => [label, text]));
  expect(textOf.size, "a label stands once").toBe(blocks.length);
  for (const { id, text } of requested) {
    const canonical = canonicalText(text);
    expect(blocks.filter((block) => block.text === canonical).length, `"${text}" stands once`).toBe(1);
    const isPlaced = memories.some(({ memoryId, label }) => memoryId === id && textOf.get(label) === canonical);
    expect(isPlaced, `memory ${id} with "${text}" is accounted for`).toBe(true);
  }
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
  const fresh = memories.filter(({ placement }) => placement !== "earlier_turn").map(({ label }) => label as number);
  const injectsNow = fresh.length > 0 || annotations.length > 0;
  const last = injectsNow ? sections.at(-1) : undefined;
  expect([...new Set(fresh)], "this turn's memories are listed as they stand").toEqual(
    (last?.blocks ?? []).map(labelAt),
  );
  expect([...annotations]).toEqual(last?.annotations ?? []);
}

function expectReferencesResolve(messages: readonly ChatMessage[]): void {
  const before = new Set<number>();
  for (const { blocks, annotations } of sectionsOf(messages)) {
    const here = new Set(blocks.flatMap(({ label }) => label ?? []));
    const replaced = blocks.flatMap(({ replaces }) => replaces);
    expect(
      replaced.filter((label) => !before.has(label)),
      "what is replaced stands before",
    ).toEqual([]);
    for (const line of annotations) {
      const meant = line.startsWith("Most relevant first") ? new Set([...before, ...here]) : before;
      expect(
        labelsNamed(line).filter((label) => !meant.has(label)),
        `"${line}" points at nothing`,
      ).toEqual([]);
    }
    for (const label of here) before.add(label);
  }
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
