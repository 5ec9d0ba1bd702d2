import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Composition } from "../../../src/core/compose/compose.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { Chat, LABELLED, memories, memory, UserScope, user } from "../compose/scope-fixture.js";
import { expectPromises } from "../prompt/prompt-promises.js";
import { added, anyConversation, anyEngine, optionsOf, sharedMessages } from "./any-conversation.js";

/** Promises that need the prompts before: what is stable and cached is, and a kept prompt is only appended to. */
function expectContinued(next: Composition, earlier: readonly Composition[], more: readonly ChatMessage[]): void {
  const { messages, plan } = next;
  const shared = Math.max(0, ...earlier.map((other) => sharedMessages(other.messages, messages)));
  expect(plan.stableMessages).toBeLessThanOrEqual(shared);
  const text = textOf(next);
  const characters = Math.max(0, ...earlier.map((other) => sharedCharacters(textOf(other), text)));
  // Four characters are a token here, lines are rounded up one by one, and a message adds four.
  const slack = text.split("\\n").length + 5 * messages.length + 2;
  expect(plan.expectedCachedTokens).toBeLessThanOrEqual(characters / 4 + slack);
  const last = earlier.at(-1);
  if (last === undefined || last.plan.retention !== "keep" || plan.freshStart) return;
  expect(plan.stableMessages).toBe(last.messages.length);
  expect(plan.expectedCachedTokens).toBeGreaterThanOrEqual(last.plan.totalTokens);
  expect(messages.slice(last.messages.length).slice(0, more.length - 1)).toEqual(more.slice(0, -1));
}

const textOf = ({ messages }: Composition) => messages.map((message) => JSON.stringify(message)).join("\n");

function sharedCharacters(a: string, b: string): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}

describe("a conversation", () => {
  it("keeps every promise, whatever each turn chooses; the same after a restart, and where its prompts come back", () => {
    const property = fc.property(anyConversation, anyEngine, (turns, engine) => {
      const [steady, restarted, echoing] = [new UserScope(), new UserScope(), new UserScope()];
      const history: ChatMessage[] = [];
      const earlier: Composition[] = [];
      for (const [n, turn] of turns.entries()) {
        const more = added(turn, n);
        history.push(...more);
        const options = { ...optionsOf(turn), engine };
        const next = steady.compose(history, turn.found, options);
        expectPromises(next, turn.found);
        expect(next.warnings.map(({ code }) => code)).not.toContain("history_diverged");
        // Where the place of memories changes, they are written in another message.
        if (turns.every(({ inResult }) => inResult === turn.inResult)) expectContinued(next, earlier, more);
        const { messages, plan } = next;
        const behindResults = messages.filter(({ role }, at) => role === "user" && messages[at - 1]?.role === "tool");
        if (turn.inResult) expect(behindResults).toEqual([]);
        restarted.restart();
        const again = restarted.compose(history, turn.found, options);
        expect([again.messages, again.plan]).toEqual([messages, plan]);
        const echoed = echoing.compose([...(earlier.at(-1)?.messages ?? []), ...more], turn.found, options);
        expect(echoed.messages).toEqual(messages);
        earlier.push(next);
      }
    });
    fc.assert(property, { numRuns: 300 });
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
});
