/*
 * Attacked: what an engine says of an error, through every door, in the engine's own form and converted: gateways, FastAPI, Gemini and servers
 * of Anthropic's API write errors in forms that neither API has. Broke: an error of the latter came as an empty chat completion with its status;
 * of lists, of texts and of what is nested, the words were dropped. Held: the forms of OpenAI and Anthropic, pages, plain texts.
 */
import { describe, expect, it } from "vitest";
import { anthropicServer } from "../http/routes/anthropic-server.js";
import { openAiEngine, sendJson } from "../http/routes/openai-engine.js";
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

describe.each(["openai", "anthropic"] as const)("an engine's error, by the API of %s,", (api) => {
  const engine = openAiEngine();
  const anthropic = anthropicServer();
  const app = servedApp({
    upstream: {
      get url() {
        return api === "openai" ? engine.url : anthropic.url;
      },
    },
    environment: { MEMPREFIX_UPSTREAM_API: api },
  });
  const answer = (status: number, error: unknown, isStream = false) => {
    const events = `data: ${JSON.stringify(error)}\n\n`;
    const send = (response: Parameters<typeof sendJson>[0]) =>
      isStream
        ? void response.writeHead(status, { "content-type": "text/event-stream" }).end(events)
        : sendJson(response, status, error as object);
    engine.behave(({ url }, response) =>
      url.endsWith("/responses") ? sendJson(response, 404, { detail: "Not Found" }) : send(response),
    );
    anthropic.behave(send);
  };
  const ask = (path: string, body: object, stream: boolean) =>
    app.send("POST", path, { model: "m", ...body, stream, memprefix: { user_id: "ada", memories: [] } });

  it.each(FORMS)("says what it said, with its status: %s", async (_form, status, error) => {
    answer(status, error);
    for (const [path, body] of DOORS)
      for (const stream of [false, true]) {
        const got = await ask(path, body, stream);
        expect([path, got.status, got.text]).toEqual([path, status, expect.stringContaining(SAID)]);
        expect(got.text).not.toMatch(/"choices"|"content":|"output":/);
      }
  });

  it.each(WITHIN)("says what it said within an answer, streamed or not: %s", async (_form, error) => {
    for (const stream of [false, true]) {
      answer(200, error, stream);
      for (const [path, body] of DOORS)
        expect([path, (await ask(path, body, stream)).text]).toEqual([path, expect.stringContaining(SAID)]);
    }
  });
});
