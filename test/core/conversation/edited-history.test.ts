import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { anyForm, assistant, Chat, memories, memory, system, UserScope, user } from "../compose/scope-fixture.js";
import { expectPromises } from "../prompt/prompt-promises.js";

/** A conversation of three turns that gave a and b, then c, then d. */
function threeTurns(): { chat: Chat; prompts: (readonly ChatMessage[])[] } {
  const chat = new Chat(new UserScope());
  const prompts: (readonly ChatMessage[])[] = [];
  for (const [n, requested] of [memories("a", "b"), memories("c", "a"), memories("d")].entries()) {
    prompts.push(chat.ask(`Question ${n}`, requested).messages);
    chat.answer(`Answer ${n}`);
  }
  return { chat, prompts };
}

const codes = ({ warnings }: { warnings: readonly { code: string }[] }) => warnings.map(({ code }) => code);

describe("a history that was edited", () => {
  it("keeps what stood before an edited question and gives again what stood from there on", () => {
    const { chat, prompts } = threeTurns();
    chat.history[3] = user("Question 1, better put");
    const composition = chat.ask("Question 3", memories("a", "c", "d"));
    expect(composition.messages.slice(0, 3)).toEqual(prompts[1]?.slice(0, 3));
    expect(composition.plan.stableMessages).toBe(2);
    expect(composition.memories.map(({ memoryId, placement }) => [memoryId, placement])).toEqual([
      ["c", "new"],
      ["d", "new"],
      ["a", "earlier_turn"],
    ]);
    expect(codes(composition)).toEqual(["history_diverged"]);
    expectPromises(composition, memories("a", "c", "d"));
  });
});

describe("a last question that is asked again", () => {
  it("gives the same bytes when the same memories come back", () => {
    const { chat } = threeTurns();
    const first = chat.ask("Question 3", memories("e", "a", "c"));
    const second = chat.again(memories("e", "a", "c"));
    expect(JSON.stringify(second.messages)).toBe(JSON.stringify(first.messages));
    expect(second.plan).toMatchObject({ stableMessages: first.plan.stableMessages, orderChanged: false });
    expect(second.plan.expectedCachedTokens).toBeGreaterThan(first.plan.expectedCachedTokens);
    expect(codes(second)).toEqual(["history_diverged"]);
  });
});

describe("a history that comes back with memprefix's text in it", () => {
  it("is continued as if it had come back plain, and says so", () => {
    const [plain, echoed] = [threeTurns(), threeTurns()];
    echoed.chat.history.splice(0, 6, ...(echoed.prompts[2] ?? []));
    const expected = plain.chat.ask("Question 3", memories("a", "e"));
    const actual = echoed.chat.ask("Question 3", memories("a", "e"));
    expect(JSON.stringify(actual.messages)).toBe(JSON.stringify(expected.messages));
    expect(actual.plan).toEqual(expected.plan);
    expect(codes(actual)).toEqual(["injected_text_removed"]);
  });

  it("is cleaned where another conversation's text, or a forgotten memory's, comes back", () => {
    const scope = new UserScope();
    const other = new Chat(scope, "other").ask("One?", memories("a", "b"));
    scope.forget("a");
    const chat = new Chat(scope, "chat");
    chat.history.splice(0, 1, ...other.messages, assistant("1"));
    const composition = chat.ask("Two?", memories("b"));
    expect(JSON.stringify(composition.messages)).not.toContain("user's a is known");
    expectPromises(composition, memories("b"));
  });

  it("keeps a section that the user wrote", () => {
    const scope = new UserScope();
    const quoted = "<memories>\n[Doc_1] I typed this.\n</memories>\n\nWhat is it?";
    const composition = scope.compose([user(quoted), assistant("A section."), user("Sure?")], []);
    expect(composition.messages[0]).toEqual(user(quoted));
    expect(codes(composition)).toEqual([]);
  });
});

/** What a client may do to its history between two turns. */
const anyMeddling = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: "nothing" as const, at: 0 }) },
  fc.record({ kind: fc.constantFrom("edit", "cut", "truncate", "regenerate", "echo", "instruct"), at: fc.nat(20) }),
);

/** Does it, to a history that ends with an answer and begins with instructions. */
function meddle(chat: Chat, { kind, at }: { kind: string; at: number }, lastPrompt: readonly ChatMessage[]): void {
  const { history } = chat;
  const place = 1 + (at % Math.max(1, history.length - 1));
  if (kind === "edit") history[place] = { ...(history[place] ?? user("")), content: `Edited ${at}` };
  if (kind === "cut") history.splice(1, at % history.length);
  if (kind === "truncate") history.splice(place);
  if (kind === "regenerate") history.splice(-2);
  if (kind === "echo") history.splice(0, lastPrompt.length, ...lastPrompt);
  if (kind === "instruct") history[0] = system(`Instructions ${at % 3}`);
}

describe("whatever a client does to its history", () => {
  it("the prompt is complete, its references resolve, and its plan adds up", () => {
    const anyMemories = fc.array(
      fc.tuple(fc.nat(6), fc.nat(8)).map(([id, fact]) => memory(`m${id}`, `Fact ${fact}.`)),
      { maxLength: 6 },
    );
    const life = fc.property(fc.array(fc.tuple(anyMeddling, anyMemories, anyForm), { maxLength: 12 }), (turns) => {
      const chat = new Chat(new UserScope());
      let lastPrompt: readonly ChatMessage[] = [];
      for (const [n, [meddling, requested, form]] of turns.entries()) {
        meddle(chat, meddling, lastPrompt);
        const composition = chat.ask(`Question ${n % 3}`, requested, form);
        expectPromises(composition, requested);
        lastPrompt = composition.messages;
        chat.answer(`Answer ${n % 2}`);
      }
    });
    fc.assert(life, { numRuns: 250 });
  });
});
