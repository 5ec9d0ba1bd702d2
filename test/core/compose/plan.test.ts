import { describe, expect, it } from "vitest";
import type { Composition } from "../../../src/core/compose/compose.js";
import { SECTION_OPENING } from "../../../src/core/prompt/section.js";
import { TOKENS_PER_MESSAGE } from "../../../src/core/text/message.js";
import { Chat, countTokens, memories, system, UserScope, user } from "./scope-fixture.js";

const INSTRUCTIONS = "You are helpful.";
const headTokens = countTokens(INSTRUCTIONS) + TOKENS_PER_MESSAGE;
const tokensOf = (name: string) => countTokens(`- The user's ${name} is known.\n`);

describe("a plan", () => {
  it("expects nothing cached on a cold start, and adds up the whole prompt", () => {
    const { plan } = new Chat(new UserScope()).ask("One?", memories("a", "b"));
    const section = countTokens("<memories>\n") + countTokens("</memories>\n\n") + tokensOf("a") + tokensOf("b");
    const total = headTokens + section + countTokens("One?") + TOKENS_PER_MESSAGE;
    expect(plan).toEqual({
      layout: "conversation",
      policy: "prefix-exact",
      expectedCachedTokens: 0,
      uncachedTokens: total,
      totalTokens: total,
      miss: { cause: "first_prompt", tokens: headTokens },
      searchPath: [],
      orderChanged: false,
      stableMessages: 0,
      retention: "keep",
      freshStart: false,
    });
  });

  it("expects all of the turn before cached, and nothing of what follows it", () => {
    const chat = new Chat(new UserScope());
    const first = chat.ask("One?", memories("a", "b"));
    chat.answer("1");
    const second = chat.ask("Two?", memories("c"));
    expect(second.plan.expectedCachedTokens).toBe(first.plan.totalTokens);
  });

  it("expects no block that has a label where one has none, nor the other way: they are written in another form", () => {
    const scope = new UserScope();
    const asked = [system(INSTRUCTIONS), user("?")];
    const expected = (composition: Composition) => composition.plan.expectedCachedTokens;
    const labelled = { annotations: "paper" } as const;
    expect(expected(scope.compose(asked, memories("a", "b")))).toBe(0);
    expect(expected(new Chat(scope, "one").ask("One?", memories("a", "b"), labelled))).toBe(headTokens);
    expect(expected(scope.compose(asked, memories("d")))).toBe(headTokens);
    expect(expected(scope.compose(asked, memories("a", "d")))).toBeGreaterThan(headTokens + 5);
    expect(expected(scope.compose(asked, memories("a", "c"), labelled))).toBeGreaterThan(headTokens + 5);
    expect(expected(scope.compose(asked, [], labelled))).toBe(headTokens);
  });

  it("expects the head and the blocks cached that another conversation was served behind it", () => {
    const scope = new UserScope();
    new Chat(scope, "one").ask("One?", memories("a", "b"));
    const { plan } = new Chat(scope, "two").ask("Two?", memories("c", "a"));
    expect(plan.expectedCachedTokens).toBe(headTokens + countTokens(SECTION_OPENING) + tokensOf("a"));
    expect(plan).toMatchObject({ searchPath: [0], orderChanged: true });
    const bare = new Chat(scope, "three").ask("Three?", memories("d"));
    expect(bare.plan.expectedCachedTokens).toBe(headTokens);
  });

  it("does not take another conversation's prompt behind the same instructions for one that was evicted", () => {
    const scope = new UserScope();
    const [one, two] = [new Chat(scope, "one"), new Chat(scope, "two")];
    const evicted = one.ask("One?", memories("a", "b"));
    two.ask("Two?", memories("c", "d"));
    scope.evict(evicted.leaf);
    one.answer("1");
    const next = one.ask("And?", memories("a"));
    expect(next.plan.stableMessages).toBe(evicted.messages.length);
    expect(next.plan.expectedCachedTokens).toBeLessThanOrEqual(headTokens);
  });
});
