import { isRecord, listIn, record, text } from "../../core/text/json.js";
import { type AnswerReader, MAX_ANSWER_CHARACTERS } from "../api/answer.js";
import { nameIn } from "./history.js";

const ENDS: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed"]);
/** Statuses of an answer that ended, if only at a limit. */
const WHOLE: ReadonlySet<unknown> = new Set(["completed", "incomplete"]);
/** The client answers these calls: the text beside them is not the answer. */
const CALLS: ReadonlySet<unknown> = new Set([
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
  #finished: Readonly<Record<string, unknown>> = {};
  isOver = false;
  firstTokenAt: number | null = null;
  reported: unknown = null;

  take(given: unknown, at: number): void {
    const event = record(given);
    if (event["object"] === "response") {
      this.#finish(event);
      return;
    }
    const { type, delta, response } = event;
    if (text(type).endsWith(".delta") && delta !== "" && delta != null) this.firstTokenAt ??= at;
    if (!ENDS.has(type)) return;
    this.isOver = true;
    this.#finish(record(response));
  }

  get continuableId(): string | null {
    const { id, status } = this.#finished;
    return WHOLE.has(status) ? nameIn(id) : null;
  }

  get text(): string | null {
    const { status, output } = this.#finished;
    const items = listIn(output).map(record);
    if (!WHOLE.has(status) || items.some(({ type }) => CALLS.has(type))) return null;
    const parts = items.filter(({ type }) => type === "message").flatMap(({ content }) => listIn(content).map(record));
    if (parts.some(({ type }) => type !== "output_text")) return null;
    const said = parts.map((part) => text(part["text"])).join("");
    return said === "" || said.length > MAX_ANSWER_CHARACTERS ? null : said;
  }

  #finish(response: Readonly<Record<string, unknown>>): void {
    this.#finished = response;
    if (isRecord(response["usage"])) this.reported = response;
  }
}
