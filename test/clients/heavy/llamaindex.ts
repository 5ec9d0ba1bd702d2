import { OpenAI } from "@llamaindex/openai";
import { agent } from "@llamaindex/workflow";
import { type ChatMessage, tool } from "llamaindex";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, type Session, weatherIn } from "../client-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = tool({
  name: "weather",
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => weatherIn(city),
});
const modelOf = ({ base, headers }: Session) =>
  new OpenAI({
    model: "gpt-4.1-mini",
    apiKey: "the engine's",
    baseURL: `${base}/v1`,
    additionalSessionOptions: { defaultHeaders: headers },
  });

const talk =
  (answer: (model: OpenAI, messages: ChatMessage[]) => Promise<unknown>): Conversing =>
  (session) => {
    const messages: ChatMessage[] = [{ role: "system", content: INSTRUCTIONS }];
    return async (content) => {
      messages.push({ role: "user", content });
      return answer(modelOf(session), messages);
    };
  };

const withTools: Conversing = (session) => {
  const planner = agent({ llm: modelOf(session), tools: [weather], systemPrompt: INSTRUCTIONS });
  let chatHistory: ChatMessage[] = [];
  return async (question) => {
    const { data } = await planner.run(question, { chatHistory });
    chatHistory = data.state?.memory === undefined ? chatHistory : await data.state.memory.get();
    return data.result;
  };
};

runProgram({
  client: "LlamaIndex",
  packages: ["llamaindex", "@llamaindex/openai"],
  api: "chat completions",
  identity: "`additionalSessionOptions`",
  uses: {
    json: talk(async (model, messages) => {
      const { message } = await model.chat({ messages });
      messages.push(message);
      return message.content;
    }),
    stream: talk(async (model, messages) => {
      let text = "";
      for await (const { delta } of await model.chat({ messages, stream: true })) text += delta;
      messages.push({ role: "assistant", content: text });
      return text;
    }),
    tools: withTools,
    steps: withTools,
    structured: talk(async (model, messages) => {
      const { message } = await model.chat({ messages, responseFormat: trip });
      messages.push(message);
      return JSON.parse(String(message.content));
    }),
  },
});
