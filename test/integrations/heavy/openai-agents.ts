import {
  Agent,
  type AgentInputItem,
  MemorySession,
  OpenAIProvider,
  Runner,
  type RunConfig,
  type SessionInputCallback,
  tool,
} from "@openai/agents";
import { memstemFilter, memstemModels } from "memstem/openai-agents";
import OpenAI from "openai";
import { z } from "zod";
import { INSTRUCTIONS, weatherIn } from "../../clients/client-program.js";
import { type AdapterSession, type AdapterWay, type Holding, runAdapterProgram, tried } from "../adapter-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = tool({
  name: "weather",
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => weatherIn(city),
});
const named = { name: "Planner", instructions: INSTRUCTIONS, model: "gpt-5-mini" };

/** What the ways have in their runs. */
type Configured = (session: AdapterSession, provider: OpenAIProvider, composing: Parameters<Holding>[1], errors: unknown[]) => Partial<RunConfig>;

function ways(configured: Configured, about: Omit<AdapterWay, "uses">, useResponses: boolean): AdapterWay {
  const held =
    (
      outputType: typeof trip | "text",
      { stream = false, windowed = false }: { readonly stream?: boolean; readonly windowed?: boolean } = {},
    ): Holding =>
    async (session, memstem) => {
      const errors: unknown[] = [];
      const openAIClient = new OpenAI({ baseURL: session.engine, apiKey: "the engine's" });
      const provider = new OpenAIProvider({ openAIClient, useResponses });
      const runner = new Runner({ tracingDisabled: true, ...configured(session, provider, memstem, errors) });
      const kept = new MemorySession();
      const agent = new Agent({ ...named, tools: outputType === "text" ? [weather] : [], outputType });
      const answers: unknown[] = [];
      const options = { session: kept, ...(windowed ? { sessionInputCallback: window } : {}) };
      for (const question of session.questions) {
        if (stream) {
          const result = await runner.run(agent, question, { ...options, stream: true });
          let text = "";
          for await (const piece of result.toTextStream()) text += piece;
          await result.completed;
          answers.push(text);
        } else {
          const result = await runner.run(agent, question, options);
          answers.push(result.finalOutput);
        }
      }
      if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
      return { answers, stored: JSON.stringify(await kept.getItems()) };
    };
  return {
    ...about,
    uses: {
      json: held("text"),
      stream: held("text", { stream: true }),
      tools: held("text"),
      steps: held("text", { stream: true }),
      structured: held(trip),
      window: held("text", { windowed: true }),
    },
  };
}

/** The last two turns: a question, reasoning and an answer each. */
const window: SessionInputCallback = (history: AgentInputItem[], added: AgentInputItem[]) => {
  const questions = history.flatMap((item, at) => ("role" in item && item.role === "user" ? [at] : []));
  return [...history.slice(questions.at(-2) ?? 0), ...added];
};

const filtered: Configured = (_session, modelProvider, memstem, errors) => ({
  modelProvider,
  callModelInputFilter: memstemFilter(tried(memstem, errors)),
});
const modelled: Configured = (_session, provider, memstem, errors) => ({
  modelProvider: memstemModels(provider, {
    ...tried(memstem, errors),
    compose: { history: "extended", historyRatio: 100 },
  }),
});

runAdapterProgram({
  packages: ["@openai/agents", "openai"],
  ways: {
    "filter, Responses": ways(filtered, { storesMemories: true, keepsPrefix: false }, true),
    "filter, chat completions": ways(filtered, { storesMemories: true, keepsPrefix: false }, false),
    "models, Responses": ways(modelled, { storesMemories: false, keepsPrefix: true }, true),
    "models, chat completions": ways(modelled, { storesMemories: false, keepsPrefix: true }, false),
  },
});
