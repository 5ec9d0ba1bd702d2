import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, type Session, weatherIn } from "../client-program.js";

const model = "gpt-5-mini";
const trip = z.object({ city: z.string(), days: z.number() });
const clientOf = ({ base, headers }: Session) =>
  new OpenAI({ baseURL: `${base}/v1`, apiKey: "the engine's", defaultHeaders: headers });
const started = (): OpenAI.ChatCompletionMessageParam[] => [{ role: "system", content: INSTRUCTIONS }];

/** The client's own loop of calls. */
const withTools: Conversing = async (session) => {
  const client = clientOf(session);
  let messages = started();
  const answers: unknown[] = [];
  for (const content of session.questions) {
    messages.push({ role: "user", content });
    const runner = client.chat.completions.runTools({
      model,
      messages,
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            description: "The weather in a city.",
            parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
            parse: (json: string) => z.object({ city: z.string() }).parse(JSON.parse(json)),
            function: ({ city }: { city: string }) => weatherIn(city),
          },
        },
      ],
    });
    answers.push(await runner.finalContent());
    messages = [...runner.messages];
  }
  return answers;
};

runProgram({
  client: "OpenAI's client, chats",
  packages: ["openai"],
  api: "chat completions",
  identity: "`defaultHeaders`",
  uses: {
    json: async (session) => {
      const client = clientOf(session);
      const messages = started();
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const { choices } = await client.chat.completions.create({ model, messages });
        if (choices[0]) messages.push(choices[0].message);
        answers.push(choices[0]?.message.content);
      }
      return answers;
    },
    stream: async (session) => {
      const client = clientOf(session);
      const messages = started();
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const stream = await client.chat.completions.create({ model, messages, stream: true });
        let text = "";
        for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
        messages.push({ role: "assistant", content: text });
        answers.push(text);
      }
      return answers;
    },
    tools: withTools,
    steps: withTools,
    structured: async (session) => {
      const client = clientOf(session);
      const messages = started();
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const response_format = zodResponseFormat(trip, "trip");
        const { choices } = await client.chat.completions.parse({ model, messages, response_format });
        if (choices[0]) messages.push(choices[0].message);
        answers.push(choices[0]?.message.parsed);
      }
      return answers;
    },
  },
});
