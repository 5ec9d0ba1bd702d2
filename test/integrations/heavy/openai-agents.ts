import {
  Agent,
  type AgentInputItem,
  MemorySession,
  OpenAIProvider,
  type RunConfig,
  Runner,
  type SessionInputCallback,
  tool,
  user,
} from "@openai/agents";
import { memprefixFilter, memprefixModels } from "memprefix/openai-agents";
import OpenAI from "openai";
import { z } from "zod";
import { INSTRUCTIONS, weatherIn } from "../../clients/client-program.js";
import { type AdapterWay, type Holding, runAdapterProgram, tried } from "../adapter-program.js";
import { conversationsSession } from "./openai-conversations.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = tool({
  name: "weather",
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => weatherIn(city),
});
const named = { name: "Planner", instructions: INSTRUCTIONS, model: "gpt-5-mini" };

/** Where memories get into a run. */
type Through = "filter" | "models";
/** What keeps what was said before: a session, OpenAI's Conversations, the caller, or the provider by the id of its last response. */
type Kept = "session" | "conversations" | "history" | "responses";

interface Runs {
  readonly through: Through;
  readonly useResponses?: boolean;
  readonly kept?: Kept;
}

interface Use {
  readonly outputType?: typeof trip;
  readonly stream?: boolean;
  readonly windowed?: boolean;
}

type Memprefix = Parameters<Holding>[1];

function configOf(
  through: Through,
  modelProvider: OpenAIProvider,
  memprefix: Memprefix,
  errors: unknown[],
): Partial<RunConfig> {
  if (through === "filter") return { modelProvider, callModelInputFilter: memprefixFilter(tried(memprefix, errors)) };
  const compose = { history: "extended", historyRatio: 100 } as const;
  return { modelProvider: memprefixModels(modelProvider, { ...tried(memprefix, errors), compose }) };
}

/** The last two turns: each a question and what was said to it. */
const window: SessionInputCallback = (history: AgentInputItem[], added: AgentInputItem[]) => {
  const questions = history.flatMap((item, at) => ("role" in item && item.role === "user" ? [at] : []));
  return [...history.slice(questions.at(-2) ?? 0), ...added];
};

const held =
  ({ through, useResponses = true, kept = "session" }: Runs, { outputType, stream = false, windowed }: Use): Holding =>
  async (conversation, memprefix) => {
    const errors: unknown[] = [];
    const openAIClient = new OpenAI({ baseURL: conversation.engine, apiKey: "the engine's" });
    const provider = new OpenAIProvider({ openAIClient, useResponses });
    const runner = new Runner({ tracingDisabled: true, ...configOf(through, provider, memprefix, errors) });
    const session = kept === "conversations" ? conversationsSession() : new MemorySession();
    const agent = new Agent({ ...named, tools: outputType ? [] : [weather], outputType: outputType ?? "text" });
    const answers: unknown[] = [];
    let history: AgentInputItem[] = [];
    let previousResponseId: string | undefined;
    for (const question of conversation.questions) {
      const input = kept === "history" ? [...history, user(question)] : question;
      const options = {
        ...(kept === "session" || kept === "conversations" ? { session } : {}),
        ...(windowed ? { sessionInputCallback: window } : {}),
        ...(kept === "responses" && previousResponseId !== undefined ? { previousResponseId } : {}),
      };
      if (stream) {
        const result = await runner.run(agent, input, { ...options, stream: true });
        let text = "";
        for await (const piece of result.toTextStream()) text += piece;
        await result.completed;
        answers.push(text);
        history = result.history;
        previousResponseId = result.lastResponseId;
      } else {
        const result = await runner.run(agent, input, options);
        answers.push(result.finalOutput);
        history = result.history;
        previousResponseId = result.lastResponseId;
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
    const isInSession = kept === "session" || kept === "conversations";
    const stored = JSON.stringify(isInSession ? await session.getItems() : history);
    return { answers, stored, storesMemories: isInSession && through === "filter" };
  };

/** One run for each question, the first by an agent that hands over to the one that answers. */
const handedOver =
  (through: Through): Holding =>
  async (conversation, memprefix) => {
    const errors: unknown[] = [];
    const openAIClient = new OpenAI({ baseURL: conversation.engine, apiKey: "the engine's" });
    const provider = new OpenAIProvider({ openAIClient });
    const runner = new Runner({ tracingDisabled: true, ...configOf(through, provider, memprefix, errors) });
    const planner = new Agent({ ...named, handoffDescription: "Plans trips." });
    const toolChoice = "transfer_to_Planner";
    const desk = new Agent({ ...named, name: "Desk", handoffs: [planner], modelSettings: { toolChoice } });
    const session = new MemorySession();
    const answers: unknown[] = [];
    for (const question of conversation.questions)
      answers.push((await runner.run(desk, question, { session })).finalOutput);
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
    return { answers, stored: JSON.stringify(await session.getItems()), storesMemories: through === "filter" };
  };

/** Two conversations at once, of one agent by one runner. */
const together: Holding = async (conversation, memprefix) => {
  const errors: unknown[] = [];
  const openAIClient = new OpenAI({ baseURL: conversation.engine, apiKey: "the engine's" });
  const callModelInputFilter = memprefixFilter<{ chat: string }>({
    ...tried(memprefix, errors),
    conversationId: ({ context }) => context?.chat,
  });
  const modelProvider = new OpenAIProvider({ openAIClient });
  const runner = new Runner({ tracingDisabled: true, modelProvider, callModelInputFilter });
  const agent = new Agent(named);
  const talk = async (chat: string) => {
    const session = new MemorySession();
    const answers: unknown[] = [];
    for (const question of conversation.questions)
      answers.push((await runner.run(agent, question, { session, context: { chat } })).finalOutput);
    return { answers, stored: JSON.stringify(await session.getItems()), storesMemories: true };
  };
  const [trip] = await Promise.all([talk("trip"), talk("walk")]);
  if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
  return trip;
};

function way(runs: Runs): AdapterWay {
  const hold = (use: Use) => held(runs, use);
  const { through, kept = "session" } = runs;
  return {
    keepsPrefix: through === "models",
    uses: {
      json: hold({}),
      stream: hold({ stream: true }),
      tools: hold({}),
      steps: hold({ stream: true }),
      structured: hold({ outputType: trip }),
      ...(kept === "session" ? { window: hold({ windowed: true }), handover: handedOver(through) } : {}),
      ...(kept === "session" && through === "filter" ? { together } : {}),
    },
  };
}

runAdapterProgram({
  packages: ["@openai/agents", "openai"],
  ways: {
    "filter, Responses": way({ through: "filter" }),
    "filter, chat completions": way({ through: "filter", useResponses: false }),
    "filter, OpenAI's conversations": way({ through: "filter", kept: "conversations" }),
    "filter, the caller's history": way({ through: "filter", kept: "history" }),
    "models, Responses": way({ through: "models" }),
    "models, chat completions": way({ through: "models", useResponses: false }),
    "models, OpenAI's conversations": way({ through: "models", kept: "conversations" }),
    "models, the provider's history": way({ through: "models", kept: "responses" }),
  },
});
