import { afterAll, describe, expect, it } from "vitest";
import type { MemprefixClient } from "../../src/index.js";
import { type MastraCall, memprefixProcessor } from "../../src/integrations/mastra.js";
import { factsMemprefix } from "./own-facts.js";

const PROMPT = [
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Tea?" }] },
];

const { memprefix, close } = factsMemprefix(["Ana likes green tea."]);
afterAll(close);

/** memprefix, and what it was called with. */
function listening() {
  const composed: unknown[] = [];
  const reported: unknown[] = [];
  const compose: MemprefixClient["compose"] = (options) => {
    composed.push([options.userId, options.conversationId]);
    return memprefix.compose(options);
  };
  const feedback: MemprefixClient["feedback"] = (given) => {
    reported.push([given.promptTokens, given.cachedTokens]);
    return memprefix.feedback(given);
  };
  return { memprefix: { compose, feedback }, composed, reported };
}

function callOf(context: Readonly<Record<string, unknown>> = {}): MastraCall {
  return { stepNumber: 0, state: {}, requestContext: { get: (key) => context[key] } };
}
const MEMORY = { MastraMemory: { resourceId: "ana", thread: { id: "trip" } } };

describe("a processor of Mastra's", () => {
  it("puts memories in front of the question, for the resource and the thread of Mastra's memory", async () => {
    const { memprefix: heard, composed } = listening();
    const processor = memprefixProcessor({ memprefix: heard });
    const { prompt } = (await processor.processLLMRequest({ ...callOf(MEMORY), prompt: PROMPT })) ?? {};
    expect(prompt?.[1]?.content).toEqual([
      { type: "text", text: "<memories>\n- Ana likes green tea.\n</memories>" },
      { type: "text", text: "Tea?" },
    ]);
    const reserved = { mastra__resourceId: "bo", mastra__threadId: "sea" };
    await processor.processLLMRequest({ ...callOf(reserved), prompt: PROMPT });
    const own = { memprefix: heard, userId: "cy", conversationId: () => "lake" };
    await memprefixProcessor(own).processLLMRequest({ ...callOf(MEMORY), prompt: PROMPT });
    expect(composed).toEqual([
      ["ana", "trip"],
      ["bo", "sea"],
      ["cy", "lake"],
    ]);
  });

  it("leaves a call of nobody's, and one that memprefix cannot compose, as it is", async () => {
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(String(error));
    const processor = memprefixProcessor({ memprefix, onError });
    expect(await processor.processLLMRequest({ ...callOf(), prompt: PROMPT })).toBeUndefined();
    expect(await processor.processLLMRequest({ ...callOf({ MastraMemory: null }), prompt: PROMPT })).toBeUndefined();
    expect(errors).toEqual([]);
    expect(await processor.processLLMRequest({ ...callOf(MEMORY), prompt: PROMPT.slice(0, 1) })).toBeUndefined();
    expect(errors).toEqual([expect.stringContaining("must end with the user's question")]);
  });

  it("reports what an answer used, of a model's own answers", async () => {
    const { memprefix: heard, reported } = listening();
    const processor = memprefixProcessor({ memprefix: heard });
    const usage = { inputTokens: 30, cachedInputTokens: 10 };
    const chunks = [
      { type: "text-delta", payload: {} },
      { type: "finish", payload: { output: { usage } } },
    ];
    const answer = async (given: object[], fromCache = false) => {
      const call = callOf(MEMORY);
      await processor.processLLMRequest({ ...call, prompt: PROMPT });
      const told = { ...call, chunks: given as typeof chunks, fromCache };
      await processor.processLLMResponse(told);
      await processor.processLLMResponse(told);
    };
    await answer(chunks);
    await answer(chunks, true);
    await answer([{ type: "finish", payload: { output: {} } }]);
    await answer([]);
    await processor.processLLMResponse({ ...callOf(MEMORY), chunks, fromCache: false });
    expect(reported).toEqual([[30, 10]]);
  });
});
