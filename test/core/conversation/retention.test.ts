import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Composition } from "../../../src/core/compose/compose.js";
import { RETENTION_NAMES, type RetentionName } from "../../../src/core/conversation/conversation.js";
import { ENGINE_MODELS, type EngineModel } from "../../../src/core/cost/engine-model.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import {
  anyForm,
  assistant,
  Chat,
  type ComposeOptions,
  FORMS,
  LABELLED,
  memories,
  memory,
  toolExchange,
  UserScope,
  user,
} from "../compose/scope-fixture.js";
import { expectPromises, sectionsOf, textsIn } from "../prompt/prompt-promises.js";

const anyRetention = fc.constantFrom(...RETENTION_NAMES);
/** Laws under which the same conversation is best kept, and best started afresh every few turns. */
const anyEngine = fc.constantFrom<EngineModel>(
  ENGINE_MODELS.gpu,
  ENGINE_MODELS.cpu,
  { cost: { kind: "money", uncached: 1, written: 1, cached: 0.3 }, blockTokens: 1, minimumPrefixTokens: 0 },
  { cost: { kind: "money", uncached: 1, written: 1, cached: 0.9 }, blockTokens: 1, minimumPrefixTokens: 0 },
);
const anyTurn = fc.record({
  memories: fc.array(
    fc
      .tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 2 }))
      .map(([id, version]) => memory(`m${id}`, `Fact ${id} in version ${version}.`)),
    { maxLength: 8 },
  ),
  retention: anyRetention,
  isTool: fc.boolean(),
  form: anyForm,
  shareTokens: fc.option(fc.integer({ min: 60, max: 400 }), { nil: undefined }),
});
type AnyTurn = typeof anyTurn extends fc.Arbitrary<infer T> ? T : never;

function added({ isTool }: AnyTurn, n: number): ChatMessage[] {
  if (isTool) return [...(n === 0 ? [user("Look.")] : []), ...toolExchange(`Result ${n}`)];
  return n === 0 ? [user("Q0")] : [assistant(`A${n - 1}`), user(`Q${n}`)];
}

/** Messages that two prompts have in common from the front. */
function sharedMessages(a: readonly ChatMessage[], b: readonly ChatMessage[]): number {
  const differs = a.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(b[at]));
  return differs < 0 ? Math.min(a.length, b.length) : differs;
}

describe("retention", () => {
  it("keeps every promise of a prompt, whatever each turn of a conversation chooses", () => {
    const conversation = fc.property(fc.array(anyTurn, { minLength: 1, maxLength: 12 }), anyEngine, (turns, engine) => {
      const chat = new Chat(new UserScope());
      const earlier: Composition[] = [];
      for (const [n, turn] of turns.entries()) {
        const next = chat.send(added(turn, n), turn.memories, {
          ...turn.form,
          retention: turn.retention,
          shareTokens: turn.shareTokens,
          engine,
        });
        expectPromises(next, turn.memories);
        const shared = Math.max(0, ...earlier.map(({ messages }) => sharedMessages(messages, next.messages)));
        expect(next.plan.stableMessages).toBeLessThanOrEqual(shared);
        const last = earlier.at(-1);
        if (last !== undefined && last.plan.retention === "keep" && !next.plan.freshStart) {
          expect(next.plan.stableMessages).toBe(last.messages.length);
          expect(next.plan.expectedCachedTokens).toBeGreaterThanOrEqual(last.plan.totalTokens);
        }
        earlier.push(next);
      }
    });
    fc.assert(conversation, { numRuns: 150 });
  });

  it("never expects more of the cache than earlier prompts have in common with this one", () => {
    const conversation = fc.property(fc.array(anyTurn, { minLength: 2, maxLength: 10 }), anyEngine, (turns, engine) => {
      const chat = new Chat(new UserScope());
      const earlier: string[] = [];
      for (const [n, turn] of turns.entries()) {
        const { messages, plan } = chat.send(added(turn, n), turn.memories, {
          ...turn.form,
          retention: turn.retention,
          shareTokens: turn.shareTokens,
          engine,
        });
        const text = messages.map((message) => `${JSON.stringify(message)}`).join("\n");
        const shared = Math.max(0, ...earlier.map((other) => sharedCharacters(other, text)));
        // Four characters are a token here, lines are rounded up one by one, and a message adds four.
        const slack = text.split("\\n").length + 5 * messages.length + 2;
        expect(plan.expectedCachedTokens).toBeLessThanOrEqual(shared / 4 + slack);
        earlier.push(text);
      }
    });
    fc.assert(conversation, { numRuns: 150 });
  });

  it("is the same after a restart at any turn", () => {
    const conversation = fc.property(fc.array(anyTurn, { minLength: 2, maxLength: 10 }), anyEngine, (turns, engine) => {
      const [steady, restarted] = [new Chat(new UserScope()), new Chat(new UserScope())];
      for (const [n, turn] of turns.entries()) {
        restarted.scope.restart();
        const [a, b] = [steady, restarted].map((chat) =>
          chat.send(added(turn, n), turn.memories, {
            ...turn.form,
            retention: turn.retention,
            shareTokens: turn.shareTokens,
            engine,
          }),
        );
        expect(b?.messages).toEqual(a?.messages);
        expect(b?.plan).toEqual(a?.plan);
      }
    });
    fc.assert(conversation, { numRuns: 60 });
  });

  it("knows its own text when a client sends composed prompts back, whatever was kept of it", () => {
    const conversation = fc.property(fc.array(anyTurn, { minLength: 2, maxLength: 8 }), anyEngine, (turns, engine) => {
      const [plain, echoing] = [new Chat(new UserScope()), new Chat(new UserScope())];
      let sent: readonly ChatMessage[] = [];
      for (const [n, turn] of turns.entries()) {
        const options = { ...turn.form, retention: turn.retention, shareTokens: turn.shareTokens, engine };
        const messages = added(turn, n);
        const expected = plain.send(messages, turn.memories, options);
        const echoed = echoing.scope.compose(n === 0 ? plain.history : [...sent, ...messages], turn.memories, {
          conversation: "echo",
          ...options,
        });
        expect(echoed.messages).toEqual(expected.messages);
        sent = echoed.messages;
      }
    });
    fc.assert(conversation, { numRuns: 100 });
  });

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

  it("with labels never drops an update", () => {
    const chat = new Chat(new UserScope(), "chat", undefined, LABELLED);
    chat.ask("One?", [memory("home", "Lives in Rome.")]);
    chat.answer("1");
    chat.ask("Two?", [memory("home", "Lives in Oslo."), ...memories("a")], { retention: "ephemeral" });
    chat.answer("2");
    const third = chat.ask("Three?", memories("b"));
    expect(sectionsOf(third.messages)[1]).toEqual({
      blocks: [],
      updates: [{ label: 2, text: "Lives in Oslo." }],
      annotations: ["Update: [Doc_2] Lives in Oslo."],
    });
    chat.answer("3");
    chat.ask("Four?", [memory("home", "Lives in Rome.")], { retention: "ephemeral" });
    chat.answer("4");
    const fifth = chat.ask("Five?", memories("b"));
    expect(sectionsOf(fifth.messages).at(-2)?.annotations).toEqual(["Update: [Doc_1] Lives in Rome."]);
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
    const dear = {
      cost: { kind: "money", uncached: 1, written: 1, cached: 0.9 },
      blockTokens: 1,
      minimumPrefixTokens: 0,
    } as const;
    const chat = new Chat(new UserScope(), "chat", undefined, { ...options, retention: "auto", engine: dear });
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
  const DEAR_CACHE: EngineModel = {
    cost: { kind: "money", uncached: 1, written: 1, cached: 0.9 },
    blockTokens: 1,
    minimumPrefixTokens: 0,
  };

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

function sharedCharacters(a: string, b: string): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}
