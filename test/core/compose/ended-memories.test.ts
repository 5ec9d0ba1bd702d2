import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import type { Composition } from "../../../src/core/compose/compose.js";
import type { MemoryId } from "../../../src/core/text/ids.js";
import { expectPromises, labelsNamed } from "../prompt/prompt-promises.js";
import { Chat, memory, UserScope } from "./scope-fixture.js";

/** The texts that a prompt gives and does not say are replaced or no longer true. */
function heldIn({ messages }: Composition): ReadonlySet<string> {
  const texts = new Map<number, string>();
  const over = new Set<number>();
  for (const line of JSON.stringify(messages).replaceAll('"', "\\n").split("\\n")) {
    const [, label, replaced = "", text] = /^(\d+) (?:\(replaces ((?:\[\d+\])+)\) )?(Fact \d+\.)$/.exec(line) ?? [];
    if (text !== undefined) texts.set(Number(label), text);
    if (text !== undefined) over.delete(Number(label));
    for (const old of labelsNamed(replaced)) over.add(old);
    const [, again, instead = ""] = /^Current again: (\[\d+\])(?: \(replaces ((?:\[\d+\])+)\))?\.$/.exec(line) ?? [];
    if (again !== undefined) for (const current of labelsNamed(again)) over.delete(current);
    for (const old of labelsNamed(instead)) over.add(old);
    if (line.startsWith("No longer true: ")) for (const old of labelsNamed(line)) over.add(old);
  }
  return new Set([...texts].flatMap(([label, text]) => (over.has(label) ? [] : [text])));
}

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
    const life = fc.property(fc.array(anyStep, { maxLength: 14 }), (steps) => {
      const scope = new UserScope();
      const chats = [new Chat(scope, "one"), new Chat(scope, "two")];
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
        expect([...heldIn(composition)].filter((text) => !holding.has(text))).toEqual([]);
        expectPromises(composition, requested);
        chats[chat]?.answer(`Answer ${n}`);
      }
    });
    fc.assert(life, { numRuns: 300 });
  });
});
