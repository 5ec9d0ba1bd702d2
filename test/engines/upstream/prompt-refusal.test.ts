import { describe, expect, it } from "vitest";
import { readPromptRefusal } from "../../../src/engines/upstream/engine-errors.js";

/** Errors as engines write them, with the status they have, and the tokens that can be read from them: [limit, prompt]. */
const TOO_LONG: Record<string, [number, unknown, number | null, number | null]> = {
  OpenAI: [
    400,
    {
      error: {
        message:
          "This model's maximum context length is 4097 tokens. However, your messages resulted in 4301 tokens. Please reduce the length of the messages.",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
    },
    4097,
    4301,
  ],
  "OpenAI, with a completion": [
    400,
    {
      error: {
        message:
          "This model's maximum context length is 4096 tokens. However, you requested 4222 tokens (1222 in the messages, 3000 in the completion). Please reduce the length of the messages or completion.",
        type: "invalid_request_error",
        code: "context_length_exceeded",
      },
    },
    1096,
    1222,
  ],
  "OpenAI's newer models": [
    400,
    {
      error: {
        message: "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        type: "invalid_request_error",
        code: "context_length_exceeded",
      },
    },
    272000,
    300000,
  ],
  vLLM: [
    400,
    {
      error: {
        message:
          "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens. Please reduce the length of the input messages.",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
    },
    8192,
    9000,
  ],
  "vLLM, before it had an envelope": [
    400,
    {
      object: "error",
      message:
        "This model's maximum context length is 4096 tokens. However, you requested 4226 tokens (3970 in the messages, 256 in the completion). Please reduce the length of the messages or completion.",
      type: "BadRequestError",
      param: null,
      code: 400,
    },
    3840,
    3970,
  ],
  "vLLM, with no room for the answer": [
    400,
    {
      error: {
        message:
          "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 6000 input tokens (4096 > 8192 - 6000).",
        type: "BadRequestError",
        code: 400,
      },
    },
    4096,
    6000,
  ],
  "llama.cpp": [
    400,
    {
      error: {
        code: 400,
        message: "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it",
        type: "exceed_context_size_error",
        n_prompt_tokens: 13392,
        n_ctx: 8192,
      },
    },
    8192,
    13392,
  ],
  "llama.cpp, by its fields alone": [
    400,
    {
      error: { code: 400, message: "too long", type: "exceed_context_size_error", n_prompt_tokens: 13392, n_ctx: 8192 },
    },
    8192,
    13392,
  ],
  SGLang: [
    400,
    {
      object: "error",
      message: "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
      type: "BadRequestError",
      code: 400,
    },
    8192,
    9000,
  ],
  "SGLang, with a completion": [
    400,
    {
      object: "error",
      message:
        "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 8000 tokens from the input messages and 1000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
      type: "BadRequestError",
      code: 400,
    },
    7192,
    8000,
  ],
  "Text Generation Inference": [
    422,
    {
      error:
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
      error_type: "validation",
    },
    3996,
    5000,
  ],
  Anthropic: [
    400,
    {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 208310 tokens > 200000 maximum" },
    },
    200000,
    208310,
  ],
  "Anthropic, with an answer": [
    400,
    {
      type: "error",
      error: {
        type: "invalid_request_error",
        message:
          "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
      },
    },
    180000,
    190000,
  ],
  Gemini: [
    400,
    [
      {
        error: {
          code: 400,
          message: "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
          status: "INVALID_ARGUMENT",
        },
      },
    ],
    1048576,
    1200293,
  ],
  "Mistral's API": [
    400,
    {
      object: "error",
      message: "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
      type: "invalid_request_prompt",
      code: "3051",
    },
    32768,
    33000,
  ],
  Bedrock: [400, { message: "Input is too long for requested model." }, null, null],
  LiteLLM: [
    400,
    {
      error: {
        message:
          "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's maximum context length is 4097 tokens. However, your messages resulted in 4301 tokens.",
        type: null,
        param: null,
        code: "400",
      },
    },
    4097,
    4301,
  ],
  OpenRouter: [
    400,
    {
      error: {
        message:
          "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (69000 of text input, 1000 in the output).",
        code: 400,
      },
    },
    65536,
    70000,
  ],
  "OpenRouter, with the provider's own": [
    400,
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: {
          raw: '{"error":{"message":"prompt is too long: 208310 tokens > 200000 maximum","type":"invalid_request_error"}}',
          provider_name: "Anthropic",
        },
      },
    },
    200000,
    208310,
  ],
  xAI: [
    400,
    { error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", code: "invalid" },
    131072,
    537812,
  ],
  "a size in bytes": [
    413,
    { type: "error", error: { type: "request_too_large", message: "Request exceeds the maximum size" } },
    null,
    null,
  ],
};

describe("an engine that says that a prompt is too long", () => {
  it.each(Object.entries(TOO_LONG))("is understood: %s", (_who, [status, body, limitTokens, promptTokens]) => {
    expect(readPromptRefusal(status, JSON.stringify(body))).toEqual({
      kind: "context_length",
      limitTokens,
      promptTokens,
    });
  });
});

/** As Mistral's API, vLLM, llama.cpp and gateways write them; see the sources in `engine-errors.ts`. */
const OUT_OF_ORDER: Record<string, [number, unknown]> = {
  "Mistral's API": [
    400,
    {
      object: "error",
      message: "Unexpected role 'user' after role 'tool'",
      type: "invalid_request_message_order",
      param: null,
      code: "3230",
    },
  ],
  "vLLM with Mistral's tokenizer": [
    400,
    { error: { message: "Unexpected role 'user' after role 'tool'", type: "BadRequestError", param: null, code: 400 } },
  ],
  "vLLM with a template": [
    400,
    {
      object: "error",
      message: "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
      type: "BadRequestError",
      param: null,
      code: 400,
    },
  ],
  "Gemma's template": [
    400,
    {
      error: {
        message:
          "Conversation roles must alternate user/assistant/user/assistant/... Conversation roles must alternate user/assistant/user/assistant/...",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
    },
  ],
  "a template that raises in llama.cpp": [
    500,
    {
      error: {
        code: 500,
        message:
          "Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.",
        type: "server_error",
      },
    },
  ],
  "OpenRouter, with Mistral's own": [
    400,
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: {
          raw: '{"object":"error","message":"Unexpected role \'user\' after role \'tool\'","type":"invalid_request_message_order","param":null,"code":"3230"}',
          provider_name: "Mistral",
        },
      },
    },
  ],
};

describe("an engine that says that roles are out of order", () => {
  it.each(Object.entries(OUT_OF_ORDER))("is understood: %s", (_who, [status, body]) => {
    expect(readPromptRefusal(status, JSON.stringify(body))).toEqual({ kind: "role_order" });
  });
});

const LIKE = "This model's maximum context length is 10 tokens. However, your messages resulted in 9000 tokens.";
const OTHERS: Record<string, [number, string]> = {
  "an answer": [200, JSON.stringify({ error: { message: LIKE, code: "context_length_exceeded" } })],
  "a limit of requests": [429, JSON.stringify({ error: { message: LIKE, code: "context_length_exceeded" } })],
  "a server that broke down": [500, JSON.stringify({ error: { message: LIKE, code: "context_length_exceeded" } })],
  "a text that is no JSON": [400, `Bad request: ${LIKE}`],
  "what the client said, quoted": [
    400,
    JSON.stringify({ error: { message: `Invalid value: "${LIKE}"`, code: "invalid_value" } }),
  ],
  "what the client said, in a list of faults": [
    422,
    JSON.stringify({ detail: [{ loc: ["body", "messages"], msg: "not valid", input: { message: LIKE } }] }),
  ],
  "the client's body, given back": [
    400,
    JSON.stringify({ messages: [{ role: "user", content: LIKE, code: "context_length_exceeded" }], model: LIKE }),
  ],
  "another mistake": [
    400,
    JSON.stringify({ error: { message: "Invalid 'tools' format", type: "invalid_request_error" } }),
  ],
  nothing: [400, ""],
  null: [400, "null"],
};

describe("what is no refusal of a prompt", () => {
  it.each(Object.entries(OTHERS))("is not taken for one: %s", (_what, [status, body]) => {
    expect(readPromptRefusal(status, body)).toBeNull();
  });

  it("is read in no time, however long and whatever it repeats", () => {
    for (const piece of ["max_tokens ", "litellm.A: ", "Jinja Exception: ", "TemplateError: ", "a.", "9", "{"]) {
      const message = piece.repeat(400_000 / piece.length);
      expect(readPromptRefusal(400, JSON.stringify({ error: { message } }))).toBeNull();
    }
  });
});
