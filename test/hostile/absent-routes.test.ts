/*
 * Attacked: `/v1/responses` and the count of tokens over servers that have neither, each of which says so in its own way; and over some that have
 * them, and answer 404 for a model or an earlier response. Broke: OpenAI's own `unknown_url` was passed on as an answer; OpenRouter's unknown model
 * was taken for an unknown route; one 405 of a gateway turned the route off for every model. Held: an answer of the API is passed on as it is, and asked for again.
 */
import { describe, expect, it } from "vitest";
import { messagesUpstream } from "../../src/engines/anthropic/messages-upstream.js";
import { responsesUpstream } from "../../src/engines/responses/responses-upstream.js";
import { openUpstream } from "../../src/engines/upstream/upstream.js";
import { openAiEngine, sendEvents, sendJson, wholeAnswer } from "../http/routes/openai-engine.js";

type Answer = readonly [status: number, body: object | string];

const page = (title: string) =>
  `<html><head><title>${title}</title></head><body><h1>${title} the model</h1></body></html>`;
const openAi = (message: string, code: string | null, param: string | null = null) => ({
  error: { message, type: "invalid_request_error", param, code },
});

/** How servers say that they have no such route. */
const ABSENT: Readonly<Record<string, Answer>> = {
  OpenAI: [404, openAi("Unknown request URL: POST /v1/responses. Please check the URL for typos.", "unknown_url")],
  "OpenAI, another method": [405, openAi("Not allowed to POST on /v1/models/m.", "method_not_supported")],
  "OpenAI, older": [404, openAi("Invalid URL (POST /v1/responses)", null)],
  "a gateway's code": [404, openAi("Not found", "not_found")],
  "a number as code": [404, { error: { message: "Not Found", type: "Not Found", param: null, code: 404 } }],
  "One API": [
    404,
    { error: { message: "Invalid URL (POST /v1/responses)", type: "invalid_request_error", param: "", code: "" } },
  ],
  FastAPI: [404, { detail: "Not Found" }],
  "FastAPI, another method": [405, { detail: "Method Not Allowed" }],
  "vLLM, a model for which it has no such route": [
    501,
    {
      error: {
        message: "The model does not support Responses API",
        type: "NotImplementedError",
        param: null,
        code: 501,
      },
    },
  ],
  "vLLM, older": [
    400,
    { error: { message: "The model does not support Responses API", type: "BadRequestError", param: null, code: 400 } },
  ],
  "llama.cpp": [404, { error: { code: 404, message: "File Not Found", type: "not_found_error" } }],
  "llama.cpp, turned off": [
    501,
    {
      error: {
        code: 501,
        message: "This server does not support it. Start it with `--responses`",
        type: "not_supported_error",
      },
    },
  ],
  "Ollama, Go": [404, "404 page not found"],
  "LiteLLM, of the engine behind it": [
    404,
    {
      error: {
        message:
          "litellm.NotFoundError: NotFoundError: OpenAIException - Not Found. Received Model Group=m\nAvailable Model Group Fallbacks=None",
        type: null,
        param: null,
        code: "404",
      },
    },
  ],
  "OpenRouter, a page": [404, `<!DOCTYPE html>${page("Not Found")}`],
  nginx: [404, page("404 Not Found")],
  "nginx, another method": [405, page("405 Not Allowed")],
  Express: [404, page("Error").replace("the model", "Cannot POST /v1/responses")],
  Fastify: [404, { message: "Route POST:/v1/responses not found", error: "Not Found", statusCode: 404 }],
  Spring: [404, { timestamp: 1, status: 404, error: "Not Found", path: "/v1/responses" }],
  Kong: [404, { message: "no Route matched with those values" }],
  Azure: [404, { error: { code: "404", message: "Resource not found" } }],
  Anthropic: [404, { type: "error", error: { type: "not_found_error", message: "Not Found" } }],
  "a path of models": [404, { error: { message: "Cannot POST /v1/models/responses", type: "", code: 404 } }],
  "problem+json": [
    404,
    { type: "about:blank", title: "Not found", status: 404, detail: "no such route: POST /v1/responses" },
  ],
  "OpenAI, a model of chats alone": [
    404,
    openAi("This model is only supported in v1/chat/completions and not in v1/responses.", null, "model"),
  ],
  "OpenAI, a model of chats alone, in other words": [
    400,
    openAi("This model is not supported in the v1/responses endpoint.", null, "model"),
  ],
  "OpenAI, a model that is none for it": [
    400,
    openAi("The requested model 'm' cannot be used with the Responses API.", null, "model"),
  ],
  "OpenAI, the same of another": [400, openAi("The model `m` is not supported with the Responses API.", null)],
  "Azure, an older version of its API": [
    400,
    {
      error: {
        code: "BadRequest",
        message: "Azure OpenAI Responses API is enabled only for api-version 2025-03-01-preview and later",
      },
    },
  ],
  "a model server": [501, { detail: "Responses API is not implemented for this model" }],
  Cloudflare: [
    400,
    { result: null, success: false, errors: [{ code: 7000, message: "No route for that URI" }], messages: [] },
  ],
  "Cloudflare, of an account": [
    400,
    {
      result: null,
      success: false,
      errors: [{ code: 7003, message: "Could not route to /client/v4/accounts/a/ai/v1/responses" }],
    },
  ],
  "LiteLLM, of FastAPI behind it": [
    404,
    { error: { message: 'litellm.NotFoundError: OpenAIException - {"detail":"Not Found"}. Received Model Group=m' } },
  ],
  "SGLang's router": [501, "Responses API not implemented for this router"],
  Databricks: [
    404,
    { error_code: "ENDPOINT_NOT_FOUND", message: "No API found for 'POST /serving-endpoints/responses'" },
  ],
  xAI: [404, "The requested resource was not found. Please check the URL and try again."],
  Bedrock: [404, { Output: { __type: "com.amazon.coral.service#UnknownOperationException" }, Version: "1.0" }],
  "Ray Serve": [404, "Path '/v1/responses' not found. Ping http://.../-/routes for available routes."],
  aiohttp: [404, "404: Not Found"],
  Flask: [404, { error: "The requested URL was not found on the server." }],
  "a router's word": [400, { error: "Unrecognized path: /v1/responses" }],
  "Hugging Face": [404, { error: "Not Found" }],
  "KoboldCpp, errors as an object": [404, { detail: { error: "Not Found", msg: "No such endpoint" } }],
  SGLang: [404, { object: "error", message: "Not Found", type: "404", param: null, code: 404 }],
  Fireworks: [
    404,
    { error: { object: "error", type: "invalid_request_error", code: "NOT_FOUND", message: "Path not found" } },
  ],
  "LiteLLM, of Ollama behind it": [
    404,
    {
      error: {
        message: "litellm.NotFoundError: NotFoundError: OpenAIException - 404 page not found. Received Model Group=m",
        type: null,
        param: null,
        code: "404",
      },
    },
  ],
  OpenRouter: [404, { error: { message: "Not Found", code: 404 } }],
  "an empty body": [404, ""],
  "an empty body, 501": [501, ""],
  "an empty object": [404, {}],
  "LM Studio, which says so with 200": [200, { error: "Unexpected endpoint or method. (POST /v1/responses)" }],
  "a page for every path": [200, `<!DOCTYPE html>${page("My models")}`],
};

/** What a route that is there says of what it was asked for. */
const OF_THE_API: Readonly<Record<string, Answer>> = {
  "OpenAI, a model": [404, openAi("The model `m` does not exist or you do not have access to it.", "model_not_found")],
  "OpenAI, an item": [404, openAi("Item with id 'rs_1' not found.", null, "input")],
  "OpenAI, an earlier response": [
    400,
    openAi("Previous response with id 'resp_1' not found.", "previous_response_not_found", "previous_response_id"),
  ],
  "OpenAI, a prompt": [404, openAi("Prompt not found", "prompt_not_found")],
  "OpenAI, files": [404, openAi("Files ['file-1'] were not found.", null)],
  "OpenAI, a container": [404, openAi("Container not found.", null)],
  "OpenRouter, a policy": [
    404,
    { error: { message: "No endpoints found matching your data policy (Free model publication).", code: 404 } },
  ],
  "llama-swap, a model": [404, "could not find real modelID for m"],
  "vLLM, a model": [
    404,
    { error: { message: "The model `m` does not exist.", type: "NotFoundError", param: "model", code: 404 } },
  ],
  "vLLM, older": [
    404,
    { object: "error", message: "The model `m` does not exist.", type: "NotFoundError", param: null, code: 404 },
  ],
  "vLLM, an earlier response": [
    404,
    { error: { message: "Response with id 'resp_1' not found.", type: "NotFoundError", param: null, code: 404 } },
  ],
  "SGLang, an earlier response": [
    404,
    { error: { message: "Response resp_1 not found", type: "not_found", code: 404 } },
  ],
  Ollama: [404, { error: { message: "model 'm' not found", type: "not_found_error", param: null, code: null } }],
  "Ollama, older": [404, { error: "model 'm' not found, try pulling it first" }],
  "LiteLLM, a model of the engine behind it": [
    404,
    {
      error: {
        message: "litellm.NotFoundError: OpenAIException - The model `m` does not exist. Received Model Group=m",
        type: null,
        param: "None",
        code: "404",
      },
    },
  ],
  "OpenRouter, a model": [404, { error: { message: "No endpoints found for some/thing.", code: 404 }, user_id: "u" }],
  "OpenRouter, a provider": [404, { error: { message: "No allowed providers are available.", code: 404 } }],
  "Azure, a deployment": [
    404,
    { error: { code: "DeploymentNotFound", message: "The API deployment for this resource does not exist." } },
  ],
  "NVIDIA, a function": [
    404,
    { status: 404, title: "Not Found", detail: "Function 'f-1': Not found for account 'a-1'" },
  ],
  "OpenAI, a tool that the route does not take": [
    400,
    openAi("Tools of type 'x' are not supported in the Responses API.", null, "tools[0].type"),
  ],
  "a feature that the route does not have": [
    400,
    openAi("Background mode is not supported in the Responses API.", null),
  ],
  "OpenAI, a field that moved": [
    400,
    openAi(
      "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'.",
      null,
      "messages",
    ),
  ],
  "Databricks, a model": [
    404,
    {
      error_code: "ENDPOINT_NOT_FOUND",
      message:
        "The given endpoint does not exist, please retry after checking the specified model and version deployment exists.",
    },
  ],
  "Ray Serve, a model": [404, { error: { message: "Could not find model with id m", type: "NotFound" } }],
  "llama.cpp, a model": [404, { error: { code: 404, message: "model 'm' not found", type: "not_found_error" } }],
  "Vertex, a model": [
    404,
    { error: { code: 404, message: "Publisher Model `projects/p/models/m` was not found.", status: "NOT_FOUND" } },
  ],
  "LiteLLM, a model": [
    400,
    {
      error: {
        message: "/chat/completions: Invalid model name passed in model=m. Call `/v1/models` to view available models.",
        type: "invalid_request_error",
        param: "model",
        code: "400",
      },
    },
  ],
  Gemini: [
    404,
    [{ error: { code: 404, message: "models/m is not found for API version v1main", status: "NOT_FOUND" } }],
  ],
  Moonshot: [
    404,
    { error: { message: "Not found the model m or Permission denied", type: "resource_not_found_error" } },
  ],
  Anthropic: [404, { type: "error", error: { type: "not_found_error", message: "model: m" } }],
  "FastAPI, a handler's own": [404, { detail: "Model m is not loaded" }],
  "plain text": [404, "model m not found"],
  "LiteLLM, in JSON": [
    404,
    {
      error: {
        message: 'litellm.NotFoundError: OpenAIException - {"error":{"message":"The model `m` does not exist."}}',
      },
    },
  ],
  "OpenRouter, tools": [404, { error: { message: "No endpoints found that support tool use.", code: 404 } }],
  "Together, a model": [
    404,
    { error: { message: "Unable to access model m.", type: "invalid_request_error", code: "model_not_available" } },
  ],
  "a field that is not implemented": [501, openAi("Not implemented", null, "background")],
};

const COUNT = { input_tokens: 42 };

describe("a route that an engine may not have", () => {
  const engine = openAiEngine();
  let answer: Answer = [404, ""];
  const behave = () =>
    engine.behave(({ url }, response, usage) => {
      if (url === "/v1/chat/completions") return sendJson(response, 200, wholeAnswer("By chat.", usage));
      const [status, body] = answer;
      if (typeof body === "string") return void response.writeHead(status, { "content-type": "text/html" }).end(body);
      return sendJson(response, status, body);
    });
  /** The upstream as the service puts it together, ten minutes later with every call. */
  const opened = () => {
    let now = 0;
    const plain = openUpstream({ url: engine.url, timeoutMs: 5_000 });
    const clock = { now: () => now };
    const dialect = { keepsMarks: false, isOpenAi: false };
    const upstream = responsesUpstream(messagesUpstream(plain, { dialect, ...clock }), clock);
    return async (path: string, isLater = true, model = "m", more: object = {}) => {
      if (isLater) now += 10 * 60 * 1_000;
      const messages = [{ role: "user", content: "Hi." }];
      const body = JSON.stringify({ model, input: "Hi.", messages, ...more });
      const call = { method: "POST", path, query: "", headers: [], body } as const;
      const sent = engine.requests.length;
      const { status, body: bytes } = await upstream.send(call, new AbortController().signal);
      const parts: Uint8Array[] = [];
      for await (const part of bytes) parts.push(part);
      const urls = engine.requests.slice(sent).map(({ url }) => url.slice("/v1/".length));
      return { status, text: Buffer.concat(parts).toString("utf8"), urls };
    };
  };

  it("is told from all that servers say, and not asked for again at once: responses", async () => {
    behave();
    const send = opened();
    for (const [server, given] of Object.entries(ABSENT)) {
      answer = given;
      const { status, text, urls } = await send("responses");
      expect([server, status, urls]).toEqual([server, 200, ["responses", "chat/completions"]]);
      expect(text).toContain("By chat.");
      expect((await send("responses", false)).urls).toEqual(["chat/completions"]);
    }
  });

  it("may be there for other models of the engine", async () => {
    const said = openAi("The requested model 'old' cannot be used with the Responses API.", null, "model");
    engine.behave(({ url, body }, response, usage) => {
      if (url === "/v1/chat/completions") return sendJson(response, 200, wholeAnswer("By chat.", usage));
      return body.model === "old" ? sendJson(response, 400, said) : sendJson(response, 200, { id: "resp_1" });
    });
    const send = opened();
    const urls = [];
    for (const model of ["old", "new", "old", "new"]) urls.push((await send("responses", false, model)).urls);
    const [own, chat] = ["responses", "chat/completions"];
    expect(urls).toEqual([[own, chat], [own], [chat], [own]]);
    expect((await send("responses", true, "old")).urls).toEqual([own, chat]);
  });

  it("is not given up for a model that it has answered for, nor for others, by one error of nothing in particular", async () => {
    let hasIt = true;
    engine.behave(({ url, body: { model, stream } }, response, usage) => {
      if (url === "/v1/chat/completions") return sendJson(response, 200, wholeAnswer("By chat.", usage));
      if (!hasIt || model === "none") return sendJson(response, 405, { detail: "Method Not Allowed" });
      return stream ? sendEvents(response, []) : sendJson(response, 200, { id: "resp_1" });
    });
    const send = opened();
    const [own, chat] = ["responses", "chat/completions"];
    const urlsOf = async (model: string, isLater = false, more = {}) =>
      (await send("responses", isLater, model, more)).urls;
    expect(await urlsOf("none")).toEqual([own, chat]);
    expect(await urlsOf("none")).toEqual([chat]);
    const tools = [{ type: "function", name: "car", parameters: { properties: { model: { const: "T" } } } }];
    for (const [model, more] of [
      ["m", {}],
      ["streams", { stream: true }],
      ["tools", { tools }],
    ] as const) {
      hasIt = true;
      expect(await urlsOf(model, false, more)).toEqual([own]);
      hasIt = false;
      expect(await urlsOf(model)).toEqual([own, chat]);
      expect(await urlsOf(model)).toEqual([own, chat]);
    }
    // Another engine took its place.
    expect(await urlsOf("m", true)).toEqual([own, chat]);
    expect(await urlsOf("m")).toEqual([chat]);
  });

  it("is told from what comes in pieces, which go on whole where it is there", async () => {
    const pieces = async (...texts: readonly string[]) => {
      engine.behave(async ({ url }, response, usage) => {
        if (url === "/v1/chat/completions") return sendJson(response, 200, wholeAnswer("By chat.", usage));
        response.writeHead(200, { "content-type": "application/json" });
        for (const text of texts) {
          response.write(text);
          await new Promise((sent) => setTimeout(sent, 20));
        }
        return void response.end();
      });
      return opened()("responses");
    };
    const absent = await pieces('{"er', 'ror":"Unexpected endpoint or method. (POST /v1/res', 'ponses)"}');
    expect([absent.status, absent.urls]).toEqual([200, ["responses", "chat/completions"]]);
    const texts = ['{"id":"resp_1",', '"object":"response","output":[', "]}"];
    expect(await pieces(...texts)).toEqual({ status: 200, text: texts.join(""), urls: ["responses"] });
  });

  it("is told from an error of a route that is there: responses", async () => {
    behave();
    const send = opened();
    const failed = { id: "resp_1", status: "failed", error: { code: "server_error", message: "Cannot get" } };
    const others: Record<string, Answer> = { "a failed response": [200, failed], nothing: [200, ""] };
    for (const [server, [status, body]] of Object.entries({ ...OF_THE_API, ...others })) {
      answer = [status, body];
      for (const isLater of [true, false]) {
        const got = await send("responses", isLater);
        const text = typeof body === "string" ? body : JSON.stringify(body);
        expect([server, got]).toEqual([server, { status, text, urls: ["responses"] }]);
      }
    }
  });

  it("is told from all that servers say: the count of tokens", async () => {
    behave();
    const send = opened();
    for (const given of Object.values(ABSENT)) {
      answer = given;
      const { status, text, urls } = await send("messages/count_tokens");
      expect([given, status, urls]).toEqual([given, 404, ["messages/count_tokens"]]);
      expect(JSON.parse(text)).toEqual({
        type: "error",
        error: {
          type: "not_found_error",
          message: "the engine speaks OpenAI's API, which has no messages/count_tokens",
        },
      });
    }
  });

  it("is told from an error of a route that is there: the count of tokens, in Anthropic's form", async () => {
    behave();
    const send = opened();
    for (const [server, [status, body]] of Object.entries(OF_THE_API)) {
      answer = [status, body];
      const got = await send("messages/count_tokens");
      expect([server, got.status, got.urls]).toEqual([server, status, ["messages/count_tokens"]]);
      if (typeof body !== "string")
        expect(JSON.parse(got.text)).toMatchObject({ type: "error", error: { type: expect.any(String) } });
    }
    answer = [200, COUNT];
    expect(await send("messages/count_tokens")).toMatchObject({ status: 200, text: JSON.stringify(COUNT) });
  });
});
