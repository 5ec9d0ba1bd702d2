import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, type Session, weatherIn } from "../client-program.js";

const asked = { model: "gpt-5-mini", instructions: INSTRUCTIONS };
const trip = z.object({ city: z.string(), days: z.number() });
const place = z.object({ city: z.string() });
const tools = [zodResponsesFunction({ name: "weather", parameters: place })];
const clientOf = ({ base, headers }: Session) =>
  new OpenAI({ baseURL: `${base}/v1`, apiKey: "the engine's", defaultHeaders: headers });

type Input = OpenAI.Responses.ResponseInputItem[];
const outputOf = ({ call_id, arguments: json }: OpenAI.Responses.ResponseFunctionToolCall): Input[number] => ({
  type: "function_call_output",
  call_id,
  output: weatherIn(place.parse(JSON.parse(json)).city),
});

/** Sends the whole history with every request. */
const withHistory: Conversing = async (session) => {
  const client = clientOf(session);
  const input: Input = [];
  const answers: unknown[] = [];
  for (const content of session.questions) {
    input.push({ role: "user", content });
    for (;;) {
      const { output, output_text } = await client.responses.create({ ...asked, tools, input });
      input.push(...(output as Input));
      const calls = output.filter((item) => item.type === "function_call");
      input.push(...calls.map(outputOf));
      if (calls.length > 0) continue;
      answers.push(output_text);
      break;
    }
  }
  return answers;
};

/** Sends what is new, and the id of the response before. */
const byId: Conversing = async (session) => {
  const client = clientOf(session);
  const answers: unknown[] = [];
  let previous_response_id: string | null = null;
  for (const content of session.questions) {
    let input: Input = [{ role: "user", content }];
    while (input.length > 0) {
      const response: OpenAI.Responses.Response = await client.responses.create({
        ...asked,
        tools,
        input,
        previous_response_id,
      });
      previous_response_id = response.id;
      input = response.output.filter((item) => item.type === "function_call").map(outputOf);
      if (input.length === 0) answers.push(response.output_text);
    }
  }
  return answers;
};

runProgram({
  client: "OpenAI's client, responses",
  packages: ["openai"],
  api: "Responses",
  identity: "`defaultHeaders`",
  uses: {
    json: async (session) => {
      const client = clientOf(session);
      const answers: unknown[] = [];
      let previous_response_id: string | null = null;
      for (const input of session.questions) {
        const response: OpenAI.Responses.Response = await client.responses.create({
          ...asked,
          input,
          previous_response_id,
        });
        previous_response_id = response.id;
        answers.push(response.output_text);
      }
      return answers;
    },
    stream: async (session) => {
      const client = clientOf(session);
      const input: Input = [];
      const answers: unknown[] = [];
      for (const content of session.questions) {
        input.push({ role: "user", content });
        const stream = client.responses.stream({ ...asked, input });
        const { output, output_text } = await stream.finalResponse();
        input.push(...(output as Input));
        answers.push(output_text);
      }
      return answers;
    },
    tools: withHistory,
    steps: byId,
    structured: async (session) => {
      const client = clientOf(session);
      const answers: unknown[] = [];
      const input: Input = [];
      for (const content of session.questions) {
        input.push({ role: "user", content });
        const text = { format: zodTextFormat(trip, "trip") };
        const { output, output_parsed } = await client.responses.parse({ ...asked, input, text });
        input.push(...(output as Input));
        answers.push(output_parsed);
      }
      return answers;
    },
  },
});
