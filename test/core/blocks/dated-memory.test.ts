import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ownWords } from "../../../src/core/blocks/context-block.js";
import { renderMemory } from "../../../src/core/blocks/dated-memory.js";
import type { MemoryId } from "../../../src/core/text/ids.js";
import { CUT_MARK, canonicalText } from "../../../src/core/text/memory-text.js";

const id = "m" as MemoryId;

describe("a memory with its date", () => {
  it("has the day before its text where it is known and wanted", () => {
    const tea = { id, text: " Likes tea.\r\n", createdAt: "2023-05-08T23:30:00Z" };
    const writtenAt = tea.createdAt;
    expect(renderMemory(tea, true, 100).memory).toEqual({ id, text: "2023-05-08: Likes tea.", dated: true, writtenAt });
    expect(renderMemory(tea, false, 100).memory).toEqual({ id, text: tea.text, writtenAt });
    const unread = renderMemory({ ...tea, createdAt: "soon" }, true, 100).memory;
    expect(unread).toEqual({ id, text: tea.text, writtenAt: "soon" });
    expect(renderMemory({ ...tea, updatedAt: 1_700_000_000 }, false, 100).memory.writtenAt).toBe(1_700_000_000);
    expect(renderMemory({ id, text: tea.text }, true, 100).memory).toEqual({ id, text: tea.text });
  });

  it("is at most as long as it may be, and its words are truncated", () => {
    const any = fc.record({ text: fc.string({ unit: "grapheme" }), isDated: fc.boolean() });
    fc.assert(
      fc.property(any, fc.integer({ min: 30, max: 60 }), ({ text, isDated }, max) => {
        const { memory, isCut } = renderMemory({ id, text, createdAt: 1_683_588_600 }, isDated, max);
        expect(memory.text.length).toBeLessThanOrEqual(max);
        const words = ownWords(memory.text, isDated);
        if (isCut) expect(words.endsWith(CUT_MARK)).toBe(true);
        else expect(words).toBe(isDated ? canonicalText(text) : text);
      }),
    );
  });
});
