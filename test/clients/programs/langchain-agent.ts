import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createAgent } from "langchain";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, weatherIn } from "../client-program.js";
import { langchainModel } from "../langchain-uses.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = tool(({ city }: { city: string }) => weatherIn(city), {
  name: "weather",
  description: "The weather in a city.",
  schema: z.object({ city: z.string() }),
});

const invoked: Conversing = async (session) => {
  const model = langchainModel("gpt-5-mini", session);
  const agent = createAgent({ model, tools: [weather], systemPrompt: INSTRUCTIONS });
  let messages: BaseMessage[] = [];
  const answers: unknown[] = [];
  for (const question of session.questions) {
    const state = await agent.invoke({ messages: [...messages, new HumanMessage(question)] });
    messages = state.messages;
    answers.push(messages.at(-1)?.text);
  }
  return answers;
};

runProgram({
  client: "LangChain, agents",
  packages: ["langchain", "@langchain/openai"],
  api: "chat completions",
  identity: "`configuration.defaultHeaders`",
  uses: {
    json: invoked,
    stream: async (session) => {
      const model = langchainModel("gpt-5-mini", session);
      const agent = createAgent({ model, tools: [weather], systemPrompt: INSTRUCTIONS });
      let messages: BaseMessage[] = [];
      const answers: unknown[] = [];
      for (const question of session.questions) {
        const asked = { messages: [...messages, new HumanMessage(question)] };
        for await (const state of await agent.stream(asked, { streamMode: "values" })) messages = state.messages;
        answers.push(messages.at(-1)?.text);
      }
      return answers;
    },
    tools: invoked,
    steps: invoked,
    structured: async (session) => {
      const model = langchainModel("gpt-5-mini", session);
      const agent = createAgent({ model, tools: [], systemPrompt: INSTRUCTIONS, responseFormat: trip });
      let messages: BaseMessage[] = [];
      const answers: unknown[] = [];
      for (const question of session.questions) {
        const state = await agent.invoke({ messages: [...messages, new HumanMessage(question)] });
        messages = state.messages;
        answers.push(state.structuredResponse);
      }
      return answers;
    },
  },
});
