import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { createAgent } from "langchain";
import { type Conversing, INSTRUCTIONS, runProgram } from "../client-program.js";
import { langchainModel, trip, weather } from "../langchain-uses.js";

const MODEL = "gpt-5-mini";

const invoked: Conversing = (session) => {
  const model = langchainModel(MODEL, session);
  const agent = createAgent({ model, tools: [weather], systemPrompt: INSTRUCTIONS });
  let messages: BaseMessage[] = [];
  return async (question) => {
    const state = await agent.invoke({ messages: [...messages, new HumanMessage(question)] });
    messages = state.messages;
    return messages.at(-1)?.text;
  };
};

runProgram({
  client: "LangChain, agents",
  api: "chat completions",
  uses: {
    json: invoked,
    stream: (session) => {
      const model = langchainModel(MODEL, session);
      const agent = createAgent({ model, tools: [weather], systemPrompt: INSTRUCTIONS });
      let messages: BaseMessage[] = [];
      return async (question) => {
        const asked = { messages: [...messages, new HumanMessage(question)] };
        for await (const state of await agent.stream(asked, { streamMode: "values" })) messages = state.messages;
        return messages.at(-1)?.text;
      };
    },
    tools: invoked,
    steps: invoked,
    structured: (session) => {
      const model = langchainModel(MODEL, session);
      const agent = createAgent({ model, tools: [], systemPrompt: INSTRUCTIONS, responseFormat: trip });
      let messages: BaseMessage[] = [];
      return async (question) => {
        const state = await agent.invoke({ messages: [...messages, new HumanMessage(question)] });
        messages = state.messages;
        return state.structuredResponse;
      };
    },
  },
});
