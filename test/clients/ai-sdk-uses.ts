import { generateText, type LanguageModel, type ModelMessage, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { type ClientProgram, type Conversing, INSTRUCTIONS, type Session, weatherIn } from "./client-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const tools = {
  weather: tool({
    description: "The weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => weatherIn(city),
  }),
};

interface Prompt {
  readonly model: LanguageModel;
  readonly system: string;
  readonly messages: ModelMessage[];
}

/** A call's answer, in the AI SDK's versions 6 and 7. */
interface Answered {
  readonly response: PromiseLike<{ readonly messages: ModelMessage[] }> | { readonly messages: ModelMessage[] };
  readonly responseMessages?: PromiseLike<ModelMessage[]> | ModelMessage[];
}

/** What was said in all steps of a call. From version 7 on, `response` is the last step's. */
async function saidIn(answered: Answered): Promise<ModelMessage[]> {
  return (await answered.responseMessages) ?? (await answered.response).messages;
}

/** What people do with the AI SDK, with the model of any provider. */
export function aiSdkUses(modelOf: (session: Session) => LanguageModel): ClientProgram["uses"] {
  const talk =
    (call: (prompt: Prompt) => Promise<readonly [answer: unknown, result: Answered]>): Conversing =>
    (session) => {
      const messages: ModelMessage[] = [];
      return async (content) => {
        messages.push({ role: "user", content });
        const [answer, result] = await call({ model: modelOf(session), system: INSTRUCTIONS, messages });
        messages.push(...(await saidIn(result)));
        return answer;
      };
    };
  return {
    json: talk(async (prompt) => {
      const result = await generateText(prompt);
      return [result.text, result];
    }),
    stream: talk(async (prompt) => {
      const result = streamText(prompt);
      let text = "";
      for await (const piece of result.textStream) text += piece;
      return [text, result];
    }),
    tools: talk(async (prompt) => {
      const result = await generateText({ ...prompt, tools, stopWhen: stepCountIs(5) });
      return [result.text, result];
    }),
    steps: talk(async (prompt) => {
      const result = streamText({ ...prompt, tools, stopWhen: stepCountIs(5) });
      await result.consumeStream();
      return [await result.text, result];
    }),
    structured: talk(async (prompt) => {
      const result = await generateText({ ...prompt, output: Output.object({ schema: trip }) });
      return [result.output, result];
    }),
  };
}
