import type { ChatMessage } from "../../core/index.js";
import type { JsonObject } from "../../core/text/json.js";
import type { AnswerReader } from "./answer.js";
import type { EngineUsage } from "./usage.js";

export const API_NAMES = ["chat", "messages", "responses"] as const;
export type ApiName = (typeof API_NAMES)[number];

/** An error of memprefix's own, in any API. */
export interface ApiFailure {
  readonly status: number;
  readonly message: string;
  readonly field: string | null;
  /** Why the engine did not answer; null: the error is not about the engine. */
  readonly upstreamFailure: string | null;
}

/** A body for a short answer: unstreamed, one choice. */
export function forShortAnswer({ stream: _stream, stream_options: _options, n: _n, ...body }: JsonObject): JsonObject {
  return body;
}

/** One API of an engine. Every one passes `test/apis/api.suite.ts`. */
export interface Api {
  readonly name: ApiName;
  /** Relative to the engine's base URL, and to `/v1` here: `chat/completions`. */
  readonly path: string;
  readonly historyField: "messages" | "input";
  /** The field that may name the user, with dots; `user` reads it. */
  readonly userField: string;
  user(body: JsonObject): unknown;
  /** A body's instructions and messages as chat messages; null where it has none that can be composed. */
  history(body: JsonObject): readonly ChatMessage[] | null;
  /** The fields that may hold tools, the preferred one first. */
  readonly toolFields: readonly string[];
  /** The body with a prompt composed from its {@link history}. */
  withPrompt(body: JsonObject, prompt: readonly ChatMessage[]): JsonObject;
  /** A body for as few tokens as possible, with which the engine computes a prompt's prefix; null: the API allows none. */
  warmUp(body: JsonObject, prefix: readonly ChatMessage[]): JsonObject | null;
  answerReader(): AnswerReader;
  /** Absent: the engine family reads the usage. */
  readonly readUsage?: (answer: unknown) => EngineUsage;
  error(error: ApiFailure): JsonObject;
}
