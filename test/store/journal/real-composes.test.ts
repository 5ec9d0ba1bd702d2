import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type Composition, digestOf, EMPTY_SCOPE, ORDERING_POLICIES, ScopeFolding } from "../../../src/core/index.js";
import { DigestSeal } from "../../../src/store/database/digest-seal.js";
import { SaidCodec } from "../../../src/store/journal/said-codec.js";
import { ScopeCodec } from "../../../src/store/journal/scope-codec.js";
import { assistant, Chat, memories, memory, toolExchange, UserScope, user } from "../../core/compose/scope-fixture.js";
import { readRows } from "./any-rows.js";

const KEY = randomBytes(32);
const seal = new DigestSeal(() => KEY);
const [scopes, saids] = [new ScopeCodec(seal), new SaidCodec(seal)];

/** A user's composes of every kind: single prompts, tools, memories that change, a history that comes back in another form. */
function lifeOf(scope: UserScope): Composition[] {
  const chat = new Chat(scope);
  const composed = [chat.ask("What do I like?", memories("tea", "jazz"))];
  chat.answer("Tea and jazz.");
  composed.push(chat.send([user("Look it up."), ...toolExchange("Jasmine.")], memories("jazz", "sea", "tea")));
  chat.answer("Jasmine tea.");
  composed.push(chat.ask("And now?", [memory("tea", "The user likes coffee now."), ...memories("sea", "jazz")]));
  // The same meaning in other bytes: the turns before are restated.
  chat.history[2] = { ...assistant("Tea and jazz."), refusal: null };
  composed.push(chat.send([assistant("Coffee."), user("Why?")], memories("sea"), { memoryBudgetRatio: 1.5 }));
  for (const policy of Object.values(ORDERING_POLICIES))
    composed.push(scope.compose([user(`By ${policy.name}?`)], memories("sea", "tea", "sun"), { policy }));
  scope.forget("jazz");
  composed.push(chat.ask("Still?", memories("sun", "tea")));
  scope.evict((composed[1] as Composition).leaf);
  return composed;
}

describe("what real composes change and say", () => {
  it("is read as it was written, restated turns included", () => {
    const composed = lifeOf(new UserScope());
    expect(composed.some(({ restated }) => restated.length > 0)).toBe(true);
    for (const composition of composed) {
      const { memories, plan, warnings, headTokens, restated, sections } = composition;
      const record = {
        turns: [...restated, composition].map(({ turn, given }) => ({ turn, given })),
        sections,
        request: {
          body: digestOf("body"),
          answer: { memories, plan, warnings, grounds: { settledAt: 1_700_000_000_000, headTokens } },
        },
      };
      expect(saids.decodeComposed(saids.encodeComposed(record))).toEqual(record);
    }
  });

  it("is folded, change by change or from a snapshot in between, to the state itself", () => {
    const scope = new UserScope();
    lifeOf(scope);
    const changes = scope.stored.map((change) => scopes.encodeChanges(change));
    const whole = foldedFrom(EMPTY_SCOPE, changes);
    for (let split = 0; split <= changes.length; split++) {
      const snapshot = scopes.encodeState(foldedFrom(EMPTY_SCOPE, changes.slice(0, split)));
      const loaded = foldedFrom(scopes.decodeState(snapshot), changes.slice(split));
      expect(readRows(loaded)).toEqual(readRows(whole));
    }
    scope.restart(whole);
    const state = scope.state.stored();
    expect(readRows(scopes.decodeState(scopes.encodeState(state)))).toEqual(readRows(state));
  });
});

function foldedFrom(before: typeof EMPTY_SCOPE, changes: readonly string[]) {
  const folding = new ScopeFolding(before);
  for (const change of changes) folding.take(scopes.decodeChanges(change));
  return folding.stored();
}
