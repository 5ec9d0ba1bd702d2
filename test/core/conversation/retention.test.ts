import { describe, expect, it } from "vitest";
import type { Composition } from "../../../src/core/compose/compose.js";
import type { RetentionName } from "../../../src/core/conversation/conversation.js";
import { ENGINE_MODELS, type EngineModel } from "../../../src/core/cost/engine-model.js";
import { Chat, type ComposeOptions, FORMS, memories, memory, UserScope } from "../compose/scope-fixture.js";
import { expectPromises, sectionsOf, textsIn } from "../prompt/prompt-promises.js";
import { DEAR_CACHE, sharedMessages } from "./any-conversation.js";

describe("retention", () => {
  describe("of one turn", () => {
    function askedAfter(retention: RetentionName, options: ComposeOptions = {}, wanted = "c") {
      const chat = new Chat(new UserScope(), "chat", undefined, options);
      chat.ask("One?", memories("a", "b"), { retention: "keep" });
      chat.answer("1");
      chat.ask("Two?", memories("a", "c"), { retention });
      chat.answer("2");
      return { chat, third: chat.ask("Three?", memories(wanted), { retention: "keep" }) };
    }

    const POINTING = [
      [...FORMS[0], "b", "Most relevant: The user's a is known.", "Most relevant: The user's b is known."],
      [
        ...FORMS[1],
        "c",
        "Please refer to [Doc_1] in the previous conversation.",
        "Please refer to [Doc_3] in the previous conversation.",
      ],
    ] as const;

    it.each(POINTING)(
      "volatile: blocks stay, what pointed at them goes, %s",
      (_form, options, wanted, _before, last) => {
        const { third } = askedAfter("volatile", options, wanted);
        expect(sectionsOf(third.messages).map(({ blocks, annotations }) => [blocks.length, annotations])).toEqual([
          [2, []],
          [1, []],
          [0, [last]],
        ]);
      },
    );

    it("ephemeral: nothing stays, and what is wanted again is given again", () => {
      const { third } = askedAfter("ephemeral");
      expect(third.messages.map(({ content }) => content)).toContain("Two?");
      expect(textsIn(third.messages)).toEqual([
        "The user's a is known.",
        "The user's b is known.",
        "The user's c is known.",
      ]);
      expect(third.memories).toMatchObject([{ placement: "new" }]);
    });
  });

  it.each(["volatile", "ephemeral"] as const)("%s: updates stay", (retention) => {
    const chat = new Chat(new UserScope());
    const ask = (n: number, requested: readonly ReturnType<typeof memory>[], options: ComposeOptions = {}) => {
      const composition = chat.ask(`Question ${n}`, requested, { retention, ...options });
      expectPromises(composition, requested);
      chat.answer(`Answer ${n}`);
      return composition;
    };
    const [rome, oslo] = [memory("home", "Lives in Rome."), memory("home", "Lives in Oslo.")];
    ask(0, [rome, ...memories("a")], { retention: "keep" });
    ask(1, [...memories("b"), oslo]);
    ask(2, [...memories("a"), rome]);
    const last = ask(3, memories("b"));
    expect(sectionsOf(last.messages).slice(1, 3)).toEqual([
      {
        blocks: retention === "volatile" ? [{ label: null, text: "The user's b is known." }] : [],
        updates: [{ label: null, text: "Lives in Oslo." }],
        annotations: ["Update: Lives in Oslo."],
      },
      { blocks: [], updates: [{ label: null, text: "Lives in Rome." }], annotations: ["Update: Lives in Rome."] },
    ]);
  });

  it.each(FORMS)("a fresh start leaves no line of the turns before it, %s", (_form, options) => {
    const chat = new Chat(new UserScope(), "chat", undefined, { ...options, retention: "auto", engine: DEAR_CACHE });
    let started = 0;
    for (let n = 0; n < 12; n++) {
      const home = memory("home", `Lives in ${["Oslo", "Rome"][n % 2]}.`);
      const requested = [...memories(...[0, 1, 2, 3, 4, 5].map((at) => `m${(4 * n + at) % 31}`)), home];
      const composition = chat.ask(`Question ${n}`, requested);
      expectPromises(composition, requested);
      if (composition.plan.freshStart && n > 0) {
        started++;
        expect(JSON.stringify(composition.messages)).not.toContain("Update: ");
      }
      chat.answer(`Answer ${n}`);
    }
    expect(started).toBeGreaterThan(0);
  });
});

describe("auto retention", () => {
  function play(engine: EngineModel, turns: number): Composition[] {
    const chat = new Chat(new UserScope());
    return Array.from({ length: turns }, (_, n) => {
      const wanted = memories(...Array.from({ length: 10 }, (_block, at) => `m${(7 * n + at) % 97}`));
      const composition = chat.ask(`Question ${n}?`, wanted, { retention: "auto", engine });
      chat.answer("Yes.");
      return composition;
    });
  }

  it("starts afresh where cached tokens cost nearly what computed ones do, and gives again what is wanted", () => {
    const composed = play(DEAR_CACHE, 30);
    const started = composed.filter(({ plan }) => plan.freshStart);
    expect(started.length).toBeGreaterThan(10);
    for (const { messages } of started) expect(textsIn(messages)).toHaveLength(10);
  });

  it("gives memories in the newest message only, where the answer's tokens make what stands dear", () => {
    const dearAnswers: EngineModel = {
      cost: { kind: "time", fixedMs: 0, perTokenMs: 0.1, perPairMs: 0 },
      blockTokens: 1,
      minimumPrefixTokens: 1,
      perHeldTokenMs: 10,
    };
    const composed = play(dearAnswers, 30);
    for (const { messages } of composed) expect(textsIn(messages)).toHaveLength(10);
  });

  it("keeps its first memories where the prompt outgrows its share of the cache, as long as that computes less", () => {
    const chat = new Chat(new UserScope());
    const share = 700;
    let newest: Composition | null = null;
    let kept = 0;
    for (let n = 0; n < 25; n++) {
      // Of the first turn's memories most come back every time, the others are new.
      const wanted = memories(...Array.from({ length: 12 }, (_, at) => (at < 10 ? `first ${at}` : `m${7 * n + at}`)));
      const next = chat.ask(`Question ${n}?`, wanted, {
        retention: "auto",
        engine: ENGINE_MODELS.gpu,
        shareTokens: share,
      });
      expectPromises(next, wanted);
      expect(next.plan.totalTokens).toBeLessThanOrEqual(share + 50);
      if (newest !== null && next.plan.freshStart) {
        const shared = sharedMessages(newest.messages, next.messages);
        expect(next.plan.stableMessages).toBe(shared);
        if (textsIn(next.messages.slice(0, shared)).length > 0) kept++;
        expect(textsIn(next.messages).length).toBeLessThan(textsIn(newest.messages).length);
      }
      chat.answer("Yes.");
      chat.scope.restart();
      newest = next;
    }
    expect(kept).toBeGreaterThan(1);
  });
});
