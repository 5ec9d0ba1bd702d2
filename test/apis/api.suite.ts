import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Api } from "../../src/apis/api/api.js";
import { editedJson } from "../../src/apis/api/edited-json.js";
import type { ChatMessage } from "../../src/core/index.js";
import { injectInto } from "../../src/core/prompt/section.js";
import { type JsonObject, listIn } from "../../src/core/text/json.js";

/** What an API says, for the behaviour suite. */
export interface ApiExamples {
  readonly api: Api;
  /** A body with instructions, a question, a call of a tool with its result, and another question. */
  readonly body: JsonObject;
  /** What its history says: roles and texts. */
  readonly said: readonly (readonly [role: string, text: string])[];
  /** An answer with this text, `ANSWER_TOKENS`, and its events if it is streamed. */
  readonly answer: JsonObject;
  readonly events: readonly unknown[];
  /** The same text, with a call of a tool. */
  readonly call: JsonObject;
  /** Reads the usage, for an API that leaves it to the engine family. */
  readonly readUsage: NonNullable<Api["readUsage"]>;
  /** Where an error has its message. */
  readonly messageOf: (error: JsonObject) => unknown;
}

export const ANSWER = "Green tea.";
const ANSWER_TOKENS = { promptTokens: 120, cachedTokens: 96, completionTokens: 4 };

const SECTION = "<memories>\n- Likes tea.\n</memories>";

/** What every API does. */
export function describeApi({ api, body, said, answer, events, call, readUsage, messageOf }: ApiExamples): void {
  describe(`the API ${api.name}`, () => {
    const history = () => api.history(body) ?? expect.fail("no history");
    const textOf = ({ content }: ChatMessage) =>
      typeof content === "string" ? content : (content ?? []).map((part) => part["text"] ?? "").join("");

    it("reads a body's history, and puts the same back", () => {
      expect(history().map((message) => [message.role, textOf(message)])).toEqual(said);
      expect(api.withPrompt(body, history())).toEqual(body);
      expect(api.toolFields.map((field) => listIn(body[field]).length)[0]).toBe(1);
    });

    it("has no history where a body has none, and changes no body that it reads", () => {
      const before = JSON.stringify(body);
      for (const given of [{}, { [api.historyField]: 7 }, { [api.historyField]: null }])
        expect(api.history(given)).toBeNull();
      api.withPrompt(
        body,
        history().map((message) => injectInto(message, SECTION)),
      );
      expect(JSON.stringify(body)).toBe(before);
    });

    it("puts a section in front of the newest question, and leaves all else as it was sent", () => {
      const json = JSON.stringify({ seed: 0, ...body, at: "é" }, null, 1)
        .replace('"seed": 0', '"seed": 12345678901234567890, "half": 1.50, "none": null')
        .replace("é", "\\u00e9");
      const value = JSON.parse(json) as JsonObject;
      const prompt = (api.history(value) ?? []).map((message, at, all) =>
        at === all.length - 1 ? injectInto(message, SECTION) : message,
      );
      const sent = editedJson(json, value, api.withPrompt(value, prompt));
      expect(sent).toContain('"seed": 12345678901234567890, "half": 1.50, "none": null');
      const section = JSON.stringify(SECTION).slice(1, -1);
      // Of the text that was sent, the section is what is new.
      const without = sent.replace(new RegExp(`${escaped(section)}(\\\\n\\\\n)?`), "");
      expect(without.replaceAll(/\s/g, "").length - json.replaceAll(/\s/g, "").length).toBeLessThanOrEqual(40);
      expect(sent.split(section)).toHaveLength(2);
      expect(api.history(JSON.parse(sent) as JsonObject)?.length).toBe(history().length);
    });

    it("warms up with the prefix, for few tokens, unstreamed", () => {
      const prefix = history().slice(0, 2);
      const warming = api.warmUp({ ...body, stream: true }, prefix) ?? expect.fail("no warm-up");
      expect(warming["stream"]).toBeUndefined();
      expect(api.history(warming)?.map(({ role }) => role)).toEqual(prefix.map(({ role }) => role));
      const most = warming["max_tokens"] ?? warming["max_completion_tokens"] ?? warming["max_output_tokens"];
      expect(most).toBeLessThanOrEqual(16);
    });

    it("reads an answer's text and usage, whole or streamed", () => {
      const whole = api.answerReader();
      whole.take(answer, 5);
      expect(whole.text).toBe(ANSWER);
      expect(readUsage(whole.reported)).toMatchObject(ANSWER_TOKENS);
      expect(whole.firstTokenAt).toBeNull();
      const streamed = api.answerReader();
      for (const [at, event] of events.entries()) streamed.take(event, at + 1);
      expect(streamed.text).toBe(ANSWER);
      expect(streamed.firstTokenAt).toBeGreaterThan(1);
      expect(readUsage(streamed.reported)).toMatchObject(ANSWER_TOKENS);
    });

    it("takes no text for the answer where a tool is called, or the stream breaks off", () => {
      const calling = api.answerReader();
      calling.take(call, 1);
      expect(calling.text).toBeNull();
      const broken = api.answerReader();
      for (const event of events.slice(0, -2)) broken.take(event, 1);
      expect(broken.text).toBeNull();
      expect(broken.isOver).toBe(false);
    });

    it("reads anything, and throws at nothing", () => {
      fc.assert(
        fc.property(fc.array(fc.jsonValue(), { maxLength: 8 }), fc.jsonValue(), (answers, given) => {
          const reader = api.answerReader();
          for (const one of answers) reader.take(one, 1);
          expect(reader.text === null || typeof reader.text === "string").toBe(true);
          readUsage(reader.reported);
          api.history({ ...body, [api.historyField]: given, system: given, instructions: given });
          api.user({ user: given, metadata: given });
        }),
      );
    });

    it("has an error object with the message", () => {
      const error = api.error({ status: 422, message: "user_id is required", field: "user_id", upstreamFailure: null });
      expect(messageOf(error)).toBe("user_id is required");
    });
  });
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
