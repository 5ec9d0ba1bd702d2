import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Chat, memory, UserScope } from "./scope-fixture.js";

describe("a scope that is loaded again from what was stored", () => {
  it("goes on byte for byte as if it had never stopped, at whatever request", () => {
    const anyStep = fc.record({
      chat: fc.nat(1),
      restart: fc.boolean(),
      forget: fc.option(fc.nat(9), { freq: 5 }),
      evict: fc.boolean(),
      memories: fc.array(fc.tuple(fc.nat(9), fc.nat(7)), { maxLength: 6 }),
    });
    const life = fc.property(fc.array(anyStep, { maxLength: 14 }), (steps) => {
      const [kept, restarted] = [new UserScope(), new UserScope()];
      const chats = [kept, restarted].map((scope) => [new Chat(scope, "one"), new Chat(scope, "two")]);
      for (const [n, step] of steps.entries()) {
        if (step.restart) restarted.restart();
        const requested = step.memories.map(([id, fact]) => memory(`m${id}`, `Fact ${fact}.`));
        const outcomes = chats.map((pair) => {
          const chat = pair[step.chat];
          if (step.forget !== null) chat?.scope.forget(`m${step.forget}`);
          const composition = chat?.ask(`Question ${n}`, requested);
          chat?.answer(`Answer ${n}`);
          if (step.evict && composition !== undefined) chat?.scope.evict(composition.leaf);
          return JSON.stringify(composition);
        });
        expect(outcomes[1]).toBe(outcomes[0]);
      }
    });
    fc.assert(life, { numRuns: 300 });
  });
});
