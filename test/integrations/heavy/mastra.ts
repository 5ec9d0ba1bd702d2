import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { memstemProcessor } from "memstem/mastra";
import { z } from "zod";
import { INSTRUCTIONS, weatherIn } from "../../clients/client-program.js";
import { type AdapterSession, type AdapterWay, type Holding, runAdapterProgram, tried } from "../adapter-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = createTool({
  id: "weather",
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => weatherIn(city),
});
const ids = { resource: "ana", thread: "trip" };

type Model = ConstructorParameters<typeof Agent>[0]["model"];
const named = ({ engine }: AdapterSession): Model => ({ id: "memstem/any", url: engine, apiKey: "the engine's" });
const openAI = ({ engine }: AdapterSession) => createOpenAI({ baseURL: engine, apiKey: "the engine's" });
const chats = (session: AdapterSession): Model => openAI(session).chat("gpt-5-mini");
const responses = (session: AdapterSession): Model => openAI(session)("gpt-5-mini");

function way(modelOf: (session: AdapterSession) => Model, storage: () => InMemoryStore | LibSQLStore): AdapterWay {
  const held =
    (how: { readonly stream?: boolean; readonly schema?: typeof trip; readonly lastMessages?: number } = {}): Holding =>
    async (session, memstem) => {
      const errors: unknown[] = [];
      // Named by Mastra's memory.
      const { onError } = tried(memstem, errors);
      const compose = { history: "extended", historyRatio: 100 } as const;
      const memory = new Memory({ storage: storage(), options: { lastMessages: how.lastMessages ?? 100 } });
      const agent = new Agent({
        id: "planner",
        name: "Planner",
        instructions: INSTRUCTIONS,
        model: modelOf(session),
        tools: how.schema === undefined ? { weather } : {},
        memory,
        inputProcessors: [memstemProcessor({ memstem, compose, ...(onError === undefined ? {} : { onError }) })],
      });
      const answers: unknown[] = [];
      for (const question of session.questions) {
        if (how.stream) {
          const result = await agent.stream(question, { memory: ids, maxSteps: 5 });
          let text = "";
          for await (const piece of result.textStream) text += piece;
          answers.push(text);
        } else if (how.schema) {
          const result = await agent.generate(question, { memory: ids, structuredOutput: { schema: how.schema } });
          answers.push(result.object);
        } else answers.push((await agent.generate(question, { memory: ids, maxSteps: 5 })).text);
      }
      if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
      const { messages } = await memory.recall({ threadId: ids.thread, resourceId: ids.resource });
      return { answers, stored: JSON.stringify(messages) };
    };
  return {
    keepsPrefix: true,
    uses: {
      json: held(),
      stream: held({ stream: true }),
      tools: held(),
      steps: held({ stream: true }),
      structured: held({ schema: trip }),
      window: held({ lastMessages: 4 }),
    },
  };
}

const inMemory = () => new InMemoryStore();
const { stream: _, steps: __, ...unstreamed } = way(named, inMemory).uses;

runAdapterProgram({
  packages: ["@mastra/core", "@mastra/memory"],
  ways: {
    "chat completions, in memory": way(chats, inMemory),
    "Responses, LibSQL": way(responses, () => new LibSQLStore({ id: "stored", url: ":memory:" })),
    // Mastra asks no usage of streams of a model that is named by its address.
    "an address, in memory": { ...way(named, inMemory), uses: unstreamed },
  },
});
