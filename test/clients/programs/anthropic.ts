import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { INSTRUCTIONS, runProgram, type Session, weatherIn } from "../client-program.js";

const asked = { model: "claude-opus-4-8", max_tokens: 500, system: INSTRUCTIONS };
const trip = z.object({ city: z.string(), days: z.number() });
const place = z.object({ city: z.string() });
const clientOf = ({ base, headers }: Session) =>
  new Anthropic({ baseURL: base, apiKey: "the engine's", defaultHeaders: headers });
const textOf = (content: readonly Anthropic.ContentBlock[]) =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

runProgram({
  client: "Anthropic's client",
  packages: ["@anthropic-ai/sdk"],
  api: "Messages",
  identity: "`defaultHeaders`",
  uses: {
    json: async (session) => {
      const client = clientOf(session);
      const messages: Anthropic.MessageParam[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const message = await client.messages.create({ ...asked, messages });
        messages.push({ role: "assistant", content: message.content });
        answers.push(textOf(message.content));
      }
      return answers;
    },
    stream: async (session) => {
      const client = clientOf(session);
      const messages: Anthropic.MessageParam[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const message = await client.messages.stream({ ...asked, messages }).finalMessage();
        messages.push({ role: "assistant", content: message.content });
        answers.push(textOf(message.content));
      }
      return answers;
    },
    tools: async (session) => {
      const client = clientOf(session);
      const input_schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };
      const tools = [{ name: "weather", description: "The weather in a city.", input_schema }];
      const messages: Anthropic.MessageParam[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        for (;;) {
          const message = await client.messages.create({ ...asked, tools, messages });
          messages.push({ role: "assistant", content: message.content });
          const results = message.content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
            block.type === "tool_use"
              ? [{ type: "tool_result", tool_use_id: block.id, content: weatherIn(place.parse(block.input).city) }]
              : [],
          );
          if (results.length > 0) {
            messages.push({ role: "user", content: results });
            continue;
          }
          answers.push(textOf(message.content));
          break;
        }
      }
      return answers;
    },
    steps: async (session) => {
      const client = clientOf(session);
      const weather = betaZodTool({
        name: "weather",
        description: "The weather in a city.",
        inputSchema: place,
        run: ({ city }) => weatherIn(city),
      });
      let messages: Anthropic.Beta.BetaMessageParam[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const runner = client.beta.messages.toolRunner({ ...asked, messages, tools: [weather] });
        const message = await runner.runUntilDone();
        messages = [...runner.params.messages];
        answers.push(message.content.map((block) => (block.type === "text" ? block.text : "")).join(""));
      }
      return answers;
    },
    structured: async (session) => {
      const client = clientOf(session);
      const messages: Anthropic.MessageParam[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const output_config = { format: zodOutputFormat(trip) };
        const message = await client.messages.parse({ ...asked, messages, output_config });
        messages.push({ role: "assistant", content: message.content as Anthropic.ContentBlock[] });
        answers.push(message.parsed_output);
      }
      return answers;
    },
  },
});
