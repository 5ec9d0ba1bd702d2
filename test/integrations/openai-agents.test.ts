import { afterAll, describe, expect, it } from "vitest";
import type { MemprefixClient } from "../../src/index.js";
import { type AgentsModelCall, memprefixModel, memprefixModels } from "../../src/integrations/openai-agents.js";
import { factsMemprefix } from "./own-facts.js";

const SECTION = "<memories>\n- Ana likes green tea.\n</memories>";

const { memprefix, close } = factsMemprefix(["Ana likes green tea."]);
afterAll(close);

/** memprefix, and what it is told that responses used. */
function listening() {
  const reported: unknown[] = [];
  const timed: unknown[] = [];
  const feedback: MemprefixClient["feedback"] = (given) => {
    reported.push([given.promptTokens, given.cachedTokens]);
    timed.push(given.ttftMs);
    return memprefix.feedback(given);
  };
  return { memprefix: { ...memprefix, feedback }, reported, timed };
}

const used = (inputTokens: number, cached: number) => ({ inputTokens, inputTokensDetails: { cached_tokens: cached } });

/** A model that keeps what it was asked, in a private field. */
class KeepingModel {
  readonly #asked: AgentsModelCall[] = [];
  get asked() {
    return this.#asked;
  }
  async getResponse(request: AgentsModelCall) {
    this.#asked.push(request);
    return { usage: { inputTokens: 30, inputTokensDetails: [{ cached_tokens: 10 }] }, output: [] };
  }
  async *getStreamedResponse(request: AgentsModelCall): AsyncIterable<object> {
    this.#asked.push(request);
    yield { type: "output_text_delta", delta: "Tea." };
    yield { type: "response_done", response: { usage: used(40, 20) } };
  }
  count() {
    return this.#asked.length;
  }
}

const request = (input: AgentsModelCall["input"], more: Partial<AgentsModelCall> = {}): AgentsModelCall => ({
  input,
  systemInstructions: "Be brief.",
  modelSettings: {},
  ...more,
});

describe("a model", () => {
  it("is asked with memories, and its usage is reported, whole and streamed", async () => {
    const { memprefix: heard, reported, timed } = listening();
    const keeping = new KeepingModel();
    const model = memprefixModel(keeping, { memprefix: heard, userId: "ana" });
    const { output } = await model.getResponse(request("Tea?"));
    const events: object[] = [];
    for await (const event of model.getStreamedResponse(request([{ role: "user", content: "Tea?" }])))
      events.push(event);
    expect(output).toEqual([]);
    expect(events).toHaveLength(2);
    const asked = request([{ role: "user", content: `${SECTION}\n\nTea?` }]);
    expect(keeping.asked).toEqual([asked, asked]);
    expect(reported).toEqual([
      [30, 10],
      [40, 20],
    ]);
    expect(timed).toEqual([undefined, expect.any(Number)]);
    // What is not the adapter's stays the model's own.
    expect([model.count(), model instanceof KeepingModel, model.constructor]).toEqual([2, true, KeepingModel]);
  });

  it("is given what JSON has no place for as it was, also by a service", async () => {
    const compose: MemprefixClient["compose"] = async (options) => {
      const answer = await memprefix.compose(JSON.parse(JSON.stringify(options)) as typeof options);
      return JSON.parse(JSON.stringify(answer)) as typeof answer;
    };
    const keeping = new KeepingModel();
    const image = { type: "image", image: { data: Uint8Array.of(1, 2) } };
    const result = { type: "function_call_result", name: "photo", callId: "c", output: image };
    const model = memprefixModel(keeping, { memprefix: { ...memprefix, compose }, userId: "ana" });
    await model.getResponse(request([{ role: "user", content: "Tea?" }, result]));
    expect(keeping.asked[0]?.input[1]).toBe(result);
  });

  it("is asked with the fields that the engine has for it; the caller's own win", async () => {
    const keeping = new KeepingModel();
    const compose = { engine: "openai" } as const;
    const model = memprefixModel(keeping, { memprefix, userId: "ana", compose });
    await model.getResponse(request("Tea?", { modelSettings: { providerData: { user: "u" } } }));
    await model.getResponse(request("Tea?", { modelSettings: { providerData: { prompt_cache_key: "own" } } }));
    expect(keeping.asked.map(({ modelSettings }) => modelSettings.providerData)).toEqual([
      { user: "u", prompt_cache_key: expect.any(String) },
      { prompt_cache_key: "own" },
    ]);
  });

  it("that knows what was said before is asked what is new, with memories that it was not told", async () => {
    const keeping = new KeepingModel();
    const model = memprefixModel(keeping, { memprefix, userId: "ana" });
    const next = (content: string, more: Partial<AgentsModelCall>) =>
      model.getResponse(request([{ role: "user", content }], more));
    await next("Tea?", { conversationId: "conv_1" });
    await next("And now?", { conversationId: "conv_1" });
    await next("Tea?", { previousResponseId: "resp_1" });
    expect(keeping.asked.map(({ input }) => input)).toEqual([
      [{ role: "user", content: `${SECTION}\n\nTea?` }],
      [{ role: "user", content: expect.stringMatching(/^(?!.*green tea).*And now\?$/s) }],
      [{ role: "user", content: `${SECTION}\n\nTea?` }],
    ]);
  });

  it("of a provider is another's, by its name", async () => {
    const keeping = new KeepingModel();
    const provider = { getModel: async (name?: string) => (name === "tea" ? keeping : new KeepingModel()), closed: 1 };
    const models = memprefixModels(provider, { memprefix, userId: "ana" });
    await (await models.getModel("tea")).getResponse(request("Tea?"));
    expect([keeping.count(), models.closed]).toEqual([1, 1]);
    expect(keeping.asked[0]?.input).toEqual([{ role: "user", content: `${SECTION}\n\nTea?` }]);
  });
});
