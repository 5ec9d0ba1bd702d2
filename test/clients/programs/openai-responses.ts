import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, weatherIn } from "../client-program.js";

type Input = OpenAI.Responses.ResponseInputItem[];
type Response = OpenAI.Responses.Response;

const asked = { model: "gpt-5-mini", instructions: INSTRUCTIONS };
const trip = z.object({ city: z.string(), days: z.number() });
const place = z.object({ city: z.string() });
const tools = [zodResponsesFunction({ name: "weather", parameters: place })];

const resultsOf = (output: Response["output"]): Input =>
  output
    .filter((item) => item.type === "function_call")
    .map(({ call_id, arguments: json }) => ({
      type: "function_call_output",
      call_id,
      output: weatherIn(place.parse(JSON.parse(json)).city),
    }));

const talk =
  (begin: (responses: OpenAI.Responses) => (question: string) => Promise<unknown>): Conversing =>
  ({ base, headers }) =>
    begin(new OpenAI({ baseURL: `${base}/v1`, apiKey: "the engine's", defaultHeaders: headers }).responses);

/** Sends the whole history with every request. */
const withHistory = (answer: (responses: OpenAI.Responses, input: Input) => Promise<unknown>) =>
  talk((responses) => {
    const input: Input = [];
    return async (content) => {
      input.push({ role: "user", content });
      return answer(responses, input);
    };
  });

runProgram({
  client: "OpenAI's client, responses",
  api: "Responses",
  uses: {
    json: talk((responses) => {
      let previous_response_id: string | null = null;
      return async (input) => {
        const response: Response = await responses.create({ ...asked, input, previous_response_id });
        previous_response_id = response.id;
        return response.output_text;
      };
    }),
    stream: withHistory(async (responses, input) => {
      const { output, output_text } = await responses.stream({ ...asked, input }).finalResponse();
      input.push(...(output as Input));
      return output_text;
    }),
    tools: withHistory(async (responses, input) => {
      for (;;) {
        const { output, output_text } = await responses.create({ ...asked, tools, input });
        const results = resultsOf(output);
        input.push(...(output as Input), ...results);
        if (results.length === 0) return output_text;
      }
    }),
    // Sends what is new, and the id of the response before.
    steps: talk((responses) => {
      let previous_response_id: string | null = null;
      return async (content) => {
        let input: Input = [{ role: "user", content }];
        for (;;) {
          const response: Response = await responses.create({ ...asked, tools, input, previous_response_id });
          previous_response_id = response.id;
          input = resultsOf(response.output);
          if (input.length === 0) return response.output_text;
        }
      };
    }),
    structured: withHistory(async (responses, input) => {
      const text = { format: zodTextFormat(trip, "trip") };
      const { output, output_parsed } = await responses.parse({ ...asked, input, text });
      input.push(...(output as Input));
      return output_parsed;
    }),
  },
});
