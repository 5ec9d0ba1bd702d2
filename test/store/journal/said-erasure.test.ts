import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ChatMessage, labelsIn } from "../../../src/core/index.js";
import { DigestSeal } from "../../../src/store/database/digest-seal.js";
import { withErasedMessages, withoutMemory } from "../../../src/store/journal/forgetting.js";
import { SaidCodec, SharedMessage } from "../../../src/store/journal/said-codec.js";
import { anyLabels, anyMemoryId } from "./any-rows.js";
import { anyComposedRecord } from "./any-said.js";

const KEY = randomBytes(32);
const seal = new DigestSeal(() => KEY);

describe("a record after a memory was forgotten", () => {
  it("names neither its labels nor, in its answer, the memory, and says all else as before", () => {
    const property = fc.property(anyComposedRecord, anyLabels, anyMemoryId, fc.nat(3), (record, labels, other, nth) => {
      const named = record.request?.answer.memories[nth];
      const memoryId = named?.memoryId ?? other;
      const gone = new Set(named === undefined ? labels : [...labels, named.label]);
      const kept = withoutMemory(record, gone, memoryId);
      for (const { turn } of kept.turns)
        for (const label of [...labelsIn(turn.injection), ...turn.requested]) expect(gone).not.toContain(label);
      for (const { label, replaces, memoryId: id } of kept.request?.answer.memories ?? []) {
        for (const left of [label, ...replaces]) expect(gone).not.toContain(left);
        expect(id).not.toBe(memoryId);
      }
      const rest = ({ turns, request, sections }: typeof record) => ({
        sections,
        turns: turns.map(({ turn, given }) => ({ given, turn: { ...turn, injection: null, requested: null } })),
        request:
          request === null ? null : { ...request, answer: { ...request.answer, memories: null, warnings: null } },
      });
      expect(rest(kept)).toEqual(rest(record));
      const warnings = record.request?.answer.warnings ?? [];
      const about = (one: (typeof warnings)[number]) => one.memoryIds?.filter((id) => id !== memoryId);
      // Of a warning that names others too, those stay.
      const left = warnings
        .filter((one) => !one.memoryIds?.includes(memoryId) || about(one)?.length !== 0)
        .map((one) => (one.memoryIds === undefined ? one : { ...one, memoryIds: about(one) }));
      expect(kept.request?.answer.warnings ?? []).toEqual(left);
      expect(withoutMemory(kept, gone, memoryId)).toBe(kept);
    });
    fc.assert(property, { numRuns: 300 });
  });

  it("is the same record where it does not name the memory", () => {
    const property = fc.property(anyComposedRecord, (record) => {
      expect(withoutMemory(record, new Set(), "of nobody" as never)).toBe(record);
      expect(withErasedMessages(record, () => false)).toBe(record);
    });
    fc.assert(property);
  });

  it("has no text of its erased messages, and all of their digests", () => {
    const codec = new SaidCodec(seal);
    const property = fc.property(anyComposedRecord, (record) => {
      const isErased = (message: ChatMessage | SharedMessage) => {
        if (message instanceof SharedMessage) return message.key < "M";
        return typeof message.content === "string" && message.content.length > 3;
      };
      const kept = withErasedMessages(record, isErased);
      const said = kept.turns.flatMap(({ given }) => given).filter((message) => message !== null);
      expect(said.filter(isErased)).toEqual([]);
      expect(kept.turns.map(({ turn }) => turn)).toEqual(record.turns.map(({ turn }) => turn));
      expect(codec.decodeComposed(codec.encodeComposed(kept))).toEqual(kept);
    });
    fc.assert(property, { numRuns: 300 });
  });
});
