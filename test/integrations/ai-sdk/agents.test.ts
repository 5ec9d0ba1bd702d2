import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  generateObject,
  type ModelMessage,
  pruneMessages,
  stepCountIs,
  streamText,
  ToolLoopAgent,
  tool,
  wrapLanguageModel,
} from "ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type AiSdkOptions, memprefixMiddleware } from "../../../src/integrations/ai-sdk.js";
import { type AgentEngine, agentEngine } from "../../clients/agent-engine.js";
import { answerTo, lookUp, TRIP } from "../../clients/agent-model.js";
import { brokenPrefixes } from "../../clients/checked-prompts.js";
import { INSTRUCTIONS, weatherIn } from "../../clients/client-program.js";
import { type FactsMemprefix, factsMemprefix } from "../own-facts.js";

describe("the AI SDK's middleware under the SDK's own loops", () => {
  let engine: AgentEngine;
  let facts: FactsMemprefix;
  let errors: unknown[] = [];
  beforeEach(async () => {
    engine = await agentEngine();
    facts = factsMemprefix();
    errors = [];
  });
  afterEach(async () => {
    await facts.close();
    await engine.close();
    expect(errors).toEqual([]);
  });

  const modelOf = (options: Partial<AiSdkOptions> = {}) =>
    wrapLanguageModel({
      model: createOpenAICompatible({
        name: "engine",
        baseURL: engine.url,
        apiKey: "the engine's",
        supportsStructuredOutputs: true,
        includeUsage: true,
      })("any"),
      middleware: memprefixMiddleware({
        memprefix: facts.memprefix,
        userId: "ana",
        conversationId: "trip",
        onError: (error) => errors.push(error),
        ...options,
      }),
    });
  const tools = {
    weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => weatherIn(city) }),
  };
  /** Every prompt begins with the one before, memories stand once, and each call's usage was reported. */
  const expectWhole = () => {
    expect(brokenPrefixes(engine.served)).toEqual([]);
    const counts = engine.served.map(({ counted }) => [counted.prompt, counted.cached]);
    expect(facts.reports.map(({ promptTokens, cachedTokens }) => [promptTokens, cachedTokens])).toEqual(counts);
  };

  it("an agent with steps that it prepares: nothing piles up, nothing of memprefix's is persisted", async () => {
    const seen: string[] = [];
    const agent = new ToolLoopAgent({
      model: modelOf(),
      instructions: INSTRUCTIONS,
      tools,
      stopWhen: stepCountIs(5),
      prepareStep: ({ messages }) => {
        seen.push(JSON.stringify(messages));
        return { messages };
      },
    });
    const messages: ModelMessage[] = [];
    for (const content of [lookUp(3), "And now?"]) {
      messages.push({ role: "user", content });
      const { text, response } = await agent.generate({ messages });
      expect(text).toBe(answerTo(content));
      messages.push(...response.messages);
    }
    expect(engine.served).toHaveLength(5);
    expectWhole();
    expect(JSON.stringify([seen, messages])).not.toContain("<memories>");
  });

  it.each<[string, (messages: ModelMessage[]) => ModelMessage[]]>([
    ["the last messages", (messages) => messages.slice(-3)],
    [
      "pruneMessages",
      (messages) => pruneMessages({ messages, toolCalls: "before-last-message", reasoning: "all" }).slice(-4),
    ],
  ])("a window of %s: what was cut is put back in the SDK's form", async (_name, windowOf) => {
    const messages: ModelMessage[] = [];
    const questions = ["Where to?", lookUp(1), "And then?", "And after that?", "And at night?"];
    for (const content of questions) {
      const photo = new Uint8Array([137, 80, 78, 71, messages.length, 255]);
      const file = { type: "file" as const, data: photo, mediaType: "image/png" };
      messages.push({ role: "user", content: [{ type: "text", text: content }, file] });
      const result = streamText({
        model: modelOf({ compose: { history: "extended", historyRatio: 100 } }),
        system: INSTRUCTIONS,
        messages: windowOf(messages),
        tools,
        stopWhen: stepCountIs(3),
      });
      expect(await result.text).toBe(answerTo(content));
      messages.push(...(await result.response).messages);
    }
    expect(engine.refused).toEqual([]);
    expectWhole();
    const last = JSON.stringify(engine.served.at(-1)?.asked.prompt);
    for (const question of questions) expect(last).toContain(question);
    expect(last).toContain(Buffer.from([137, 80, 78, 71, 0, 255]).toString("base64"));
  });

  it("objects by a schema, and a conversation that is stored and read again", async () => {
    const schema = z.object({ city: z.string(), days: z.number() });
    let stored = "[]";
    for (const content of ["Plan a trip.", "Plan another one."]) {
      const messages = JSON.parse(stored) as ModelMessage[];
      messages.push({ role: "user", content });
      const { object } = await generateObject({ model: modelOf(), system: INSTRUCTIONS, messages, schema });
      expect(object).toEqual(TRIP);
      messages.push({ role: "assistant", content: JSON.stringify(object) });
      stored = JSON.stringify(messages);
    }
    expectWhole();
  });

  it("keeps concurrent streams apart, each with its own user's usage", async () => {
    const users = ["ana", "bo", "cy", "di"];
    const model = modelOf({ userId: ({ providerOptions }) => String(providerOptions?.["app"]?.["user"]) });
    const texts = users.map(async (user) => {
      const result = streamText({ model, prompt: `I am ${user}.`, providerOptions: { app: { user } } });
      return result.text;
    });
    expect(await Promise.all(texts)).toEqual(users.map((user) => answerTo(`I am ${user}.`)));
    expect(facts.reports.map(({ userId }) => userId).toSorted()).toEqual(users);
    for (const { headers, asked, counted } of engine.served) {
      const report = facts.reports.find(({ requestId }) => requestId === headers["x-request-id"]);
      expect(report).toMatchObject({ promptTokens: counted.prompt, ttftMs: expect.any(Number) });
      expect(asked.question).toBe(`I am ${report?.userId}.`);
    }
  });
});
