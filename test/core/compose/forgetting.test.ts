import { describe, expect, it } from "vitest";
import { expectPromises, textsIn } from "../prompt/prompt-promises.js";
import { Chat, FORMS, memories, memory, UserScope } from "./scope-fixture.js";

describe("a memory that was forgotten", () => {
  it("is in no line of an earlier turn: of the best, or of what became of it", () => {
    const oslo = memory("a", "Lives in Oslo.");
    const rome = memory("a", "Lives in Rome.");
    const chat = new Chat(new UserScope());
    const b = memory("b");
    const said = [[oslo], [b], [oslo], [b, rome], [oslo, memory("c")], [b]].map((requested, n) => {
      const ended = n === 5 ? [{ id: oslo.id }] : [];
      const { annotations } = chat.ask(`Question ${n}`, requested, { ended });
      chat.answer(`Answer ${n}`);
      return annotations;
    });
    expect(said).toEqual([
      [],
      [],
      ["Most relevant: Lives in Oslo."],
      ["Update: Lives in Rome.", "Most relevant: The user's b is known."],
      ["Update: Lives in Oslo."],
      [],
    ]);
    chat.scope.forget("a");
    const next = chat.ask("Question 6", memories("b"));
    expect(JSON.stringify(next.messages)).not.toMatch(/Oslo|Rome|Update/);
    expect(textsIn(next.messages)).toEqual(["The user's b is known."]);
    expectPromises(next, memories("b"));
  });

  it.each(FORMS)("leaves what it replaced to be current again, as another memory's, %s", (_form, options) => {
    const chat = new Chat(new UserScope(), "chat", undefined, options);
    const towns = [
      [memory("a", "Oslo."), memory("b", "Oslo.")],
      [memory("b", "Bonn.")],
      [memory("a", "Rome.")],
      [memory("b", "Oslo.")],
    ];
    for (const [n, requested] of towns.entries()) {
      if (n === 3) chat.scope.forget("a");
      const composition = chat.ask(`Question ${n}`, requested);
      expectPromises(composition, requested);
      chat.answer(`Answer ${n}`);
      if (n === 3) expect(composition.annotations[0]).toMatch(/^Update: .*Oslo\.$/);
    }
  });
});
