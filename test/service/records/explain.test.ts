import { describe, expect, it } from "vitest";
import {
  ENGINE_MODELS,
  type Explanation,
  explanationText,
  type RequestId,
  residencyModel,
} from "../../../src/core/index.js";
import { NotFoundError } from "../../../src/service/base/errors.js";
import type { ComposeOptions } from "../../../src/service/fields/call-options.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { ana, composeWith, memories, NOON, openService, type ServiceOptions } from "../compose/service-fixture.js";

const tea = { tea: "Ana drinks green tea in the morning." };
const bike = { bike: "Ana rides a bicycle to work." };
const dog = { dog: "Ana has a dog whose name is Bo." };

/** A service and a person who asks it. */
class Asking {
  readonly service: Memprefix;
  now = NOON;
  history: { role: string; content: string }[] = [];

  constructor(options: ServiceOptions = {}) {
    this.service = openService({ now: () => this.now, ...options });
  }

  /** A single prompt. */
  async single(requestId: string, known: Readonly<Record<string, string>>, options: Partial<ComposeOptions> = {}) {
    await composeWith(this.service, {
      userId: "ana",
      requestId,
      query: "What now?",
      memories: memories(known),
      policy: "retrieval",
      ...options,
    });
    return this;
  }

  /** The next turn of a conversation, answered. */
  async turn(requestId: string, known: Readonly<Record<string, string>>, options: Partial<ComposeOptions> = {}) {
    const question = { role: "user", content: `Question ${requestId}` };
    await composeWith(this.service, {
      userId: "ana",
      conversationId: "talk",
      requestId,
      messages: [...this.history, question],
      memories: memories(known),
      system: "Be kind.",
      ...options,
    });
    this.history.push(question, { role: "assistant", content: `Answer ${requestId}` });
    return this;
  }

  async explain(requestId: string): Promise<Explanation> {
    return (await this.service.explain(ana, null, requestId as RequestId)).explanation;
  }

  async feedback(requestId: string, cachedTokens: number, promptTokens?: number) {
    const observation = { cachedTokens, ...(promptTokens === undefined ? {} : { promptTokens }) };
    await this.service.feedback(ana, null, requestId as RequestId, observation);
  }
}

describe("what changed", () => {
  it("is nothing for a first prompt", async () => {
    const asking = await new Asking().single("r1", tea);
    const { cause, nearest, difference, compared, comparedAll, tokens } = await asking.explain("r1");
    expect({ cause, nearest, difference, compared, comparedAll }).toEqual({
      cause: { kind: "first_prompt" },
      nearest: null,
      difference: null,
      compared: 0,
      comparedAll: true,
    });
    expect(tokens).toMatchObject({ shared: 0, expected: 0, reported: null });
  });

  it("is the order where both prompts have both blocks", async () => {
    const asking = await new Asking().single("r1", { ...tea, ...bike, ...dog });
    await asking.single("r2", { ...tea, ...dog, ...bike });
    const { cause, difference, behind, nearest } = await asking.explain("r2");
    expect(cause).toEqual({ kind: "changed_order", here: 3, there: 2 });
    expect(difference).toMatchObject({ message: 0, block: 1, here: { label: 3 }, there: { label: 2 } });
    expect(nearest).toMatchObject({ requestId: "r1", conversation: "none", evicted: false });
    expect(behind.tokens).toBeGreaterThan(15);
    expect(behind.price.amount).toBeGreaterThan(0);
  });

  it("is a new memory that stands before one that comes later", async () => {
    const asking = await new Asking().single("r1", { ...tea, ...bike });
    await asking.single("r2", { ...tea, ...dog, ...bike });
    expect(await asking.explain("r2")).toMatchObject({
      cause: { kind: "new_memories", label: 3, instead: 2, insteadMoved: true },
      difference: { message: 0, block: 1, here: { kind: "block", label: 3 }, there: { kind: "block", label: 2 } },
    });
  });

  it("is a new memory in place of one that was not retrieved, or behind all others", async () => {
    const asking = await new Asking().single("r1", { ...tea, ...bike });
    await asking.single("r2", { ...tea, ...dog });
    await asking.single("r3", { ...tea, ...bike, ...dog });
    expect((await asking.explain("r2")).cause).toEqual({
      kind: "new_memories",
      label: 3,
      instead: 2,
      insteadMoved: false,
    });
    expect(await asking.explain("r3")).toMatchObject({
      cause: { kind: "new_memories", label: 3, instead: null },
      nearest: { requestId: "r1" },
      difference: { block: 2, there: { kind: "closing" } },
    });
  });

  it("is a memory that was not retrieved this time", async () => {
    const asking = await new Asking().single("r1", { ...tea, ...bike, ...dog });
    await asking.single("r2", { ...tea, ...dog });
    await asking.single("r3", tea);
    expect((await asking.explain("r2")).cause).toEqual({ kind: "missing_memory", label: 2, instead: 3 });
    expect((await asking.explain("r3")).cause).toEqual({ kind: "missing_memory", label: 3, instead: null });
    expect((await asking.explain("r3")).nearest?.requestId).toBe("r2");
  });

  it("is an updated text", async () => {
    const asking = await new Asking().single("r1", { ...tea, ...bike });
    await asking.single("r2", { tea: "Ana drinks black tea now.", ...bike });
    expect(await asking.explain("r2")).toMatchObject({
      cause: { kind: "updated_text", was: 1, is: 3 },
      difference: { message: 0, block: 0, here: { label: 3 }, there: { label: 1 } },
    });
  });

  it("is the line behind the memories", async () => {
    const asking = await new Asking().single("r1", { ...tea, ...bike }, { policy: "sorted" });
    await asking.single("r2", { ...bike, ...tea }, { policy: "sorted" });
    expect(await asking.explain("r2")).toMatchObject({
      cause: { kind: "other_annotations" },
      difference: { block: null, here: { kind: "annotation" }, there: { kind: "closing" } },
    });
  });

  it("is only the question, and then the memories before it should have hit", async () => {
    const asking = await new Asking().single("r1", tea);
    await asking.single("r2", tea, { query: "What else?" });
    const { cause, tokens, index } = await asking.explain("r2");
    expect(cause).toEqual({ kind: "other_question" });
    expect(index).toEqual({ kind: "expected" });
    expect(tokens.shared).toBeGreaterThanOrEqual(tokens.expected);
  });

  it("is nothing for a prompt that stands in an earlier one", async () => {
    const asking = await new Asking().single("r1", tea);
    await asking.single("r2", tea);
    const { cause, tokens, difference } = await asking.explain("r2");
    expect(cause).toEqual({ kind: "repeated" });
    expect(tokens.shared).toBe(tokens.total);
    expect(difference).toMatchObject({ here: null, there: null });
  });

  it("is the instructions, and where in them", async () => {
    const asking = await new Asking().turn("t1", tea, { system: "You are kind. Today is Monday." });
    await asking.turn("t2", tea, { system: "You are kind. Today is Tuesday." });
    const { cause, difference, tokens, behind } = await asking.explain("t2");
    expect(cause).toEqual({ kind: "changed_instructions" });
    expect(difference).toMatchObject({ message: 0, here: { kind: "instructions", role: "system" } });
    expect(difference?.token).toBe(Math.ceil("You are kind. Today is ".length / 4) - 1);
    expect(tokens.shared).toBe(difference?.token);
    expect(behind.tokens).toBeGreaterThan(20);
  });

  it("is nothing in a conversation that only grows", async () => {
    const asking = await new Asking().turn("t1", tea);
    await asking.turn("t2", bike);
    const { cause, difference, nearest, tokens, index } = await asking.explain("t2");
    expect(cause).toEqual({ kind: "appended" });
    expect(difference).toMatchObject({ message: 2, here: { kind: "message", role: "assistant" }, there: null });
    expect(nearest).toMatchObject({ requestId: "t1", conversation: "same", totalTokens: tokens.shared });
    expect(tokens.expected).toBe(tokens.shared);
    expect(index).toEqual({ kind: "expected" });
  });

  it("is an answer that was edited, or a history that was cut", async () => {
    const edited = await new Asking().turn("t1", tea);
    await edited.turn("t2", bike);
    edited.history[1] = { role: "assistant", content: "Answer t1, better put" };
    await edited.turn("t3", dog);
    expect(await edited.explain("t3")).toMatchObject({
      cause: { kind: "rewritten_history" },
      difference: { message: 2, here: { kind: "message", role: "assistant" }, there: { kind: "message" } },
      nearest: { requestId: "t2", conversation: "same" },
    });
    const cut = await new Asking().turn("t1", tea);
    await cut.turn("t2", bike);
    cut.history.splice(0, 2);
    await cut.turn("t3", dog);
    expect(await cut.explain("t3")).toMatchObject({ cause: { kind: "appended" } });
  });

  it("is a history that was cut, where the prompt has exactly what is left", async () => {
    const cut = await new Asking().turn("t1", tea);
    await cut.turn("t2", bike);
    cut.history.splice(0, 2);
    await cut.turn("t3", dog, { history: "exact" });
    const explanation = await cut.explain("t3");
    expect(explanation.cause).toEqual({ kind: "new_epoch", reason: "window" });
    expect(explanationText(explanation).join(" ")).toContain("A new epoch began because the client cut its history");
  });

  it("is a question that was edited after more turns", async () => {
    const asking = await new Asking().turn("t1", tea);
    await asking.turn("t2", bike);
    await asking.turn("t3", dog);
    asking.history[2] = { role: "user", content: "Question t2, better put" };
    await asking.turn("t4", bike);
    expect(await asking.explain("t4")).toMatchObject({
      cause: { kind: "rewritten_history" },
      difference: { message: 3, here: { kind: "message", role: "user" }, there: { kind: "opening" } },
      nearest: { conversation: "same" },
    });
  });

  it("is another conversation's history", async () => {
    const asking = await new Asking().turn("t1", {});
    asking.history.length = 0;
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: "Yes?" },
      { role: "user", content: "Well" },
    ];
    await asking.turn("u1", {}, { conversationId: "other", messages });
    expect(await asking.explain("u1")).toMatchObject({
      cause: { kind: "other_history" },
      nearest: { conversation: "other" },
      difference: { message: 1 },
    });
  });

  it.each([
    ["volatile", "annotations"],
    ["ephemeral", "memories"],
  ] as const)("is what retention %s took away", async (retention, what) => {
    const asking = await new Asking().turn("t1", { ...bike, ...tea }, { retention, policy: "retrieval" });
    await asking.turn("t2", { ...tea, ...dog, ...bike }, { retention, policy: "sorted" });
    await asking.turn("t3", { ...dog, ...tea }, { retention });
    const { cause, difference } = await asking.explain("t3");
    expect(cause).toEqual({ kind: "retention", retention, what });
    expect(difference?.message).toBe(3);
  });

  it("is a fresh start, and going back to before one", async () => {
    const dear = {
      cost: { kind: "money", uncached: 1, written: 1, cached: 0.9 },
      blockTokens: 1,
      minimumPrefixTokens: 0,
    } as const;
    const asking = new Asking({ engine: dear });
    const facts = (n: number) =>
      Object.fromEntries(
        Array.from({ length: 8 }, (_, at) => [`m${4 * n + at}`, `Fact number ${4 * n + at} about Ana`]),
      );
    let n = 0;
    for (; n < 12; n++) {
      await asking.turn(`t${n}`, facts(n), { retention: "auto" });
      if ((await asking.explain(`t${n}`)).cause.kind === "fresh_start") break;
    }
    expect(await asking.explain(`t${n}`)).toMatchObject({
      cause: { kind: "fresh_start", where: "here" },
      difference: { message: 1, here: { kind: "message", role: "user" }, there: { kind: "opening" } },
      nearest: { conversation: "same" },
    });
    expect((await asking.explain(`t${n}`)).behind.tokens).toBeGreaterThan(0);
    // Under other instructions the prompt that started afresh is the only one to begin like what goes back to before it.
    await asking.turn("brief", facts(n + 1), { system: "Be brief.", retention: "keep" });
    asking.history.splice(-4);
    await asking.turn("back", dog, { system: "Be brief.", retention: "keep" });
    expect(await asking.explain("back")).toMatchObject({
      cause: { kind: "fresh_start", where: "there" },
      difference: { message: 1, here: { kind: "opening" }, there: { kind: "message", role: "user" } },
      nearest: { requestId: "brief" },
    });
  });

  it("is a memory that was forgotten", async () => {
    const asking = await new Asking().turn("t1", { ...tea, ...bike });
    await asking.service.forgetMemory(ana, "bike" as never);
    await asking.turn("t2", dog, { retention: "keep" });
    const { cause, difference, tokens } = await asking.explain("t2");
    expect(cause).toEqual({ kind: "forgotten_memory" });
    expect(difference).toMatchObject({ message: 1, here: { kind: "closing" }, there: { kind: "erased" } });
    expect(tokens.shared).toBe(tokens.expected);
  });
});

describe("what should have been there", () => {
  it("had left with an eviction that the engine named", async () => {
    const asking = await new Asking().single("r1", { ...tea, ...bike });
    await asking.service.evict(["r1" as RequestId]);
    await asking.single("r2", { ...tea, ...bike });
    const { index, nearest, tokens, lost } = await asking.explain("r2");
    expect(nearest).toMatchObject({ requestId: "r1", evicted: true });
    expect(index).toMatchObject({ kind: "left", because: { kind: "evicted" } });
    expect(tokens.expected).toBe(0);
    expect(lost.tokens).toBeGreaterThan(0);
    expect(lost.price).toMatchObject({ unit: "ms" });
  });

  it("had left with its TTL", async () => {
    const asking = await new Asking({ residency: residencyModel({ kind: "ttl", ttlMs: 60_000 }) }).turn("t1", tea);
    asking.now += 59_000;
    await asking.turn("t2", bike);
    expect((await asking.explain("t2")).index).toEqual({ kind: "expected" });
    asking.now += 60_000;
    await asking.turn("t3", dog, { retention: "keep" });
    expect(await asking.explain("t3")).toMatchObject({
      cause: { kind: "appended" },
      index: { kind: "left", because: { kind: "expired", ttlMs: 60_000 } },
      nearest: { ageMs: 60_000 },
    });
  });

  it("had left with what the configured capacity holds", async () => {
    const residency = residencyModel({ kind: "capacity", tokens: 20 });
    const asking = await new Asking({ residency }).single("r1", { ...tea, ...bike });
    await asking.single("r2", dog);
    await asking.single("r3", { ...tea, ...bike });
    expect((await asking.explain("r3")).index).toMatchObject({
      kind: "left",
      because: { kind: "displaced", tokens: 20 },
    });
  });

  it("had left with a report of a request in between", async () => {
    const asking = new Asking();
    const long = { tea: `Ana drinks tea ${"every day ".repeat(100)}` };
    await asking.single("r1", { ...long, ...bike });
    asking.now += 60_000;
    await asking.single("r2", { ...long, ...dog });
    await asking.feedback("r2", 0);
    asking.now += 60_000;
    await asking.single("r3", { ...long, ...bike });
    const { index, nearest } = await asking.explain("r3");
    expect(nearest?.requestId).toBe("r1");
    expect(index).toMatchObject({ kind: "left", because: { kind: "reported", requestId: "r2" } });
  });
});

describe("what the engine had", () => {
  const long = { tea: `Ana drinks tea ${"every day ".repeat(100)}` };
  async function reported(cached: (expected: number) => number, later = 60_000, evict = false) {
    const asking = await new Asking().single("r1", long);
    asking.now += later;
    await asking.single("r2", { ...long, ...dog });
    const { expected } = (await asking.explain("r2")).tokens;
    if (evict) await asking.service.evict(["r1" as RequestId]);
    await asking.feedback("r2", cached(expected), (await asking.explain("r2")).tokens.total);
    return { ...(await asking.explain("r2")), expected };
  }

  it("is unknown until it reports", async () => {
    const asking = await new Asking().single("r1", tea);
    expect((await asking.explain("r1")).engine).toEqual({ kind: "not_reported" });
  });

  it("is as expected within its steps, more, or less", async () => {
    expect((await reported((expected) => expected)).engine).toEqual({ kind: "as_expected" });
    expect((await reported((expected) => expected + 5)).engine).toEqual({ kind: "more", tokens: 5 });
    expect((await reported((expected) => expected - 7)).engine).toEqual({
      kind: "less",
      tokens: 7,
      because: { kind: "block_rounding", blockTokens: 16 },
    });
    const none = await reported(() => 0);
    expect(none.engine).toEqual({ kind: "less", tokens: none.expected, because: { kind: "unknown" } });
    expect(none.lost.tokens).toBe(none.tokens.shared - (none.tokens.shared % 16));
    expect(none.lost.price.amount).toBeGreaterThan(1);
    expect((await reported(() => 0, 1_000)).engine).toMatchObject({ because: { kind: "in_flight" } });
    expect((await reported(() => 0, 60_000, true)).engine).toMatchObject({ because: { kind: "evicted" } });
  });

  it("is nothing below a provider's minimum, or where it bills writes and got no breakpoint", async () => {
    const hosted = new Asking({ engine: ENGINE_MODELS["hosted-writes"] });
    await hosted.single("r1", long);
    hosted.now += 60_000;
    await hosted.single("r2", { ...long, ...dog });
    await hosted.feedback("r2", 0);
    const { engine, lost } = await hosted.explain("r2");
    expect(engine).toMatchObject({ kind: "less", because: { kind: "below_minimum", minimumTokens: 1_024 } });
    expect(lost).toEqual({ tokens: 0, price: { unit: "money", amount: 0 } });
    const longer = { tea: `Ana drinks tea ${"every day ".repeat(1_000)}` };
    await hosted.single("r3", longer);
    hosted.now += 60_000;
    await hosted.single("r4", { ...longer, ...dog });
    await hosted.feedback("r4", 0);
    expect(await hosted.explain("r4")).toMatchObject({
      engine: { kind: "less", because: { kind: "no_breakpoint" } },
      lost: { price: { unit: "money" } },
    });
  });
});

describe("explaining", () => {
  it("changes nothing, and says the same again", async () => {
    const asking = await new Asking().turn("t1", tea);
    await asking.turn("t2", { ...bike, ...tea });
    const explain = () => asking.service.explain(ana, null, "t2" as RequestId);
    const first = await explain();
    const index = await asking.service.describeIndex(ana, null, 100);
    expect(await explain()).toEqual(first);
    expect(await asking.service.describeIndex(ana, null, 100)).toEqual(index);
  });

  it("knows no request of another user or agent, and none that was never composed", async () => {
    const asking = await new Asking().single("r1", tea);
    for (const [user, agent, id] of [
      ["bo", null, "r1"],
      ["ana", "coach", "r1"],
      ["ana", null, "r2"],
    ] as const) {
      await expect(asking.service.explain(user as never, agent as never, id as RequestId)).rejects.toThrow(
        NotFoundError,
      );
    }
  });
});
