import {
  Agent,
  type AgentInputItem,
  MemorySession,
  OpenAIProvider,
  Runner,
  type SessionInputCallback,
  tool,
} from "@openai/agents";
import { memprefixModels } from "memprefix/openai-agents";
import OpenAI from "openai";
import { z } from "zod";
import { INSTRUCTIONS, weatherIn } from "../../clients/client-program.js";
import { type AdapterWay, type Holding, runAdapterProgram, tried } from "../adapter-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = tool({
  name: "weather",
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => weatherIn(city),
});
const named = { name: "Planner", instructions: INSTRUCTIONS, model: "gpt-5-mini" };

interface Runs {
  readonly useResponses?: boolean;
  /** What keeps what was said before: a session, or the provider by the id of its last response. */
  readonly kept?: "session" | "responses";
}

interface Use {
  readonly outputType?: typeof trip;
  readonly stream?: boolean;
  readonly windowed?: boolean;
}

type Memprefix = Parameters<Holding>[1];

function runnerOf(engine: string, memprefix: Memprefix, errors: unknown[], useResponses = true): Runner {
  const openAIClient = new OpenAI({ baseURL: engine, apiKey: "the engine's" });
  const provider = new OpenAIProvider({ openAIClient, useResponses });
  const compose = { history: "extended", historyRatio: 100 } as const;
  const modelProvider = memprefixModels(provider, { ...tried(memprefix, errors), compose });
  return new Runner({ tracingDisabled: true, modelProvider });
}

/** The last two turns: each a question and what was said to it. */
const window: SessionInputCallback = (history: AgentInputItem[], added: AgentInputItem[]) => {
  const questions = history.flatMap((item, at) => ("role" in item && item.role === "user" ? [at] : []));
  return [...history.slice(questions.at(-2) ?? 0), ...added];
};

const held =
  ({ useResponses = true, kept = "session" }: Runs, { outputType, stream = false, windowed }: Use): Holding =>
  async (conversation, memprefix) => {
    const errors: unknown[] = [];
    const runner = runnerOf(conversation.engine, memprefix, errors, useResponses);
    const session = new MemorySession();
    const agent = new Agent({ ...named, tools: outputType ? [] : [weather], outputType: outputType ?? "text" });
    const answers: unknown[] = [];
    let history: AgentInputItem[] = [];
    let previousResponseId: string | undefined;
    for (const question of conversation.questions) {
      const options = {
        ...(kept === "session" ? { session } : {}),
        ...(previousResponseId === undefined ? {} : { previousResponseId }),
        ...(windowed ? { sessionInputCallback: window } : {}),
      };
      if (stream) {
        const result = await runner.run(agent, question, { ...options, stream: true });
        let text = "";
        for await (const piece of result.toTextStream()) text += piece;
        await result.completed;
        answers.push(text);
        history = result.history;
        if (kept === "responses") previousResponseId = result.lastResponseId;
      } else {
        const result = await runner.run(agent, question, options);
        answers.push(result.finalOutput);
        history = result.history;
        if (kept === "responses") previousResponseId = result.lastResponseId;
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
    return { answers, stored: JSON.stringify(kept === "session" ? await session.getItems() : history) };
  };

/** One run for each question, the first by an agent that hands over to the one that answers. */
const handedOver: Holding = async (conversation, memprefix) => {
  const errors: unknown[] = [];
  const runner = runnerOf(conversation.engine, memprefix, errors);
  const planner = new Agent({ ...named, handoffDescription: "Plans trips." });
  const toolChoice = "transfer_to_Planner";
  const desk = new Agent({ ...named, name: "Desk", handoffs: [planner], modelSettings: { toolChoice } });
  const session = new MemorySession();
  const answers: unknown[] = [];
  for (const question of conversation.questions)
    answers.push((await runner.run(desk, question, { session })).finalOutput);
  if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
  return { answers, stored: JSON.stringify(await session.getItems()) };
};

function way(runs: Runs): AdapterWay {
  const hold = (use: Use) => held(runs, use);
  return {
    json: hold({}),
    stream: hold({ stream: true }),
    tools: hold({}),
    steps: hold({ stream: true }),
    structured: hold({ outputType: trip }),
    ...(runs.kept === "responses" ? {} : { window: hold({ windowed: true }), handover: handedOver }),
  };
}

runAdapterProgram({
  packages: ["@openai/agents", "openai"],
  ways: {
    Responses: way({}),
    "chat completions": way({ useResponses: false }),
    "the provider's history": way({ kept: "responses" }),
  },
});
