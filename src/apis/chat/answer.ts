import { isRecord, listIn, record } from "../../core/text/json.js";
import { type AnswerReader, BoundedText, isWholeText } from "../api/answer.js";
import { countsPrompt } from "../api/usage.js";

export class ChatAnswer implements AnswerReader {
  readonly #text = new BoundedText();
  #finish: string | null = null;
  #hasCalls = false;
  firstTokenAt: number | null = null;
  reported: unknown = null;
  /** Its end is `[DONE]`, which is no JSON. */
  readonly isOver = false;

  take(given: unknown, at: number): void {
    const { choices, usage, timings } = record(given);
    const isKnown = countsPrompt(record(this.reported)["usage"]);
    if (isRecord(timings) || (isRecord(usage) && (countsPrompt(usage) || !isKnown))) this.reported = given;
    for (const choice of listIn(choices)) {
      const { index, delta, message, finish_reason: finish } = record(choice);
      if (isRecord(delta) && holdsToken(delta)) this.firstTokenAt ??= at;
      if (typeof index === "number" && index !== 0) continue;
      const said = isRecord(delta) ? delta : record(message);
      this.#text.append(said["content"]);
      this.#hasCalls ||= said["function_call"] != null || listIn(said["tool_calls"]).length > 0;
      if (typeof finish === "string") this.#finish = finish;
    }
  }

  get text(): string | null {
    return isWholeText(this.#finish) && !this.#hasCalls ? this.#text.whole : null;
  }
}

/** The opening chunk has only the role and no token. */
function holdsToken(delta: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(delta).some(
    ([name, value]) =>
      name !== "role" && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
}
