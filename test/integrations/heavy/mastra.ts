import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { memprefixProcessor } from "memprefix/mastra";
import { z } from "zod";
import { INSTRUCTIONS, weatherIn } from "../../clients/client-program.js";
import { type AdapterSession, type AdapterWay, type Holding, runAdapterProgram } from "../adapter-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = createTool({
  id: "weather",
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => weatherIn(city),
});
type Model = ConstructorParameters<typeof Agent>[0]["model"];
const named = ({ engine }: AdapterSession): Model => ({ id: "memprefix/any", url: engine, apiKey: "the engine's" });
const openAI = ({ engine }: AdapterSession) => createOpenAI({ baseURL: engine, apiKey: "the engine's" });
const chats = (session: AdapterSession): Model => openAI(session).chat("gpt-5-mini");
const responses = (session: AdapterSession): Model => openAI(session)("gpt-5-mini");

interface Use {
  readonly stream?: boolean;
  readonly schema?: typeof trip;
  readonly lastMessages?: number;
  /** Conversations that are had at once. */
  readonly threads?: readonly string[];
}

/** The user and the conversation are those of Mastra's memory. */
const held =
  (modelOf: (session: AdapterSession) => Model, storage: () => InMemoryStore | LibSQLStore, use: Use): Holding =>
  async (session, memprefix) => {
    const { stream = false, schema, lastMessages = 100, threads = ["trip"] } = use;
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    const compose = { history: "extended", historyRatio: 100 } as const;
    const memory = new Memory({ storage: storage(), options: { lastMessages } });
    const agent = new Agent({
      id: "planner",
      name: "Planner",
      instructions: INSTRUCTIONS,
      model: modelOf(session),
      tools: schema === undefined ? { weather } : {},
      memory,
      inputProcessors: [memprefixProcessor({ memprefix, compose, onError })],
    });
    const talk = async (thread: string) => {
      const asked = { memory: { resource: "ana", thread }, maxSteps: 5 };
      const answers: unknown[] = [];
      for (const question of session.questions) {
        if (stream) {
          const result = await agent.stream(question, asked);
          let text = "";
          for await (const piece of result.textStream) text += piece;
          answers.push(text);
        } else if (schema) {
          answers.push((await agent.generate(question, { ...asked, structuredOutput: { schema } })).object);
        } else answers.push((await agent.generate(question, asked)).text);
      }
      const { messages } = await memory.recall({ threadId: thread, resourceId: "ana" });
      return { answers, stored: JSON.stringify(messages) };
    };
    const [trip] = await Promise.all(threads.map(talk));
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
    if (trip === undefined) throw new Error("no conversation");
    return trip;
  };

function way(modelOf: (session: AdapterSession) => Model, storage: () => InMemoryStore | LibSQLStore): AdapterWay {
  const hold = (use: Use) => held(modelOf, storage, use);
  return {
    json: hold({}),
    stream: hold({ stream: true }),
    tools: hold({}),
    steps: hold({ stream: true }),
    structured: hold({ schema: trip }),
    window: hold({ lastMessages: 4 }),
    together: hold({ stream: true, threads: ["trip", "walk"] }),
  };
}

const inMemory = () => new InMemoryStore();
const { stream: _stream, steps: _steps, together: _together, ...unstreamed } = way(named, inMemory);

runAdapterProgram({
  packages: ["@mastra/core", "@mastra/memory"],
  ways: {
    "chat completions, in memory": way(chats, inMemory),
    "Responses, LibSQL": way(responses, () => new LibSQLStore({ id: "stored", url: ":memory:" })),
    // Mastra asks no usage of streams of a model that is named by its address.
    "an address, in memory": unstreamed,
  },
});
