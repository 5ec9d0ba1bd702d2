import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, weatherIn } from "../client-program.js";

type Messages = Anthropic.MessageParam[];

const asked = { model: "claude-opus-4-8", max_tokens: 500, system: INSTRUCTIONS };
const trip = z.object({ city: z.string(), days: z.number() });
const place = z.object({ city: z.string() });
const textOf = (content: readonly (Anthropic.ContentBlock | Anthropic.Beta.BetaContentBlock)[]) =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

const talk =
  (answer: (client: Anthropic, messages: Messages) => Promise<unknown>): Conversing =>
  ({ base, headers }) => {
    const client = new Anthropic({ baseURL: base, apiKey: "the engine's", defaultHeaders: headers });
    const messages: Messages = [];
    return async (content) => {
      messages.push({ role: "user", content });
      return answer(client, messages);
    };
  };

runProgram({
  client: "Anthropic's client",
  api: "Messages",
  uses: {
    json: talk(async (client, messages) => {
      const { content } = await client.messages.create({ ...asked, messages });
      messages.push({ role: "assistant", content });
      return textOf(content);
    }),
    stream: talk(async (client, messages) => {
      const { content } = await client.messages.stream({ ...asked, messages }).finalMessage();
      messages.push({ role: "assistant", content });
      return textOf(content);
    }),
    tools: talk(async (client, messages) => {
      const input_schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };
      const tools = [{ name: "weather", description: "The weather in a city.", input_schema }];
      for (;;) {
        const { content } = await client.messages.create({ ...asked, tools, messages });
        messages.push({ role: "assistant", content });
        const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
          block.type === "tool_use"
            ? [{ type: "tool_result", tool_use_id: block.id, content: weatherIn(place.parse(block.input).city) }]
            : [],
        );
        if (results.length === 0) return textOf(content);
        messages.push({ role: "user", content: results });
      }
    }),
    steps: talk(async (client, messages) => {
      const weather = betaZodTool({
        name: "weather",
        description: "The weather in a city.",
        inputSchema: place,
        run: ({ city }) => weatherIn(city),
      });
      const runner = client.beta.messages.toolRunner({ ...asked, messages: [...messages], tools: [weather] });
      const { content } = await runner.runUntilDone();
      messages.splice(0, messages.length, ...(runner.params.messages as Messages));
      return textOf(content);
    }),
    structured: talk(async (client, messages) => {
      const output_config = { format: zodOutputFormat(trip) };
      const message = await client.messages.parse({ ...asked, messages, output_config });
      messages.push({ role: "assistant", content: message.content as Anthropic.ContentBlock[] });
      return message.parsed_output;
    }),
  },
});
