import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ChatMessage, residencyModel } from "../../../src/core/index.js";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../../src/engines/embedded/embedded-engine.js";
import type { GenerationUsage } from "../../../src/engines/embedded/generation.js";
import { chatTokenizer, loadLlama } from "../../../src/engines/embedded/llama.js";
import { IS_WHOLE } from "../../run-length.js";
import { ana, composeWith, openService } from "../../service/compose/service-fixture.js";
import { SlotCache } from "../../simulator/slot-cache.js";
import { llamaMissing, tinyModel } from "../random-model/tiny-model.js";

const missing = await llamaMissing();
const SLOTS = 3;
/** Asked of each kind, and of the simulated slots. */
const [QUESTIONS, PROMPTS] = IS_WHOLE ? [24, 30] : [12, 15];
/** The cache block of most engines. */
const BLOCK_TOKENS = 16;
const NAMES = ["Ada", "Bo", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo", "Kim", "Leo"];
const MEMORIES = NAMES.map((name, n) => ({
  id: name,
  memory: `${name} told Ana on day ${n} that the ${n % 2 ? "garden" : "harbour"} is closed until the ${n + 3}th.`,
}));
/**
 * Which memories question `n` finds: neighbours in a circle, so that questions share some, but never all, as what stands behind the
 * blocks is not predicted; every fourth question is one of another kind.
 */
const retrieved = (n: number) =>
  [0, 1, 2, 3, 4, 5]
    .slice(0, 4 + (n % 3))
    .flatMap((at) => MEMORIES[(n % 4 === 3 ? 7 * n + 5 * at : Math.floor(n / 3) + at) % MEMORIES.length] ?? []);

async function usageOf(engine: EmbeddedEngine, messages: readonly ChatMessage[]): Promise<GenerationUsage> {
  for await (const event of engine.generate({ messages, maxTokens: 1 })) if (event.kind === "end") return event.usage;
  throw new Error("the answer has no end");
}

describe.skipIf(missing !== null)(
  `what is predicted of the engine inside${missing === null ? "" : ` (skipped: ${missing})`}`,
  () => {
    const file = tinyModel();
    const open = () => openEmbeddedEngine({ modelPath: file.path, slots: SLOTS, contextTokens: 4_096, threads: 1 });
    let counting: EmbeddedEngine;
    beforeAll(async () => {
      counting = await openEmbeddedEngine({ modelPath: file.path, slots: 1, contextTokens: 64, threads: 1 });
    });
    afterAll(() => counting.close());

    /** memprefix before an engine that can be started again; each question is answered with how far the prediction was off. */
    async function underPrediction(conversationId: string | null) {
      let engine = await open();
      const residency = residencyModel({ kind: "slots", slots: SLOTS });
      const service = openService({ residency, countTokens: counting.countTokens, now: Date.now });
      const history: ChatMessage[] = [];
      let asked = 0;
      return {
        async ask() {
          const question = { role: "user", content: `${asked} days from now, what is open?` };
          const memories = retrieved(asked++);
          const system = "Answer from what you remember.";
          const messages = conversationId === null ? [question] : [...history, question];
          const composed = await composeWith(service, { userId: ana, conversationId, system, messages, memories });
          const { cachedTokens, promptTokens } = await usageOf(engine, composed.messages);
          await service.feedback(ana, null, composed.requestId, { cachedTokens, promptTokens });
          history.push(question, { role: "assistant", content: "Nobody knows." });
          const { expectedCachedTokens, totalTokens } = composed.plan;
          return { off: Math.abs(expectedCachedTokens - cachedTokens), cachedTokens, promptTokens, totalTokens };
        },
        async restart() {
          await engine.close();
          engine = await open();
        },
        async close() {
          await engine.close();
          await service.close();
        },
      };
    }

    it.each([
      ["single prompts", null],
      ["a conversation", "trip"],
    ])("is what is cached, to a block, of every one of %s", async (_, conversationId) => {
      const asking = await underPrediction(conversationId);
      let cached = 0;
      for (let n = 0; n < QUESTIONS; n++) {
        const { off, cachedTokens, promptTokens, totalTokens } = await asking.ask();
        expect(off, `question ${n}`).toBeLessThanOrEqual(BLOCK_TOKENS);
        expect(Math.abs(promptTokens - totalTokens), `question ${n}`).toBeLessThanOrEqual(BLOCK_TOKENS);
        cached += cachedTokens;
      }
      expect(cached).toBeGreaterThan(QUESTIONS * 50);
      await asking.close();
    });

    it.each([
      ["single prompts", null],
      ["a conversation", "trip"],
    ])("is right again within three requests of a restart, of %s", async (_, conversationId) => {
      const asking = await underPrediction(conversationId);
      for (let n = 0; n < 9; n++) await asking.ask();
      await asking.restart();
      expect((await asking.ask()).off).toBeGreaterThan(BLOCK_TOKENS);
      for (let n = 0; n < 2; n++) await asking.ask();
      for (let n = 3; n < 12; n++) expect((await asking.ask()).off, `request ${n}`).toBeLessThanOrEqual(BLOCK_TOKENS);
      await asking.close();
    });

    it("is simulated: the same prompts hit the same tokens of the simulated slots", async () => {
      const engine = await open();
      const { module, llama } = await loadLlama();
      const model = await llama.loadModel({ modelPath: file.path });
      const tokensOf = chatTokenizer(module, model);
      const simulated = new SlotCache(SLOTS);
      for (let n = 0; n < PROMPTS; n++) {
        // Beginnings of all lengths, in an order without a pattern.
        const content = MEMORIES.slice((n * n) % 4, 1 + ((n * 7) % MEMORIES.length))
          .map(({ memory }) => memory)
          .join(" ");
        const messages = [{ role: "user", content: `${content} And then? ${n}` }];
        const { cachedTokens } = await usageOf(engine, messages);
        expect(simulated.serve(tokensOf(messages).tokens), `prompt ${n}`).toBe(cachedTokens);
      }
      await llama.dispose();
      await engine.close();
    });
  },
);
