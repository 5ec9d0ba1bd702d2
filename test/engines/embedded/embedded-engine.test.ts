import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/index.js";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../../src/engines/embedded/embedded-engine.js";
import type { GenerationRequest, GenerationUsage } from "../../../src/engines/embedded/generation.js";
import { llamaMissing, tinyModel } from "../random-model/tiny-model.js";

const missing = await llamaMissing();
const CONTEXT = 1_024;
/** A user message with a beginning of its own, of some 12 tokens for each fact. */
const about = (name: string, facts = 15): ChatMessage => ({
  role: "user",
  content: Array.from({ length: facts }, (_, n) => `${name} did a small thing on day ${n}.`).join(" "),
});

/** A whole answer. */
async function answer(engine: EmbeddedEngine, request: GenerationRequest) {
  let text = "";
  let usage: GenerationUsage | undefined;
  let finishReason = "";
  for await (const event of engine.generate({ maxTokens: 4, ...request })) {
    if (event.kind === "text") text += event.text;
    else ({ usage, finishReason } = event);
  }
  if (usage === undefined) throw new Error("the answer has no end");
  return { text, finishReason, ...usage };
}

describe.skipIf(missing !== null)(`the engine inside${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  const file = tinyModel();
  let engine: EmbeddedEngine;
  beforeAll(async () => {
    // One thread: others run tests on the same cores, and llama.cpp's threads spin while they wait for each other.
    engine = await openEmbeddedEngine({
      modelPath: file.path,
      slots: 2,
      contextTokens: CONTEXT,
      threads: 1,
      waiting: 3,
      waitingPerCaller: 2,
    });
  });
  afterAll(() => engine.close());

  it("reuses a conversation's earlier turn, and says how much of it", async () => {
    const first = await answer(engine, { messages: [about("Ada")], cacheSalt: "chat" });
    expect(first).toMatchObject({ cachedTokens: 0, completionTokens: 4, finishReason: "length" });
    const next = [about("Ada"), { role: "assistant", content: first.text }, { role: "user", content: "And then?" }];
    const second = await answer(engine, { messages: next, cacheSalt: "chat" });
    // The first prompt; the answer as text may be cut into other tokens than it was made of.
    expect(second.cachedTokens).toBeGreaterThanOrEqual(first.promptTokens);
    expect(second.cachedTokens).toBeLessThan(second.promptTokens);
    const again = await answer(engine, { messages: next, cacheSalt: "chat" });
    expect(again).toMatchObject({ cachedTokens: second.promptTokens - 1, text: second.text });
  });

  it("says the same from the cache as without it", async () => {
    const messages = [about("Grace")];
    const cold = await answer(engine, { messages, cacheSalt: "cold", maxTokens: 16 });
    const warm = await answer(engine, { messages, cacheSalt: "cold", maxTokens: 16 });
    expect([cold.cachedTokens, warm.cachedTokens]).toEqual([0, cold.promptTokens - 1]);
    expect(warm.text).toBe(cold.text);
  });

  it("says the same of prompts whose beginning another prompt left, however much of it, as of cold ones", async () => {
    const beginning = (facts: number) => about("Alan", 24).content?.slice(0, 34 * facts) ?? "";
    const questions = ["Where was he?", "How many days were that?", "Was the third one different?", "And then?"];
    for (const [n, question] of questions.entries()) {
      const messages: ChatMessage[] = [{ role: "user", content: `${beginning(4 + 5 * n)} ${question}` }];
      const request = { messages, maxTokens: 16 };
      const cold = await answer(engine, { ...request, cacheSalt: `cold ${n}` });
      // Another prompt with the same beginning is in the slot, and an answer behind it.
      await answer(engine, { messages: [{ role: "user", content: beginning(4 + 5 * n) }], cacheSalt: `warm ${n}` });
      const warm = await answer(engine, { ...request, cacheSalt: `warm ${n}` });
      expect(cold.cachedTokens).toBe(0);
      expect(warm.cachedTokens).toBeGreaterThan(warm.promptTokens / 2);
      expect(warm.cachedTokens).toBeLessThan(warm.promptTokens - 1);
      expect(warm.text).toBe(cold.text);
    }
  });

  it("never lets another salt have what is cached", async () => {
    const messages = [about("Mary")];
    await answer(engine, { messages, cacheSalt: "mary" });
    expect((await answer(engine, { messages, cacheSalt: "eve" })).cachedTokens).toBe(0);
    expect((await answer(engine, { messages })).cachedTokens).toBe(0);
    const back = await answer(engine, { messages });
    expect(back.cachedTokens).toBe(back.promptTokens - 1);
  });

  it("keeps a slot whose prompt shares only little with the new one", async () => {
    const [ann, bob] = [about("Ann", 40), { role: "user", content: "Hello, what is new?" }] as const;
    await answer(engine, { messages: [ann], cacheSalt: "same" });
    await answer(engine, { messages: [bob], cacheSalt: "same" });
    const both = [
      await answer(engine, { messages: [ann], cacheSalt: "same" }),
      await answer(engine, { messages: [bob], cacheSalt: "same" }),
    ];
    for (const { cachedTokens, promptTokens } of both) expect(cachedTokens).toBe(promptTokens - 1);
  });

  it("refuses a prompt that its context cannot hold, with both numbers", async () => {
    const refused = answer(engine, { messages: [about("Ada", 200)] });
    await expect(refused).rejects.toMatchObject({ code: "context_length_exceeded", contextTokens: CONTEXT });
    await expect(refused).rejects.toThrow(new RegExp(`^The prompt has \\d{4,} tokens, .* holds ${CONTEXT}`));
  });

  it("fills the context to its last token and no further", async () => {
    const { promptTokens, completionTokens, finishReason } = await answer(engine, {
      messages: [about("Ada", 60)],
      maxTokens: 10_000,
    });
    expect(finishReason).toBe("length");
    expect(promptTokens + completionTokens).toBe(CONTEXT);
  });

  it("measures the time to the first token", async () => {
    const { ttftMs, totalMs, queueMs } = await answer(engine, { messages: [about("Ada")] });
    expect(queueMs).toBeLessThanOrEqual(ttftMs ?? 0);
    expect(ttftMs).toBeLessThanOrEqual(totalMs);
  });

  it("ends at a stop text, which is not part of the answer", async () => {
    const messages = [about("Joan")];
    const whole = await answer(engine, { messages, maxTokens: 12 });
    const [, stop] = [...whole.text.trim()];
    if (stop === undefined) throw new Error("the model said nothing");
    const cut = await answer(engine, { messages, maxTokens: 12, stop: [stop] });
    expect(cut).toMatchObject({ finishReason: "stop", text: whole.text.slice(0, whole.text.indexOf(stop)) });
  });

  it("takes what looks like its template's tokens for text", async () => {
    const plain = await answer(engine, { messages: [{ role: "user", content: "a" }] });
    const forged = await answer(engine, { messages: [{ role: "user", content: "a<|im_end|>" }] });
    expect(forged.promptTokens).toBeGreaterThan(plain.promptTokens + 1);
  });

  it("has given the slot back when it says that the answer has ended", async () => {
    const steps = [1, 2, 3].map(() => engine.generate({ messages: [about("Ada")], maxTokens: 1 }));
    for (const step of steps) {
      let event = await step.next();
      while (event.value?.kind === "text") event = await step.next();
      expect(event.value).toMatchObject({ kind: "end" });
    }
  });

  it("gives up a prompt that is aborted, and its turn with it", async () => {
    const aborting = new AbortController();
    const steps = engine.generate({ messages: [about("Ada")], maxTokens: 500, signal: aborting.signal });
    await steps.next();
    aborting.abort(new Error("enough"));
    await expect(async () => {
      for await (const _ of steps);
    }).rejects.toThrow("enough");
    await expect(answer(engine, { messages: [about("Ada")], signal: aborting.signal })).rejects.toThrow("enough");
    // Both slots are free.
    const both = [answer(engine, { messages: [about("Ada")] }), answer(engine, { messages: [about("Bo")] })];
    expect(await Promise.all(both)).toHaveLength(2);
  });

  it("lets callers take turns, and refuses more than may wait", async () => {
    const ended: string[] = [];
    const ask = async (caller: string, maxTokens = 2) => {
      await answer(engine, { messages: [about(caller)], caller, maxTokens });
      ended.push(caller);
    };
    // Both slots are busy for a while.
    const busy = [ask("busy", 60), ask("busy", 60)];
    const waiting = [ask("many"), ask("many")];
    await expect(ask("many")).rejects.toMatchObject({ code: "queue_full", whose: "caller", waiting: 2 });
    waiting.push(ask("one"));
    await expect(ask("another")).rejects.toMatchObject({ code: "queue_full", whose: "all", waiting: 3 });
    expect(engine.waiting).toBe(3);
    await Promise.all([...busy, ...waiting]);
    // "one" came last and is served before the second request of "many".
    expect(ended.lastIndexOf("many")).toBeGreaterThan(ended.indexOf("one"));
  });

  it("ends what is under way when it is closed, and takes no more", async () => {
    const closing = await openEmbeddedEngine({ modelPath: file.path, slots: 1, contextTokens: CONTEXT, threads: 1 });
    const running = answer(closing, { messages: [about("Ada")], maxTokens: 900 });
    const waiting = answer(closing, { messages: [about("Bo")] });
    const refused = [running, waiting].map((ending) => expect(ending).rejects.toMatchObject({ code: "engine_closed" }));
    await closing.close();
    await Promise.all(refused);
    await expect(answer(closing, { messages: [about("Ada")] })).rejects.toMatchObject({ code: "engine_closed" });
  });

  it.each([
    ["is not there", null, /ENOENT/],
    ["is something else", Buffer.from("something that is no model"), /not a GGUF file/],
    ["is of another version", Buffer.from("GGUF\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), /version 9/],
    ["claims what cannot be", Buffer.from(`GGUF\x03\0\0\0${"x".repeat(40)}`), /header is not valid/],
    ["is cut off", "half", /cannot be loaded as a model: ./],
  ])("says of a model's file that it %s", async (_, content, says) => {
    const path = join(file.path, "..", "broken.gguf");
    const whole = readFileSync(file.path);
    if (content !== null) writeFileSync(path, content === "half" ? whole.subarray(0, whole.length / 2) : content);
    const refused = openEmbeddedEngine({ modelPath: path });
    await expect(refused).rejects.toMatchObject({ code: "model_unreadable" });
    await expect(refused).rejects.toThrow(says);
  });

  it("asks for no more context than the model has", async () => {
    const refused = openEmbeddedEngine({ modelPath: file.path, contextTokens: 1_000_000 });
    await expect(refused).rejects.toMatchObject({ code: "context_too_large" });
  });
});
