import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/text/message.js";
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
});
