import {
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import { type ClientProgram, type Conversing, INSTRUCTIONS, type Session, weatherIn } from "./client-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = tool(({ city }: { city: string }) => weatherIn(city), {
  name: "weather",
  description: "The weather in a city.",
  schema: z.object({ city: z.string() }),
});

/** LangChain's model of OpenAI's, at the service's address. */
export function langchainModel(model: string, { base, headers }: Session): ChatOpenAI {
  const configuration = { baseURL: `${base}/v1`, defaultHeaders: headers };
  return new ChatOpenAI({ model, apiKey: "the engine's", configuration });
}

/** What people do with LangChain's model, which asks by the API that suits the model's name. */
export function langchainUses(name: string): ClientProgram["uses"] {
  const withTools: Conversing = async (session) => {
    const model = langchainModel(name, session).bindTools([weather]);
    const messages: BaseMessage[] = [new SystemMessage(INSTRUCTIONS)];
    const answers: unknown[] = [];
    for (const question of session.questions) {
      messages.push(new HumanMessage(question));
      for (;;) {
        const answer = await model.invoke(messages);
        messages.push(answer);
        for (const call of answer.tool_calls ?? []) {
          const result: unknown = await weather.invoke(call);
          if (result instanceof ToolMessage) messages.push(result);
        }
        if ((answer.tool_calls ?? []).length > 0) continue;
        answers.push(answer.text);
        break;
      }
    }
    return answers;
  };
  return {
    json: async (session) => {
      const model = langchainModel(name, session);
      const messages: BaseMessage[] = [new SystemMessage(INSTRUCTIONS)];
      const answers: unknown[] = [];
      for (const question of session.questions) {
        messages.push(new HumanMessage(question));
        const answer = await model.invoke(messages);
        messages.push(answer);
        answers.push(answer.text);
      }
      return answers;
    },
    stream: async (session) => {
      const model = langchainModel(name, session);
      const messages: BaseMessage[] = [new SystemMessage(INSTRUCTIONS)];
      const answers: unknown[] = [];
      for (const question of session.questions) {
        messages.push(new HumanMessage(question));
        let answer: AIMessageChunk | null = null;
        for await (const chunk of await model.stream(messages)) answer = answer === null ? chunk : answer.concat(chunk);
        if (answer !== null) messages.push(answer);
        answers.push(answer?.text);
      }
      return answers;
    },
    tools: withTools,
    steps: withTools,
    structured: async (session) => {
      const model = langchainModel(name, session).withStructuredOutput(trip, { includeRaw: true });
      const messages: BaseMessage[] = [new SystemMessage(INSTRUCTIONS)];
      const answers: unknown[] = [];
      for (const question of session.questions) {
        messages.push(new HumanMessage(question));
        const { raw, parsed } = await model.invoke(messages);
        messages.push(raw);
        answers.push(parsed);
      }
      return answers;
    },
  };
}
