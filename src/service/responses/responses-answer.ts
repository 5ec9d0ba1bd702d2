import { z } from "zod";
import { isRecord } from "../../engines/upstream/json-values.js";
import { type AnswerReader, MAX_ANSWER_CHARACTERS } from "../chat/answer-reader.js";

const parts = z.array(z.looseObject({ type: z.string() })).catch([]);
const outputItem = z.looseObject({ type: z.string(), content: parts.optional() });
const response = z.looseObject({
  id: z.string().nullish().catch(null),
  status: z.string().nullish().catch(null),
  store: z.unknown().optional(),
  conversation: z.unknown().optional(),
  output: z.array(outputItem).catch([]),
  usage: z.unknown().optional(),
});
const event = z.looseObject({ type: z.string(), delta: z.unknown().optional(), response: z.unknown().optional() });

/** A finished answer of the Responses API, as far as it is read. */
export type FinishedResponse = z.output<typeof response>;

/** Events that end a stream, with the whole answer in them. */
const ENDS = new Set(["response.completed", "response.incomplete", "response.failed"]);
/** With other statuses the text is not the whole answer. */
const TEXT_IS_WHOLE = new Set<unknown>(["completed", "incomplete"]);
/** Calls that the client answers: the text beside them is not the answer. */
const CALLS = new Set([
  "function_call",
  "custom_tool_call",
  "computer_call",
  "local_shell_call",
  "mcp_approval_request",
]);

/**
 * Reads an answer of the Responses API: the object, or its stream, whose last event has the object.
 * Source: https://platform.openai.com/docs/api-reference/responses/object, …/responses-streaming
 */
export class ResponsesAnswer implements AnswerReader {
  #finished: FinishedResponse | null = null;

  isOver = false;
  firstTokenAt: number | null = null;
  reported: unknown = null;

  take(given: unknown, at: number): void {
    if (isRecord(given) && given["object"] === "response") {
      this.#finish(given);
      return;
    }
    const read = event.safeParse(given);
    if (!read.success) return;
    const { type, delta } = read.data;
    if (type.endsWith(".delta") && delta !== "" && delta != null) this.firstTokenAt ??= at;
    if (!ENDS.has(type)) return;
    this.isOver = true;
    this.#finish(read.data.response);
  }

  /** Null until the answer was read to its end. */
  get finished(): FinishedResponse | null {
    return this.#finished;
  }

  get text(): string | null {
    const { status, output } = this.#finished ?? { status: null, output: [] };
    if (!TEXT_IS_WHOLE.has(status) || output.some(({ type }) => CALLS.has(type))) return null;
    const said = output.filter(({ type }) => type === "message").flatMap(({ content = [] }) => content);
    if (said.some(({ type }) => type !== "output_text")) return null;
    const text = said.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
    return text === "" || text.length > MAX_ANSWER_CHARACTERS ? null : text;
  }

  #finish(given: unknown): void {
    const read = response.safeParse(given);
    if (!read.success) return;
    this.#finished = read.data;
    if (isRecord(read.data.usage)) this.reported = given;
  }
}
