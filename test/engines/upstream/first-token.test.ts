import { describe, expect, it } from "vitest";
import { firstTokenBody, fixesStart, isMark, readFirstToken } from "../../../src/engines/upstream/first-token.js";

const answer = (content: unknown) => ({ choices: [{ index: 0, message: {}, logprobs: { content } }] });

describe("an answer's first token", () => {
  it("is read with the likeliest tokens in its place", () => {
    const top = [
      { token: "Yes", logprob: -0.1, bytes: [89] },
      { token: "No", logprob: -2.5, rank: 2 },
    ];
    const first = { token: "Yes", logprob: -0.1, top_logprobs: top };
    const given = { ...answer([first, { token: "." }]), usage: { prompt_tokens: 1 } };
    expect(readFirstToken(given)).toEqual({ likeliest: "Yes", logProbabilities: [-0.1, -2.5] });
  });

  it("is read the same whichever token was drawn, in whatever order they are listed", () => {
    const top = [
      { token: "No", logprob: -2.5 },
      { token: "Yes", logprob: -0.1 },
    ];
    const given = answer([{ token: "<think>", logprob: -9, top_logprobs: top }]);
    expect(readFirstToken(given)).toEqual({ likeliest: "Yes", logProbabilities: [-2.5, -0.1] });
  });

  it.each([
    [{}],
    [{ choices: [] }],
    [{ choices: [{ message: { content: "Yes" } }] }],
    [{ choices: [{ logprobs: null }] }],
    [{ choices: [{ logprobs: { tokens: ["Yes"], token_logprobs: [-0.1] } }] }],
    ["Yes"],
    [null],
  ])("is not told by %j", (given) => {
    expect(readFirstToken(given)).toBeNull();
  });

  it("may be none, or one of which nothing more is known", () => {
    expect(readFirstToken(answer([]))).toBe("none");
    expect(readFirstToken(answer([{ token: "Yes", logprob: -0.1 }]))).toEqual({
      likeliest: "Yes",
      logProbabilities: [],
    });
  });

  it.each(["<think>", "<|channel|>", "<｜tool▁calls▁begin｜>", "[TOOL_CALLS]", " <tool_call>\n", ""])(
    "is a mark of the model's own where it is %j",
    (token) => expect(isMark(token)).toBe(true),
  );

  it.each(["Yes", " I", "<", "[", "[1]", "{", "\n", "<b", "42"])("is none where it is %j", (token) =>
    expect(isMark(token)).toBe(false),
  );
});

describe("a request for the first token", () => {
  const own = {
    model: "m",
    tools: [{ type: "function" }],
    chat_template_kwargs: { enable_thinking: false },
    max_tokens: 500,
    n: 3,
    stop: ["x"],
    stream: true,
    stream_options: { include_usage: true },
    store: true,
    temperature: 0,
    top_p: 0.5,
    logprobs: false,
  };

  it("keeps what the prompt is made from, and sets how it is answered", () => {
    expect(firstTokenBody(own, 7)).toEqual({
      model: "m",
      tools: [{ type: "function" }],
      chat_template_kwargs: { enable_thinking: false },
      max_tokens: 1,
      temperature: 1,
      top_p: 1,
      logprobs: true,
      top_logprobs: 7,
    });
  });

  it("limits the answer by the name that the client uses", () => {
    const { max_tokens: _, ...others } = own;
    const body = firstTokenBody({ ...others, max_completion_tokens: 9 }, 20);
    expect(body).toMatchObject({ max_completion_tokens: 1 });
    expect(body).not.toHaveProperty("max_tokens");
  });

  it.each([
    [{ response_format: { type: "json_object" } }],
    [{ response_format: { type: "json_schema", json_schema: {} } }],
    [{ tool_choice: "required" }],
    [{ tool_choice: { type: "function", function: { name: "look" } } }],
    [{ function_call: { name: "look" } }],
    [{ guided_json: {} }],
    [{ grammar: 'root ::= "x"' }],
  ])("says nothing where it is fixed how the answer begins: %j", (body) => {
    expect(fixesStart(body)).toBe(true);
  });

  it.each([
    [{}],
    [{ response_format: { type: "text" }, tool_choice: "auto" }],
    [{ response_format: null, tool_choice: null, grammar: null }],
    [{ tools: [{}], tool_choice: "none" }],
  ])("says something where it is not: %j", (body) => {
    expect(fixesStart(body)).toBe(false);
  });
});
