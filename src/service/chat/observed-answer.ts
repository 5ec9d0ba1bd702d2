import { isRecord, listIn, record } from "../../engines/upstream/json-values.js";
import { callFields } from "../../engines/upstream/tool-calls.js";
import { type AnswerReader, BoundedText } from "./answer-reader.js";

/** Finish reasons with which the text is the whole answer, where no call stands beside it; others withhold something. */
const TEXT_IS_WHOLE = new Set(["stop", "length"]);

/** Reads an engine's answer while it is streamed. Holds its first choice's text up to a bound. */
export class ObservedAnswer implements AnswerReader {
  readonly #text = new BoundedText();
  #finish: string | null = null;
  #hasCalls = false;
  /** Arrival of the first token, in the clock's milliseconds; null where there was none, or the answer was not streamed. */
  firstTokenAt: number | null = null;
  /** The last chunk with token counts. */
  reported: unknown = null;
  /** Its end is OpenAI's `[DONE]`, which is no JSON. */
  readonly isOver = false;

  /** Takes an answer, or one chunk of a streamed one; ignores anything else. */
  take(given: unknown, at: number): void {
    const { choices, usage, timings } = record(given);
    if (isRecord(usage) || isRecord(timings)) this.reported = given;
    for (const choice of listIn(choices)) {
      const { index, delta, message, finish_reason: finish } = record(choice);
      if (isRecord(delta) && holdsToken(delta)) this.firstTokenAt ??= at;
      if (typeof index === "number" && index !== 0) continue;
      const said = isRecord(delta) ? delta : record(message);
      this.#text.append(said["content"]);
      this.#hasCalls ||= callFields(said).some(({ name }) => name !== "");
      if (typeof finish === "string") this.#finish = finish;
    }
  }

  /** The first choice's text, once it is complete; null where it is not, calls a tool, or is too long. */
  get text(): string | null {
    const isWhole = this.#finish !== null && TEXT_IS_WHOLE.has(this.#finish) && !this.#hasCalls;
    return isWhole ? this.#text.whole : null;
  }
}

/** Whether a chunk holds the usage and nothing else. */
export function isUsageOnly(given: unknown): boolean {
  if (!isRecord(given) || !isRecord(given["usage"])) return false;
  return Array.isArray(given["choices"]) && given["choices"].length === 0;
}

/** False for the opening chunk, which has the role only: it stands for no token. */
function holdsToken(delta: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(delta).some(
    ([name, value]) =>
      name !== "role" && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
}
