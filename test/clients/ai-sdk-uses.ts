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
  const withTools: Conversing = async (session) => {
    const messages: ModelMessage[] = [];
    const answers: unknown[] = [];
    for (const content of session.questions) {
      messages.push({ role: "user", content });
      const model = modelOf(session);
      const stopWhen = stepCountIs(5);
      const result = await generateText({ model, system: INSTRUCTIONS, messages, tools, stopWhen });
      messages.push(...(await saidIn(result)));
      answers.push(result.text);
    }
    return answers;
  };
  return {
    json: async (session) => {
      const messages: ModelMessage[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const result = await generateText({ model: modelOf(session), system: INSTRUCTIONS, messages });
        messages.push(...(await saidIn(result)));
        answers.push(result.text);
      }
      return answers;
    },
    stream: async (session) => {
      const messages: ModelMessage[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const result = streamText({ model: modelOf(session), system: INSTRUCTIONS, messages });
        let text = "";
        for await (const piece of result.textStream) text += piece;
        messages.push(...(await saidIn(result)));
        answers.push(text);
      }
      return answers;
    },
    tools: withTools,
    steps: async (session) => {
      const messages: ModelMessage[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const model = modelOf(session);
        const result = streamText({ model, system: INSTRUCTIONS, messages, tools, stopWhen: stepCountIs(5) });
        await result.consumeStream();
        messages.push(...(await saidIn(result)));
        answers.push(await result.text);
      }
      return answers;
    },
    structured: async (session) => {
      const messages: ModelMessage[] = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        messages.push({ role: "user", content });
        const output = Output.object({ schema: trip });
        const result = await generateText({ model: modelOf(session), system: INSTRUCTIONS, messages, output });
        messages.push(...(await saidIn(result)));
        answers.push(result.output);
      }
      return answers;
    },
  };
}
