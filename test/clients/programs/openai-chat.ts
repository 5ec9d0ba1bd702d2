import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, type Session, weatherIn } from "../client-program.js";

type Messages = OpenAI.ChatCompletionMessageParam[];

const model = "gpt-5-mini";
const trip = z.object({ city: z.string(), days: z.number() });
const weather = {
  type: "function" as const,
  function: {
    name: "weather",
    description: "The weather in a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    parse: (json: string) => z.object({ city: z.string() }).parse(JSON.parse(json)),
    function: ({ city }: { city: string }) => weatherIn(city),
  },
};

const talk =
  (answer: (chats: OpenAI.Chat.Completions, messages: Messages) => Promise<unknown>): Conversing =>
  ({ base, headers }: Session) => {
    const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "the engine's", defaultHeaders: headers });
    const messages: Messages = [{ role: "system", content: INSTRUCTIONS }];
    return async (content) => {
      messages.push({ role: "user", content });
      return answer(client.chat.completions, messages);
    };
  };

/** The client's own loop of calls. */
const withTools = talk(async (chats, messages) => {
  const runner = chats.runTools({ model, messages: [...messages], tools: [weather] });
  const text = await runner.finalContent();
  messages.splice(0, messages.length, ...runner.messages);
  return text;
});

runProgram({
  client: "OpenAI's client, chats",
  api: "chat completions",
  uses: {
    json: talk(async (chats, messages) => {
      const { choices } = await chats.create({ model, messages });
      if (choices[0]) messages.push(choices[0].message);
      return choices[0]?.message.content;
    }),
    stream: talk(async (chats, messages) => {
      const stream = await chats.create({ model, messages, stream: true });
      let text = "";
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
      messages.push({ role: "assistant", content: text });
      return text;
    }),
    tools: withTools,
    steps: withTools,
    structured: talk(async (chats, messages) => {
      const { choices } = await chats.parse({ model, messages, response_format: zodResponseFormat(trip, "trip") });
      if (choices[0]) messages.push(choices[0].message);
      return choices[0]?.message.parsed;
    }),
  },
});
