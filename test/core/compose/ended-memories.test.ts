import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import type { MemoryId } from "../../../src/core/text/ids.js";
import { expectPromises, textsIn } from "../prompt/prompt-promises.js";
import { anyForm, Chat, memory, UserScope } from "./scope-fixture.js";

describe("memories that end, change and hold again", () => {
  it("leave a conversation with what holds, and no other promise is broken, before and after a reload", () => {
    const anyStep = fc.record({
      chat: fc.nat(1),
      memories: fc.uniqueArray(fc.tuple(fc.nat(4), fc.nat(5)), { maxLength: 4, selector: ([id]) => id }),
      ended: fc.uniqueArray(fc.record({ id: fc.nat(4), by: fc.option(fc.nat(4), { nil: undefined }) }), {
        maxLength: 2,
        selector: ({ id }) => id,
      }),
      until: fc.option(fc.nat(20), { nil: undefined }),
      restart: fc.boolean(),
    });
    const life = fc.property(anyForm, fc.array(anyStep, { maxLength: 14 }), (form, steps) => {
      const scope = new UserScope();
      const chats = [new Chat(scope, "one", undefined, form), new Chat(scope, "two", undefined, form)];
      const facts = new Map<string, { text: string; until: number }>();
      for (const [n, { chat, memories, ended, until, restart }] of steps.entries()) {
        scope.now = n;
        if (restart) scope.restart();
        const end = until === undefined ? {} : { end: { until: n + 1 + until } };
        const requested = memories.map(
          ([id, fact]): RetrievedMemory => ({ ...memory(`m${id}`, `Fact ${fact}.`), ...end }),
        );
        const asked = new Set<string>(requested.map(({ id }) => id));
        const over = ended
          .map(({ id, by }) => ({
            id: `m${id}` as MemoryId,
            replacedBy: by === undefined ? undefined : (`m${by}` as MemoryId),
          }))
          .filter(({ id }) => !asked.has(id));
        const composition = chats[chat]?.ask(`Question ${n}`, requested, { ended: over });
        if (composition === undefined) continue;
        for (const { id, text } of requested)
          facts.set(id, { text, until: end.end?.until ?? Number.POSITIVE_INFINITY });
        for (const { id } of over) facts.delete(id);
        for (const [id, fact] of facts) if (fact.until <= n) facts.delete(id);
        const holding = new Set([...facts.values()].map(({ text }) => text));
        const superseded = scope.supersededIn(composition);
        expect(textsIn(composition.messages).filter((text) => !holding.has(text) && !superseded.has(text))).toEqual([]);
        expect(requested.filter(({ text }) => superseded.has(text))).toEqual([]);
        for (const old of superseded) expect(composition.annotations.join("\n")).not.toContain(old);
        expectPromises(composition, requested);
        chats[chat]?.answer(`Answer ${n}`);
      }
    });
    fc.assert(life, { numRuns: 300 });
  });
});
