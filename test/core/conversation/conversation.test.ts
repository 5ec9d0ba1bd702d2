import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Composition } from "../../../src/core/compose/compose.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import {
  anyForm,
  assistant,
  Chat,
  FORMS,
  LABELLED,
  memories,
  memory,
  toolExchange,
  UserScope,
  user,
} from "../compose/scope-fixture.js";
import { hostileText } from "../escaping/hostile-text.js";
import { expectPromises } from "../prompt/prompt-promises.js";

/** Few memories with few texts, so that they come back, change, share a text and conflict. */
const anyMemories = fc.array(
  fc
    .tuple(
      fc.integer({ min: 0, max: 7 }),
      fc.oneof(
        fc.integer({ min: 0, max: 9 }).map((n) => `Fact ${n}.`),
        hostileText,
      ),
    )
    .map(([id, text]) => memory(`m${id}`, text)),
  { maxLength: 7 },
);

const anyTurn = fc.record({
  memories: anyMemories,
  // Never a section of the client's own making: what a user writes is the user's, and only ever looks like one.
  text: fc.oneof(fc.string(), hostileText).map((text) => `Q: ${text}`),
  kind: fc.constantFrom("question", "question", "parts", "tool"),
  // The first turn with memories decides.
  form: anyForm,
});

type AnyTurn = typeof anyTurn extends fc.Arbitrary<infer T> ? T : never;

/** The messages that a client adds for a turn: what was answered to the one before, then the new question or tool result. */
function added({ kind, text }: AnyTurn, isFirst: boolean): ChatMessage[] {
  const question: ChatMessage = kind === "parts" ? { role: "user", content: [{ type: "text", text }] } : user(text);
  if (kind === "tool") return [...(isFirst ? [user("Look.")] : []), ...toolExchange(text)];
  return isFirst ? [question] : [assistant(`Answer to ${text}`), question];
}

/** Plays a conversation through; hands over each turn's composition with what it was asked for and what the client added. */
function play(turns: readonly AnyTurn[], see: (at: Composition, turn: AnyTurn, added: ChatMessage[]) => void): void {
  const chat = new Chat(new UserScope());
  for (const [n, turn] of turns.entries()) {
    const messages = added(turn, n === 0);
    see(chat.send(messages, turn.memories, turn.form), turn, messages);
  }
}

const anyConversation = fc.array(anyTurn, { minLength: 1, maxLength: 10 });

describe("a conversation", () => {
  it("is append-only: each prompt begins with the one before, byte for byte, and what the client added follows", () => {
    const conversation = fc.property(anyConversation, (turns) => {
      let before: readonly ChatMessage[] = [];
      play(turns, ({ messages, plan }, _turn, messagesAdded) => {
        expect(JSON.stringify(messages.slice(0, before.length))).toBe(JSON.stringify(before));
        expect(plan.stableMessages).toBe(before.length);
        if (before.length > 0) {
          expect(messages.slice(before.length).slice(0, messagesAdded.length - 1)).toEqual(messagesAdded.slice(0, -1));
        }
        before = messages;
      });
    });
    fc.assert(conversation, { numRuns: 300 });
  });

  it("has every text asked for in the prompt once, every reference resolved, and every memory accounted for", () => {
    const conversation = fc.property(anyConversation, (turns) => {
      play(turns, (composition, turn) => expectPromises(composition, turn.memories));
    });
    fc.assert(conversation, { numRuns: 250 });
  });

  it("should find each prompt but its new end in the cache", () => {
    const conversation = fc.property(anyConversation, (turns) => {
      let before = 0;
      play(turns, ({ plan }) => {
        expect(plan.expectedCachedTokens).toBeGreaterThanOrEqual(before);
        before = plan.totalTokens;
      });
    });
    fc.assert(conversation);
  });

  it("never takes a history that simply goes on for an edited one", () => {
    const conversation = fc.property(anyConversation, (turns) => {
      play(turns, ({ warnings }) => {
        expect(warnings.filter(({ code }) => code === "history_diverged" || code === "injected_text_removed")).toEqual(
          [],
        );
      });
    });
    fc.assert(conversation);
  });

  it("gives only what is new, and the best again, which stands earlier, on one line", () => {
    const chat = new Chat(new UserScope());
    chat.ask("One?", memories("a", "b", "c"));
    chat.answer("1");
    const { messages, memories: placed, annotations } = chat.ask("Two?", memories("c", "d", "a"));
    expect(messages.at(-1)).toEqual(
      user("<memories>\n- The user's d is known.\n</memories>\nMost relevant: The user's c is known.\n\nTwo?"),
    );
    expect(annotations).toEqual(["Most relevant: The user's c is known."]);
    expect(placed).toEqual([
      { label: 4, memoryId: "d", placement: "new", rank: 1, replaces: [] },
      { label: 3, memoryId: "c", placement: "earlier_turn", rank: 0, replaces: [] },
      { label: 1, memoryId: "a", placement: "earlier_turn", rank: 2, replaces: [] },
    ]);
  });

  it("that began with labels goes on with them, and one that began without goes on so, whatever is asked for later", () => {
    const [labelled, listed] = [new Chat(new UserScope()), new Chat(new UserScope())];
    labelled.ask("One?", [memory("home", "Lives in Oslo."), ...memories("a")], LABELLED);
    listed.ask("One?", [memory("home", "Lives in Oslo."), ...memories("a")]);
    for (const chat of [labelled, listed]) chat.answer("1");
    const requested = [...memories("a"), memory("home", "Lives in Rome.")];
    const second = labelled.ask("Two?", requested);
    expect(second.messages.at(-1)).toEqual(
      user("<memories>\n</memories>\nUpdate: [Doc_3] Lives in Rome.\nMost relevant: The user's a is known.\n\nTwo?"),
    );
    expectPromises(second, requested);
    const other = listed.ask("Two?", requested, LABELLED);
    expect(other.messages.at(-1)).toEqual(
      user("<memories>\n</memories>\nUpdate: Lives in Rome.\nMost relevant: The user's a is known.\n\nTwo?"),
    );
    expectPromises(other, requested);
    expect(other.memories).toEqual(second.memories);
  });

  it("gives an update once, however often it is replaced after that", () => {
    const chat = new Chat(new UserScope());
    const said = ["Oslo", "Rome", "Bonn", "Rome"].map((town, n) => {
      const requested = [memory("home", `Lives in ${town}.`)];
      const composition = chat.ask(`Question ${n}`, requested);
      expectPromises(composition, requested);
      chat.answer(`Answer ${n}`);
      return composition.annotations;
    });
    expect(said).toEqual([[], ["Update: Lives in Rome."], ["Update: Lives in Bonn."], ["Update: Lives in Rome."]]);
  });
});

describe("a conversation with tools", () => {
  it.each([
    [...FORMS[0], "- The user's b is known.\n</memories>\nMost relevant: The user's a is known."],
    [...FORMS[1], "Please refer to [Doc_1] in the previous conversation.\n[Doc_2] The user's b is known.\n</memories>"],
  ] as const)("replays what was given after a tool's result where it stood, %s", (_form, options, lines) => {
    const chat = new Chat(new UserScope(), "chat", undefined, options);
    chat.ask("One?", memories("a"));
    const tail = chat.send(toolExchange("42"), memories("a", "b"));
    expect(tail.messages.at(-1)).toEqual(user(`<memories>\n${lines}`));
    chat.answer("It is 42.");
    const next = chat.ask("Sure?", memories("a", "b"));
    expect(next.messages.slice(0, tail.messages.length)).toEqual(tail.messages);
    expect(next.plan.stableMessages).toBe(tail.messages.length);
    expectPromises(next, memories("a", "b"));
  });
});
