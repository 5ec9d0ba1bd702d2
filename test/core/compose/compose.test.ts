import { describe, expect, it } from "vitest";
import type { Annotations } from "../../../src/core/conversation/injecting.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { expectPromises, textsIn } from "../prompt/prompt-promises.js";
import { memories, memory, system, toolExchange, UserScope, user } from "./scope-fixture.js";

describe("compose, one prompt", () => {
  it("gives the memories before the question, and the instructions as they are", () => {
    const composition = new UserScope().compose(
      [system("Be brief."), user("What tea?")],
      [memory("a", "Likes tea."), memory("b", "Lives in Oslo.\nIn the centre.")],
    );
    expect(composition.messages).toEqual([
      system("Be brief."),
      user("<memories>\n- Likes tea.\n- Lives in Oslo.\n  In the centre.\n</memories>\n\nWhat tea?"),
    ]);
    expect(composition.memories).toEqual([
      { label: 1, memoryId: "a", placement: "new", rank: 0, replaces: [] },
      { label: 2, memoryId: "b", placement: "new", rank: 1, replaces: [] },
    ]);
    expect(composition).toMatchObject({ annotations: [], warnings: [], plan: { layout: "single", stableMessages: 0 } });
    expect(composition.head).toEqual([system("Be brief.")]);
    expect(composition.given).toEqual([user("What tea?")]);
    expect(composition.turn).toMatchObject({ conversationId: null, parent: null });
  });

  it("needs a message that is no instruction, and changes nothing where there is none", () => {
    const scope = new UserScope();
    for (const messages of [[], [system("Be brief.")]]) {
      expect(() => scope.compose(messages, memories("a"))).toThrow("no instruction");
    }
    expect(scope.state.register.size + scope.state.index.size + scope.state.requests).toBe(0);
  });

  it("passes fields, parts and roles that it does not know through untouched", () => {
    const image = { type: "image_url", image_url: { url: "data:,", detail: "low" } };
    const messages: ChatMessage[] = [
      { role: "developer", content: "Be brief.", name: "house" },
      ...toolExchange("42"),
      { role: "critic", content: null, verdict: { good: [1, null] } },
      { role: "user", content: [{ type: "text", text: "And this?", cache_control: { type: "ephemeral" } }, image] },
    ];
    const composition = new UserScope().compose(messages, [memory("a", "Likes tea.")]);
    expect(composition.messages.slice(0, 4)).toEqual(messages.slice(0, 4));
    const section = { type: "text", text: "<memories>\n- Likes tea.\n</memories>" };
    expect(composition.messages[4]).toEqual({
      role: "user",
      content: [section, ...((messages[4]?.content ?? []) as readonly object[])],
    });
    expectPromises(composition, [memory("a", "Likes tea.")]);
  });

  it("gives the memories after a tool's result, in a message of their own", () => {
    const messages = [user("What is it?"), ...toolExchange("42")];
    const composition = new UserScope().compose(messages, [memory("a", "Likes 42.")]);
    expect(composition.messages).toEqual([...messages, user("<memories>\n- Likes 42.\n</memories>")]);
    expect(composition.turn.placement).toBe("after-tool-result");
    expectPromises(composition, [memory("a", "Likes 42.")]);
  });
});

describe("compose, what a request lists", () => {
  it('"a request that lists the same block twice keeps one copy and says so; it never silently loses distinct blocks"', () => {
    const requested = [memory("a"), memory("b"), memory("a"), memory("c"), memory("b")];
    const composition = new UserScope().compose([user("?")], requested);
    expectPromises(composition, requested);
    expect(textsIn(composition.messages)).toHaveLength(3);
    expect(composition.warnings).toMatchObject([{ code: "duplicate_memory", memoryIds: ["a", "b"] }]);
  });

  it('"de-duplicating after ordering in the same turn must not flag the turn\'s own blocks"', () => {
    const scope = new UserScope();
    scope.compose([user("?")], memories("a", "b", "c"));
    const { messages, annotations, memories: placed } = scope.compose([user("?")], memories("d", "b", "a"));
    expect(textsIn(messages)).toHaveLength(3);
    expect(annotations).toEqual(["Most relevant: The user's d is known."]);
    expect(placed.map(({ placement }) => placement)).toEqual(["cached_prefix", "cached_prefix", "new"]);
  });
});

describe("compose, order and annotations", () => {
  const served = (annotations: Annotations = true) => {
    const scope = new UserScope();
    scope.compose([user("?")], memories("a", "b", "c"), { annotations });
    return scope;
  };

  it("reuses the served order, and gives the most relevant again where another stands first", () => {
    const { annotations, messages } = served().compose([user("?")], memories("d", "c", "b", "a"));
    expect(annotations).toEqual(["Most relevant: The user's d is known."]);
    expect(textsIn(messages)).toEqual(["a", "b", "c", "d"].map((name) => `The user's ${name} is known.`));
    expect(served().compose([user("?")], memories("a", "z", "b")).annotations).toEqual([]);
  });

  it("says nothing about the order when told not to, and still reuses it", () => {
    const { annotations, plan } = served().compose([user("?")], memories("c", "a"), { annotations: false });
    expect(annotations).toEqual([]);
    expect(plan.orderChanged).toBe(true);
  });

  it('"references name the caller\'s visible labels, never internal integers"', () => {
    const options = { annotations: "paper" } as const;
    const scope = served("paper");
    // Nodes, turns and requests count on without new labels, so that no two counters agree by chance.
    for (let n = 0; n < 5; n++) scope.compose([system(`${n}`), user("?")], memories("c", "b"), options);
    const { messages, annotations } = scope.compose([user("?")], memories("c", "z", "a"), options);
    expect(annotations[0]).toContain("order: [Doc_3] > [Doc_4] > [Doc_1] and");
    expect(messages[0]?.content).toContain("\n[Doc_4] The user's z is known.\n");
  });
});

describe("compose, deterministic and isolated", () => {
  const requests = [memories("a", "b", "c"), memories("c", "b"), memories("d", "c", "a"), memories("b", "d")];

  it("gives the same bytes for the same state and requests", () => {
    const life = () => {
      const scope = new UserScope();
      return requests.map((requested, n) =>
        scope.compose([user(`Question ${n}`)], requested, { conversation: "chat" }),
      );
    };
    expect(JSON.stringify(life())).toBe(JSON.stringify(life()));
  });

  it('"user B\'s order and blocks never depend on user A"', () => {
    const alone = new UserScope();
    const [b, a] = [new UserScope(), new UserScope()];
    for (const [n, requested] of requests.entries()) {
      a.compose([user(`Question ${n}`)], requested.toReversed(), { conversation: "chat" });
      const expected = alone.compose([user(`Question ${n}`)], requested, { conversation: "chat" });
      const actual = b.compose([user(`Question ${n}`)], requested, { conversation: "chat" });
      expect(JSON.stringify(actual)).toBe(JSON.stringify(expected));
    }
  });
});
