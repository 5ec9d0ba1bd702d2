import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PromptTooLongError } from "../../../src/core/compose/compose-input.js";
import { RETENTION_NAMES } from "../../../src/core/conversation/conversation.js";
import { type ChatMessage, messageText } from "../../../src/core/text/message.js";
import {
  anyForm,
  assistant,
  type ComposeOptions,
  memory,
  toolExchange,
  UserScope,
  user,
} from "../compose/scope-fixture.js";
import { hostileText } from "../escaping/hostile-text.js";
import { expectPromises } from "../prompt/prompt-promises.js";

/** A whole section that a tool made up is the client's own text: a reader cannot tell it from ours, memprefix does. */
const notOurs = hostileText.filter((text) => !text.includes("</memories>"));

const anyTurn = fc.record({
  found: fc.array(
    fc
      .tuple(fc.integer({ min: 0, max: 7 }), fc.oneof(fc.constant("A fact."), hostileText))
      .map(([n, text]) => memory(`m${n}`, `${n} ${text}`)),
    { maxLength: 5 },
  ),
  hasTool: fc.boolean(),
  inResult: fc.boolean(),
  retention: fc.constantFrom(...RETENTION_NAMES),
  form: anyForm,
  result: fc.oneof(fc.constantFrom("", "22 °C", "<memories>\n[1] x"), notOurs),
});
type AnyTurn = typeof anyTurn extends fc.Arbitrary<infer T> ? T : never;
const anyConversation = fc.array(anyTurn, { minLength: 1, maxLength: 8 });

function added({ hasTool, result }: AnyTurn, n: number): ChatMessage[] {
  if (hasTool) return [...(n === 0 ? [user("Look.")] : []), ...toolExchange(result)];
  return n === 0 ? [user("Q: 0")] : [assistant(`Answer ${n}`), user(`Q: ${n}`)];
}

const optionsOf = ({ inResult, retention, form }: AnyTurn): ComposeOptions => ({
  ...form,
  conversation: "c",
  retention,
  inResult,
});

describe("memories behind tool results, in either place", () => {
  it("keep every promise of a prompt, and no user message follows a result where none may", () => {
    const property = fc.property(anyConversation, (turns) => {
      const scope = new UserScope();
      const history: ChatMessage[] = [];
      for (const [n, turn] of turns.entries()) {
        history.push(...added(turn, n));
        const composition = scope.compose(history, turn.found, optionsOf(turn));
        expectPromises(composition, turn.found);
        const { messages } = composition;
        const behindResults = messages.filter(({ role }, at) => role === "user" && messages[at - 1]?.role === "tool");
        if (turn.inResult) expect(behindResults).toEqual([]);
        // A result is parsed from its start.
        const results = messages.filter(({ role }) => role === "tool").map(messageText);
        const plain = history.filter(({ role }) => role === "tool").map(messageText);
        expect(results).toHaveLength(plain.length);
        for (const [at, text] of plain.entries()) expect(results[at]?.startsWith(text)).toBe(true);
      }
    });
    fc.assert(property, { numRuns: 250 });
  });

  it("are the same after a restart, and are known when the prompt comes back", () => {
    const property = fc.property(anyConversation, (turns) => {
      const [steady, restarted, echoed] = [new UserScope(), new UserScope(), new UserScope()];
      const history: ChatMessage[] = [];
      let back: ChatMessage[] = [];
      for (const [n, turn] of turns.entries()) {
        const more = added(turn, n);
        history.push(...more);
        const composition = steady.compose(history, turn.found, optionsOf(turn));
        restarted.restart();
        const again = restarted.compose(history, turn.found, optionsOf(turn));
        expect(again.messages).toEqual(composition.messages);
        expect(again.plan).toEqual(composition.plan);
        const echo = echoed.compose([...back, ...more], turn.found, optionsOf(turn));
        expect(echo.messages).toEqual(composition.messages);
        back = [...echo.messages];
      }
    });
    fc.assert(property, { numRuns: 150 });
  });
});

describe("a prompt that may have only so many tokens", () => {
  it("has no more, but for the client's own; what it refers to stands in it, and what it leaves out is named", () => {
    const limits = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 8, maxLength: 8 });
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
    const limits = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 8, maxLength: 8 });
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
