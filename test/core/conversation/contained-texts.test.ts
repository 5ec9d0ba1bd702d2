import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BlockRegister } from "../../../src/core/blocks/block-register.js";
import type { Resolution } from "../../../src/core/blocks/context-block.js";
import { NOTHING_STANDING } from "../../../src/core/conversation/conversation.js";
import { exchangeText, withoutRepeats } from "../../../src/core/conversation/repeats.js";
import type { MemoryId } from "../../../src/core/text/ids.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { Chat, countTokens, memory, UserScope, user } from "../compose/scope-fixture.js";
import { textsIn } from "../prompt/prompt-promises.js";

const tea = memory("tea", "Ana likes tea.");

/** Memories of a prompt that has nothing but these messages. */
function alone(register: BlockRegister, resolution: Resolution, messages: readonly ChatMessage[] = []): Resolution {
  return withoutRepeats(register, resolution, NOTHING_STANDING, new Map(), messages);
}

describe("a text that another memory of the request says too", () => {
  it("is given where what the other says of it has another date", () => {
    const may = memory("may", "2023-05-08: Ana likes tea.");
    const june = memory("june", "2023-06-08: Ana likes tea. She lives in Porto.");
    expect(textsIn(new UserScope().compose([user("Who?")], [may, june]).messages)).toHaveLength(2);
  });
});

describe("in a conversation", () => {
  const turns = (...requests: (typeof tea)[][]) => {
    const chat = new Chat(new UserScope());
    return requests.map((retrieved, n) => {
      const composition = chat.ask(`Question ${n}`, retrieved);
      chat.answer("Yes.");
      return composition;
    });
  };

  it("what was written back of it is not given again behind what was said, and elsewhere it is", () => {
    const scope = new UserScope();
    const chat = new Chat(scope);
    chat.ask("Where does Ana live?");
    chat.answer("In Porto.\r\nBy the sea.");
    const kept = memory("kept", exchangeText("Where does Ana live?", "In Porto.\r\nBy the sea.") ?? "");
    const { messages, memories, warnings } = chat.ask("Since when?", [kept, tea]);
    expect(textsIn(messages)).toEqual([tea.text]);
    expect(memories.map(({ memoryId }) => memoryId)).toEqual(["tea"]);
    expect(warnings).toContainEqual(expect.objectContaining({ code: "memory_in_messages", memoryIds: ["kept"] }));
    expect(textsIn(scope.compose([user("Since when?")], [kept]).messages)).toHaveLength(1);
    chat.answer("1999.");
    const part = memory("part", "assistant: In Porto.");
    const again = chat.ask("Why?", [part, kept]);
    expect(textsIn(again.messages)).toEqual([tea.text]);
    expect(again.memories).toEqual([]);
  });

  it("a text that replaces another is given, whatever else says it", () => {
    const rome = memory("home", "Ana lives in Rome.");
    const oslo = memory("home", "Ana lives in Oslo.");
    const more = memory("more", "Ana lives in Oslo. It is cold there.");
    const [, second] = turns([rome], [oslo, more]);
    expect(second?.messages.at(-1)?.content).toContain(
      "- Ana lives in Oslo. It is cold there.\n</memories>\nUpdate: Ana lives in Oslo.\n",
    );
  });

  it("a text that was replaced stands for nothing", () => {
    const rome = memory("home", "Ana lives in Rome.");
    const oslo = memory("home", "Ana lives in Oslo.");
    const [, , third] = turns([rome], [oslo], [oslo, memory("other", "ana lives in rome")]);
    expect(textsIn(third?.messages ?? [])).toContain("ana lives in rome");
  });
});

const WORDS = ["ana", "likes", "tea", "not", "Bob", "Porto", "5", "e.g.", "Dr.", "É", "E\u0301", "お茶"];
const ENDS = [".", "!", "?", "…", "", ".\n", ". ", "?! ", "。", '"', ")", ": "];
const sentence = fc
  .tuple(
    fc.constantFrom("", "", "- ", '"', "("),
    fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 3 }),
    fc.constantFrom(...ENDS),
  )
  .map(([before, words, end]) => `${before}${words.join(" ")}${end}`);
const sentences = fc.array(sentence, { minLength: 1, maxLength: 4 });
const text = sentences.map((said) => said.join(" "));
/** Two texts, of which the second often has sentences of the first, written another way. */
const related = fc
  .tuple(
    sentences,
    sentences,
    fc.nat({ max: 3 }),
    fc.nat({ max: 3 }),
    fc.constantFrom("", ".", "!", "?", " "),
    fc.boolean(),
  )
  .map(([first, others, from, count, end, isLoud]): [string, string] => {
    const shared = first.slice(from, from + count + 1).join("  ");
    const again = `${isLoud ? shared.toUpperCase() : shared}${end}`;
    return [first.join(" "), shared === "" ? others.join(" ") : again];
  });

/** A reader that knows nothing of sentences: the words of a text, and whether they are a question's. */
function wordsOf(said: string): string {
  const words =
    said
      .normalize("NFC")
      .toLowerCase()
      .normalize("NFC")
      .match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
  return ` ${words.join(" ")} `;
}

describe("whatever two texts say", () => {
  const PAIRS = 100;

  it("no word of either is lost, over 10,000 pairs in a long run", () => {
    let [leftOut, tried] = [0, 0];
    const pair = fc.tuple(fc.oneof(fc.tuple(text, text), related), fc.boolean());
    fc.assert(
      fc.property(fc.array(pair, { minLength: PAIRS, maxLength: PAIRS }), (pairs) => {
        for (const [[a, b], isAsked] of pairs) {
          const register = new BlockRegister({ blocks: [], versions: [], forgotten: [] }, 1, countTokens);
          const retrieved = (isAsked ? [a] : [a, b]).map((said, n) => ({ id: `m-${n}` as MemoryId, text: said }));
          const resolution = register.resolve(retrieved);
          const kept = alone(register, resolution, isAsked ? [user(b)] : []);
          const there = [...kept.blocks.map((block) => block.text), ...(isAsked ? [b] : [])].map(wordsOf);
          for (const { text: said, id } of retrieved) {
            expect(
              there.some((words) => words.includes(wordsOf(said))),
              JSON.stringify([a, b]),
            ).toBe(true);
            const label = kept.memories.find(({ memoryId }) => memoryId === id)?.label;
            if (label === undefined) expect(kept.said).toContain(id);
            else expect(wordsOf(register.textOf(label))).toContain(wordsOf(said));
          }
          tried++;
          if (kept !== resolution) leftOut++;
        }
      }),
      { numRuns: 10_000 / PAIRS },
    );
    expect(leftOut).toBeGreaterThan(tried / 20);
  }, 300_000);
});
