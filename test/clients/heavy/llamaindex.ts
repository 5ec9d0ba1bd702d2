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
const started = (): ChatMessage[] => [{ role: "system", content: INSTRUCTIONS }];

const withTools: Conversing = async (session) => {
  const planner = agent({ llm: modelOf(session), tools: [weather], systemPrompt: INSTRUCTIONS });
  let chatHistory: ChatMessage[] = [];
  const answers: unknown[] = [];
  for (const question of session.questions) {
    const { data } = await planner.run(question, { chatHistory });
    chatHistory = data.state?.memory === undefined ? chatHistory : await data.state.memory.get();
    answers.push(data.result);
  }
  return answers;
};

runProgram({
  client: "LlamaIndex",
  packages: ["llamaindex", "@llamaindex/openai"],
  api: "chat completions",
  identity: "`additionalSessionOptions`",
  uses: {
    json: async (session) => {
      const model = modelOf(session);
      const messages = started();
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const { message } = await model.chat({ messages });
        messages.push(message);
        answers.push(message.content);
      }
      return answers;
    },
    stream: async (session) => {
      const model = modelOf(session);
      const messages = started();
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        let text = "";
        for await (const { delta } of await model.chat({ messages, stream: true })) text += delta;
        messages.push({ role: "assistant", content: text });
        answers.push(text);
      }
      return answers;
    },
    tools: withTools,
    steps: withTools,
    structured: async (session) => {
      const model = modelOf(session);
      const messages = started();
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const { message } = await model.chat({ messages, responseFormat: trip });
        messages.push(message);
        answers.push(JSON.parse(String(message.content)));
      }
      return answers;
    },
  },
});
