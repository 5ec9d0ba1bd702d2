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
const agent = new Agent({ name: "Planner", instructions: INSTRUCTIONS, model: "gpt-5-mini" });
const runnerOf = ({ base, headers }: Session) => {
  const openAIClient = new OpenAI({ baseURL: `${base}/v1`, apiKey: "the engine's", defaultHeaders: headers });
  return new Runner({ modelProvider: new OpenAIProvider({ openAIClient }), tracingDisabled: true });
};

const withTools: Conversing = async (session) => {
  const runner = runnerOf(session);
  const agent = new Agent({ name: "Planner", instructions: INSTRUCTIONS, model: "gpt-5-mini", tools: [weather] });
  let history: AgentInputItem[] = [];
  const answers: unknown[] = [];
  for (const question of session.questions) {
    const result = await runner.run(agent, [...history, user(question)]);
    history = result.history;
    answers.push(result.finalOutput);
  }
  return answers;
};

runProgram({
  client: "OpenAI Agents",
  packages: ["@openai/agents"],
  api: "Responses",
  identity: "`defaultHeaders` of its client",
  uses: {
    json: async (session) => {
      const runner = runnerOf(session);
      let history: AgentInputItem[] = [];
      const answers: unknown[] = [];
      for (const question of session.questions) {
        const result = await runner.run(agent, [...history, user(question)]);
        history = result.history;
        answers.push(result.finalOutput);
      }
      return answers;
    },
    stream: async (session) => {
      const runner = runnerOf(session);
      let history: AgentInputItem[] = [];
      const answers: unknown[] = [];
      for (const question of session.questions) {
        const result = await runner.run(agent, [...history, user(question)], { stream: true });
        let text = "";
        for await (const piece of result.toTextStream()) text += piece;
        await result.completed;
        history = result.history;
        answers.push(text);
      }
      return answers;
    },
    tools: withTools,
    // The response's id stands for what was said before.
    steps: async (session) => {
      const runner = runnerOf(session);
      const agent = new Agent({ name: "Planner", instructions: INSTRUCTIONS, model: "gpt-5-mini", tools: [weather] });
      let previousResponseId: string | undefined;
      const answers: unknown[] = [];
      for (const question of session.questions) {
        const result = await runner.run(
          agent,
          question,
          previousResponseId === undefined ? {} : { previousResponseId },
        );
        previousResponseId = result.lastResponseId;
        answers.push(result.finalOutput);
      }
      return answers;
    },
    structured: async (session) => {
      const runner = runnerOf(session);
      const agent = new Agent({ name: "Planner", instructions: INSTRUCTIONS, model: "gpt-5-mini", outputType: trip });
      let history: AgentInputItem[] = [];
      const answers: unknown[] = [];
      for (const question of session.questions) {
        const result = await runner.run(agent, [...history, user(question)]);
        history = result.history;
        answers.push(result.finalOutput);
      }
      return answers;
    },
  },
});
