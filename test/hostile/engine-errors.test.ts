/*
 * Attacked: what an engine says of an error, by every API: gateways, FastAPI, Gemini and servers of Anthropic's API write errors in forms that
 * no API has. Held: each comes byte for byte, with its status, within an answer and in a stream too.
 */
import { describe, expect, it } from "vitest";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";

const SAID = "The temperature is too high.";

/** An error's body, and its status. */
const FORMS: readonly (readonly [string, number, unknown])[] = [
  ["OpenAI's", 400, { error: { message: SAID, type: "invalid_request_error", param: "temperature", code: null } }],
  ["vLLM's older one", 400, { object: "error", message: SAID, type: "BadRequestError", code: 400 }],
  ["Anthropic's", 400, { type: "error", error: { type: "invalid_request_error", message: SAID } }],
  ["Anthropic's without its type, as gateways have it", 529, { error: { type: "overloaded_error", message: SAID } }],
  ["Bedrock's", 400, { message: SAID }],
  ["FastAPI's of a field", 422, { detail: [{ loc: ["body", "temperature"], msg: SAID, type: "less_than_equal" }] }],
  ["FastAPI's", 400, { detail: SAID }],
  ["FastAPI's around another", 400, { detail: { error: { message: SAID } } }],
  ["Gemini's", 400, [{ error: { code: 400, message: SAID, status: "INVALID_ARGUMENT" } }]],
  ["Cloudflare's", 400, { success: false, errors: [{ code: 5004, message: SAID }], result: null }],
  ["Text Generation Inference's", 422, { error: SAID, error_type: "validation" }],
  ["a gateway's around another", 502, { error: { error: { message: SAID } } }],
  ["a list of texts", 400, { errors: [SAID] }],
  ["a flag and a text", 400, { error: true, reason: SAID }],
  ["a text alone", 400, SAID],
];
/** Errors in answers that begin with 200. */
const WITHIN: readonly (readonly [string, object])[] = [
  ["in an object", { error: { message: SAID, code: 500 } }],
  ["in a text", { error: SAID }],
  ["in an object within a list", { error: { errors: [{ message: SAID }] } }],
];
const QUESTION = [{ role: "user", content: "Tea?" }];
const DOORS = [
  ["/v1/chat/completions", { messages: QUESTION }],
  ["/v1/messages", { max_tokens: 9, messages: QUESTION }],
  ["/v1/responses", { input: "Tea?" }],
] as const;

describe("an engine's error", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });
  const comes = async (status: number, error: unknown, isStream = false) => {
    const said = isStream ? `data: ${JSON.stringify(error)}\n\n` : JSON.stringify(error);
    const type = isStream ? "text/event-stream" : "application/json";
    engine.behave((_request, response) => void response.writeHead(status, { "content-type": type }).end(said));
    for (const [path, body] of DOORS)
      for (const stream of [false, true]) {
        const asked = { model: "m", ...body, stream, memprefix: { user_id: "ada", memories: [] } };
        const { status: got, text } = await app.send("POST", path, asked);
        expect([path, got, text]).toEqual([path, status, said]);
      }
  };

  it.each(FORMS)("says what it said, with its status: %s", async (_form, status, error) => {
    await comes(status, error);
  });

  it.each(WITHIN)("says what it said within an answer, streamed or not: %s", async (_form, error) => {
    for (const isStream of [false, true]) await comes(200, error, isStream);
  });
});
