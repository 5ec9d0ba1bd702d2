import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ChatMessage, messageText } from "../../../src/core/text/message.js";
import { anyForm, memory, UserScope } from "../compose/scope-fixture.js";
import { anySpelling, type Meaning, type Spelling, said } from "../escaping/spellings.js";
import { expectPromises } from "../prompt/prompt-promises.js";

const anyTurn = fc.record({
  found: fc.array(
    fc.integer({ min: 0, max: 9 }).map((n) => memory(`m${n}`)),
    { maxLength: 5 },
  ),
  hasTool: fc.boolean(),
  /** How the client writes its history when it asks this. */
  history: anySpelling,
  isSteady: fc.boolean(),
});
type AnyTurn = typeof anyTurn extends fc.Arbitrary<infer T> ? T : never;
const anyConversation = fc.array(anyTurn, { minLength: 2, maxLength: 8 });

/** What a turn adds to the conversation: the answer before it, then what it asks. */
function meant({ hasTool }: AnyTurn, n: number): Meaning[] {
  const question = { kind: "text", role: "user", text: `Question ${n}`, name: null } as const;
  if (n === 0) return [question];
  if (!hasTool) return [{ kind: "text", role: "assistant", text: `Answer ${n}`, name: null }, question];
  return [
    { kind: "calls", text: "", calls: [{ id: "c1", value: { n } }] },
    { kind: "result", id: "c1", text: `Result ${n}` },
  ];
}

/** Plays a conversation whose client writes all of its history in another way now and then. */
function play(turns: readonly AnyTurn[], see: (scope: UserScope, history: ChatMessage[], turn: AnyTurn) => void): void {
  const scope = new UserScope();
  const history: Meaning[] = [];
  let spelling: Spelling | null = null;
  for (const [n, turn] of turns.entries()) {
    history.push(...meant(turn, n));
    if (!turn.isSteady || spelling === null) spelling = turn.history;
    const own = spelling;
    see(
      scope,
      history.map((meaning) => said(meaning, own)),
      turn,
    );
  }
}

function asTemplated(message: ChatMessage): string {
  const { content: _content, ...more } = message;
  return `${messageText(message)}\n${JSON.stringify(more)}`;
}

const sharedCharacters = (a: string, b: string) => {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
};

describe("a conversation whose client writes its history differently", () => {
  it("keeps every promise, gives nothing twice, and has the messages as they were sent now", () => {
    const property = fc.property(anyConversation, anyForm, (turns, form) => {
      const given = new Set<string>();
      play(turns, (scope, history, { found }) => {
        const composition = scope.compose(history, found, { conversation: "c", ...form });
        expectPromises(composition, found);
        for (const { placement, memoryId } of composition.memories) {
          if (placement !== "earlier_turn") expect(given).not.toContain(memoryId);
          given.add(memoryId);
        }
        expect(composition.warnings.map(({ code }) => code)).not.toContain("history_diverged");
        for (const message of history) {
          const last = Array.isArray(message.content) ? message.content.at(-1) : message.content;
          const isThere = composition.messages.some(({ role, content }) => {
            if (role !== message.role) return false;
            if (Array.isArray(content)) return JSON.stringify(content.at(-1)) === JSON.stringify(last);
            return content === last || (typeof content === "string" && content.endsWith(`\n\n${String(last)}`));
          });
          expect(isThere).toBe(true);
        }
      });
    });
    fc.assert(property, { numRuns: 200 });
  });

  it("never expects more of the cache than earlier prompts have in common with this one", () => {
    const property = fc.property(anyConversation, (turns) => {
      const earlier: (readonly ChatMessage[])[] = [];
      const texts: string[] = [];
      play(turns, (scope, history, { found }) => {
        const { messages, plan } = scope.compose(history, found, { conversation: "c" });
        // As templates have it: whether a text stands in a part makes no token.
        const text = messages.map(asTemplated).join("\n");
        const shared = Math.max(0, ...texts.map((other) => sharedCharacters(other, text)));
        const slack = text.split("\n").length + 5 * messages.length + 2;
        expect(plan.expectedCachedTokens).toBeLessThanOrEqual(shared / 4 + slack);
        const stable = JSON.stringify(messages.slice(0, plan.stableMessages));
        if (plan.stableMessages > 0)
          expect(earlier.some((other) => JSON.stringify(other.slice(0, plan.stableMessages)) === stable)).toBe(true);
        earlier.push(messages);
        texts.push(text);
      });
    });
    fc.assert(property, { numRuns: 200 });
  });

  it("is the same after a restart at any turn", () => {
    const property = fc.property(anyConversation, (turns) => {
      const steady: unknown[] = [];
      play(turns, (scope, history, { found }) => {
        const { messages, plan } = scope.compose(history, found, { conversation: "c" });
        steady.push({ messages, plan });
      });
      const restarted: unknown[] = [];
      play(turns, (scope, history, { found }) => {
        scope.restart();
        const { messages, plan } = scope.compose(history, found, { conversation: "c" });
        restarted.push({ messages, plan });
      });
      expect(restarted).toEqual(steady);
    });
    fc.assert(property, { numRuns: 100 });
  });

  it("says a turn again once for each way it is written, however often", () => {
    const scope = new UserScope();
    const one: Spelling = {
      ...{ asPart: false, nulls: false, padding: "", crlf: false },
      ...{ thought: false, marked: false, spacedJson: false, sortedJson: false },
    };
    const other = { ...one, asPart: true };
    const text = (role: "user" | "assistant", text: string): Meaning => ({ kind: "text", role, text, name: null });
    const history = [
      text("user", "Q0"),
      text("assistant", "A0"),
      text("user", "Q1"),
      text("assistant", "A1"),
      text("user", "Q2"),
    ];
    const restated: number[] = [];
    for (const [n, spelling] of [one, other, one, other, one, other].entries()) {
      const upTo = n === 0 ? 1 : n === 1 ? 3 : 5;
      const composition = scope.compose(
        history.slice(0, upTo).map((meaning) => said(meaning, spelling)),
        [memory("a")],
        { conversation: "c" },
      );
      restated.push(composition.restated.length);
      expect(composition.memories[0]?.placement).toBe(n === 0 ? "new" : "earlier_turn");
    }
    expect(restated).toEqual([0, 1, 1, 0, 0, 0]);
  });
});
