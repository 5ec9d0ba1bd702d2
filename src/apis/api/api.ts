import type { ChatMessage } from "../../core/index.js";
import type { JsonObject } from "../../core/text/json.js";
import type { AnswerReader } from "./answer.js";
import type { EngineUsage } from "./usage.js";

/** The APIs by name. */
export const API_NAMES = ["chat", "messages", "responses"] as const;
export type ApiName = (typeof API_NAMES)[number];

/** An error of memprefix's own, as every API can say it. */
export interface ApiFailure {
  readonly status: number;
  readonly message: string;
  /** The field that is wrong; null: none. */
  readonly field: string | null;
  /** Why the engine did not answer; null: the error is not about the engine. */
  readonly upstreamFailure: string | null;
}

/** A body's fields for a short answer: unstreamed, one choice. */
export function forShortAnswer({ stream: _stream, stream_options: _options, n: _n, ...body }: JsonObject): JsonObject {
  return body;
}

/** One API of an engine. Every one passes `test/apis/api.suite.ts`. */
export interface Api {
  readonly name: ApiName;
  /** Relative to the engine's base URL, and the path below `/v1` here: `chat/completions`. */
  readonly path: string;
  /** The field of a body that has its history. */
  readonly historyField: "messages" | "input";
  /** The field that may name the user, with dots. */
  readonly userField: string;
  /** What that field has, where it is a name; undefined or null where it is none. */
  user(body: JsonObject): unknown;
  /** A body's instructions and messages as chat messages; null where it has none that can be composed. */
  history(body: JsonObject): readonly ChatMessage[] | null;
  /** The tools that a body gives the model. */
  tools(body: JsonObject): readonly unknown[];
  /**
   * The body with a composed prompt in place of its history.
   *
   * @param prompt made of what {@link history} read
   */
  withPrompt(body: JsonObject, prompt: readonly ChatMessage[]): JsonObject;
  /** A body for as few tokens as the API allows, that has the engine compute a prompt's prefix; null: there is none. */
  warmUp(body: JsonObject, prefix: readonly ChatMessage[]): JsonObject | null;
  /** Reads one answer, or its events. */
  answerReader(): AnswerReader;
  /** Reads the usage of its answers. Absent: the engine family does. */
  readonly readUsage?: (answer: unknown) => EngineUsage;
  /** The API's error object. */
  error(error: ApiFailure): JsonObject;
}
