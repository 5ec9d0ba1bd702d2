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

export const trip = z.object({ city: z.string(), days: z.number() });
export const weather = tool(({ city }: { city: string }) => weatherIn(city), {
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
  const talk =
    (answer: (model: ChatOpenAI, messages: BaseMessage[]) => Promise<unknown>): Conversing =>
    (session) => {
      const messages: BaseMessage[] = [new SystemMessage(INSTRUCTIONS)];
      return async (question) => {
        messages.push(new HumanMessage(question));
        return answer(langchainModel(name, session), messages);
      };
    };
  const withTools = talk(async (model, messages) => {
    for (;;) {
      const answer = await model.bindTools([weather]).invoke(messages);
      messages.push(answer);
      for (const call of answer.tool_calls ?? []) {
        const result: unknown = await weather.invoke(call);
        if (result instanceof ToolMessage) messages.push(result);
      }
      if ((answer.tool_calls ?? []).length === 0) return answer.text;
    }
  });
  return {
    json: talk(async (model, messages) => {
      const answer = await model.invoke(messages);
      messages.push(answer);
      return answer.text;
    }),
    stream: talk(async (model, messages) => {
      let answer: AIMessageChunk | null = null;
      for await (const chunk of await model.stream(messages)) answer = answer === null ? chunk : answer.concat(chunk);
      if (answer !== null) messages.push(answer);
      return answer?.text;
    }),
    tools: withTools,
    steps: withTools,
    structured: talk(async (model, messages) => {
      const { raw, parsed } = await model.withStructuredOutput(trip, { includeRaw: true }).invoke(messages);
      messages.push(raw);
      return parsed;
    }),
  };
}
