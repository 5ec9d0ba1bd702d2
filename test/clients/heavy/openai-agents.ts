import { Agent, type AgentInputItem, OpenAIProvider, Runner, tool, user } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, type Session, weatherIn } from "../client-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = tool({
  name: "weather",
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => weatherIn(city),
});
const PLANNER = { name: "Planner", instructions: INSTRUCTIONS, model: "gpt-5-mini" };
const runnerOf = ({ base, headers }: Session) => {
  const openAIClient = new OpenAI({ baseURL: `${base}/v1`, apiKey: "the engine's", defaultHeaders: headers });
  return new Runner({ modelProvider: new OpenAIProvider({ openAIClient }), tracingDisabled: true });
};

const talk =
  (options: object): Conversing =>
  (session) => {
    const agent = new Agent({ ...PLANNER, ...options });
    let history: AgentInputItem[] = [];
    return async (question) => {
      const result = await runnerOf(session).run(agent, [...history, user(question)]);
      history = result.history;
      return result.finalOutput;
    };
  };

runProgram({
  client: "OpenAI Agents",
  packages: ["@openai/agents"],
  api: "Responses",
  identity: "`defaultHeaders` of its client",
  uses: {
    json: talk({}),
    stream: (session) => {
      const agent = new Agent(PLANNER);
      let history: AgentInputItem[] = [];
      return async (question) => {
        const result = await runnerOf(session).run(agent, [...history, user(question)], { stream: true });
        let text = "";
        for await (const piece of result.toTextStream()) text += piece;
        await result.completed;
        history = result.history;
        return text;
      };
    },
    tools: talk({ tools: [weather] }),
    // The response's id stands for what was said before.
    steps: (session) => {
      const agent = new Agent({ ...PLANNER, tools: [weather] });
      let previous: { previousResponseId?: string } = {};
      return async (question) => {
        const result = await runnerOf(session).run(agent, question, previous);
        previous = result.lastResponseId === undefined ? {} : { previousResponseId: result.lastResponseId };
        return result.finalOutput;
      };
    },
    structured: talk({ outputType: trip }),
  },
});
