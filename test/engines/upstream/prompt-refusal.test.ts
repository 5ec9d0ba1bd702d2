import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readPromptRefusal } from "../../../src/engines/upstream/engine-errors.js";

interface Refused {
  readonly engine: string;
  readonly status: number;
  readonly body: unknown;
}
/** Errors as engines write them, with the tokens that can be read from them; see the sources in `engine-errors.ts`. */
const { tooLong, outOfOrder } = JSON.parse(
  readFileSync(new URL("./fixtures/prompt-refusals.json", import.meta.url), "utf8"),
) as { tooLong: (Refused & { limitTokens: number | null; promptTokens: number | null })[]; outOfOrder: Refused[] };

describe("an engine that says that a prompt is too long", () => {
  it.each(tooLong)("is understood: $engine", ({ status, body, limitTokens, promptTokens }) => {
    const tokens = { limitTokens, promptTokens };
    expect(readPromptRefusal(status, JSON.stringify(body))).toEqual({ kind: "context_length", ...tokens });
  });
});

describe("an engine that says that roles are out of order", () => {
  it.each(outOfOrder)("is understood: $engine", ({ status, body }) => {
    expect(readPromptRefusal(status, JSON.stringify(body))).toEqual({ kind: "role_order" });
  });
});

const LIKE = "This model's maximum context length is 10 tokens. However, your messages resulted in 9000 tokens.";
const exceeded = JSON.stringify({ error: { message: LIKE, code: "context_length_exceeded" } });
const OTHERS: Record<string, [number, string | object]> = {
  "an answer": [200, exceeded],
  "a limit of requests": [429, exceeded],
  "a server that broke down": [500, exceeded],
  "a text that is no JSON": [400, `Bad request: ${LIKE}`],
  "what the client said, quoted": [400, { error: { message: `Invalid value: "${LIKE}"`, code: "invalid_value" } }],
  "what the client said, in a list of faults": [
    422,
    { detail: [{ loc: ["body"], msg: "no", input: { message: LIKE } }] },
  ],
  "the client's body, given back": [
    400,
    { messages: [{ content: LIKE, code: "context_length_exceeded" }], model: LIKE },
  ],
  "another mistake": [400, { error: { message: "Invalid 'tools' format", type: "invalid_request_error" } }],
  nothing: [400, ""],
  null: [400, "null"],
};

describe("what is no refusal of a prompt", () => {
  it.each(Object.entries(OTHERS))("is not taken for one: %s", (_what, [status, body]) => {
    expect(readPromptRefusal(status, typeof body === "string" ? body : JSON.stringify(body))).toBeNull();
  });

  it("is read in no time, however long and whatever it repeats", () => {
    for (const piece of ["max_tokens ", "litellm.A: ", "Jinja Exception: ", "TemplateError: ", "a.", "9", "{"]) {
      const message = piece.repeat(400_000 / piece.length);
      expect(readPromptRefusal(400, JSON.stringify({ error: { message } }))).toBeNull();
    }
  });
});
