import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PromptTooLongError } from "../../../src/core/compose/compose-input.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { assistant, memory, UserScope, user } from "../compose/scope-fixture.js";
import { expectPromises } from "../prompt/prompt-promises.js";
import { added, anyConversation, optionsOf } from "./any-conversation.js";

describe("a prompt that may have only so many tokens", () => {
  const limits = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 9, maxLength: 9 });

  it("has no more, but for the client's own; what it refers to stands in it, and what it leaves out is named", () => {
    const property = fc.property(anyConversation, limits, (turns, most) => {
      const scope = new UserScope();
      const history: ChatMessage[] = [];
      for (const [n, turn] of turns.entries()) {
        history.push(...added(turn, n));
        const acceptedTokens = most[n] as number;
        const composition = scope.compose(history, turn.found, { ...optionsOf(turn), acceptedTokens });
        const leftOut = composition.warnings.find(({ code }) => code === "memory_left_out")?.memoryIds ?? [];
        const { totalTokens } = composition.plan;
        if (totalTokens > acceptedTokens)
          expect(JSON.stringify(composition.messages)).not.toContain("</memories>\\n\\nQ");
        const given = turn.found.filter(({ id }) => !leftOut.includes(id));
        const texts = new Set(turn.found.filter(({ id }) => leftOut.includes(id)).map(({ text }) => text));
        // Of a memory that is listed twice with two texts one may fit.
        if (
          new Set(turn.found.map(({ id }) => id)).size === turn.found.length &&
          !given.some(({ text }) => texts.has(text))
        )
          expectPromises(composition, given);
      }
    });
    fc.assert(property, { numRuns: 250 });
  });

  it("has no more, or is none: its messages alone come to more, and the scope goes on as if nothing had been asked", () => {
    let [bounded, tooLong] = [0, 0];
    const property = fc.property(anyConversation, limits, (turns, most) => {
      const scope = new UserScope();
      const history: ChatMessage[] = [];
      for (const [n, turn] of turns.entries()) {
        history.push(...added(turn, n));
        const maxPromptTokens = most[n] as number;
        const options = optionsOf(turn);
        try {
          const { plan } = scope.compose(history, turn.found, { ...options, maxPromptTokens });
          expect(plan.totalTokens).toBeLessThanOrEqual(maxPromptTokens);
          bounded++;
        } catch (error) {
          if (!(error instanceof PromptTooLongError)) throw error;
          expect(error.maxTokens).toBe(maxPromptTokens);
          const { conversation: _, ...single } = options;
          const plain = scope.compose(history, [], single).plan.totalTokens;
          expect(error.tokens).toBe(plain);
          expect(plain).toBeGreaterThan(maxPromptTokens);
          tooLong++;
          return;
        }
      }
    });
    fc.assert(property, { numRuns: 250 });
    expect(bounded).toBeGreaterThan(0);
    expect(tooLong).toBeGreaterThan(0);
  });

  it("starts afresh once its replay does not fit, and continues from there", () => {
    const scope = new UserScope();
    const history: ChatMessage[] = [];
    const fresh: boolean[] = [];
    for (let turn = 0; turn < 12; turn++) {
      if (turn > 0) history.push(assistant("Yes."));
      history.push(user(`Q${turn}`));
      const found = [0, 1, 2].map((n) => memory(`${turn}-${n}`));
      const composition = scope.compose(history, found, { conversation: "c", maxPromptTokens: 300 });
      fresh.push(composition.plan.freshStart);
      expect(composition.plan.totalTokens).toBeLessThanOrEqual(300);
      expect(composition.warnings).toEqual([]);
      expectPromises(composition, found);
    }
    const starts = fresh.filter((isFresh) => isFresh).length;
    expect(starts).toBeGreaterThan(0);
    expect(starts).toBeLessThan(4);
  });
});
