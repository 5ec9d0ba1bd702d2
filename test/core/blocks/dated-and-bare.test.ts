import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ownWords, type RenderedMemory } from "../../../src/core/blocks/context-block.js";
import { renderMemory } from "../../../src/core/blocks/dated-memory.js";
import { DEDUPE_NAMES } from "../../../src/core/conversation/repeats.js";
import type { MemoryId } from "../../../src/core/text/ids.js";
import { Chat, UserScope } from "../compose/scope-fixture.js";
import { textsIn } from "../prompt/prompt-promises.js";

const MAY = "2023-05-08T13:56:00Z";
const JUNE = "2023-06-01T10:00:00Z";
const [BARE, DATED] = [false, true];

function memory(id: string, text: string, dates: boolean, createdAt = MAY): RenderedMemory {
  return renderMemory({ id: id as MemoryId, text, createdAt }, dates, 10_000).memory;
}

const tea = (dates: boolean, createdAt?: string) => memory("drink", "Likes tea.", dates, createdAt);
const rome = (dates: boolean) => memory("home", "Lives in Rome.", dates);
/** One conversation that asks once for each list of memories, and reads its rows again before every request. */
function asked(...requests: (readonly RenderedMemory[])[]) {
  const scope = new UserScope();
  const chat = new Chat(scope);
  return requests.map((requested, n) => {
    const composition = chat.ask(`Question ${n}`, requested);
    chat.answer(`Answer ${n}`);
    scope.restart();
    return composition;
  });
}

describe("a memory that is requested with its date, and without", () => {
  it("is given as before in a conversation that has its words: nothing is sent again, and nothing is said to be replaced", () => {
    const [first, second, third] = asked([tea(BARE), rome(BARE)], [tea(DATED), rome(DATED)], [tea(BARE)]);
    expect(first?.messages.at(-1)?.content).toContain("- Likes tea.\n- Lives in Rome.");
    expect(second?.messages.at(-1)?.content).toBe("Question 1");
    expect(second?.memories).toEqual([
      { label: 1, memoryId: "drink", placement: "earlier_turn", rank: 0, replaces: [] },
      { label: 2, memoryId: "home", placement: "earlier_turn", rank: 1, replaces: [] },
    ]);
    expect(third?.memories[0]?.label).toBe(1);
  });

  it("is never lost, never said to be replaced by its own words, and each label keeps its text, whatever changes", () => {
    const one = fc.record({
      id: fc.constantFrom("a", "b", "c"),
      text: fc.constantFrom("Likes tea.", "Lives in Rome.", "Has a dog."),
      dates: fc.boolean(),
      createdAt: fc.constantFrom(MAY, JUNE, "unknown"),
    });
    const request = fc.uniqueArray(one, { minLength: 1, maxLength: 3, selector: ({ id }) => id });
    fc.assert(
      fc.property(
        fc.array(request, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(...DEDUPE_NAMES),
        (requests, dedupe) => {
          const texts = new Map<number, string>();
          const scope = new UserScope();
          const chat = new Chat(scope);
          for (const [n, wanted] of requests.entries()) {
            const retrieved = wanted.map(({ id, text, dates, createdAt }) => memory(id, text, dates, createdAt));
            const { messages, memories } = chat.ask(`Question ${n}`, retrieved, { dedupe });
            chat.answer("Yes.");
            const standing = textsIn(messages);
            for (const { id, text } of wanted) {
              const placed = memories.find(({ memoryId }) => memoryId === id);
              if (placed === undefined) throw new Error(`${id} is nowhere`);
              const { register } = scope.state;
              const given = register.textOf(placed.label);
              expect(standing).toContain(given);
              // Another memory's block may say it too, as "2023-05-08: Likes tea." does.
              if (dedupe !== "exact") expect(given).toContain(text.slice(0, -1));
              else expect(ownWords(given, register.memories.isDated(id as MemoryId, placed.label))).toBe(text);
              for (const old of placed.replaces) {
                const isRestyled = register.sameWordsAs(id as MemoryId, placed.label).includes(old);
                if (isRestyled) expect(wanted.filter((other) => other.text === text).length).toBeGreaterThan(1);
              }
            }
            const replaced = new Set(memories.flatMap(({ replaces }) => replaces));
            for (const { label } of memories) {
              expect(replaced.has(label), `[${label}] is given and said to be replaced`).toBe(false);
              const text = scope.state.register.textOf(label);
              expect(texts.get(label) ?? text).toBe(text);
              texts.set(label, text);
            }
            scope.restart();
          }
        },
      ),
    );
  });
});
