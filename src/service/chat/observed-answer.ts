import { z } from "zod";
import { callFields } from "../../engines/upstream/tool-calls.js";
import type { AnswerReader } from "./answer-reader.js";

const part = z.record(z.string(), z.unknown()).nullish().catch(null);
const chunk = z.object({
  choices: z
    .array(
      z.object({
        index: z.number().catch(0),
        delta: part,
        message: part,
        finish_reason: z.string().nullish().catch(null),
      }),
    )
    .catch([]),
  usage: z.unknown().optional(),
  timings: z.unknown().optional(),
});

/** Most characters of an answer that is written back as a memory; a longer one is not. */
const MAX_ANSWER_CHARACTERS = 100_000;
/** Finish reasons with which the text is the whole answer, where no call stands beside it; others withhold something. */
const TEXT_IS_WHOLE = new Set(["stop", "length"]);

/** Reads an engine's answer while it is streamed. Holds at most {@link MAX_ANSWER_CHARACTERS} of its first choice's text. */
export class ObservedAnswer implements AnswerReader {
  #text: string | null = "";
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
    const read = chunk.safeParse(given);
    if (!read.success) return;
    const { choices, usage, timings } = read.data;
    if (isObject(usage) || isObject(timings)) this.reported = given;
    for (const { index, delta, message, finish_reason } of choices) {
      if (delta && holdsToken(delta)) this.firstTokenAt ??= at;
      if (index !== 0) continue;
      this.#append((delta ?? message)?.["content"]);
      this.#hasCalls ||= callFields(delta ?? message ?? {}).some(({ name }) => name !== "");
      this.#finish = finish_reason ?? this.#finish;
    }
  }

  /** The first choice's text, once it is complete; null where it is not, calls a tool, or is too long. */
  get text(): string | null {
    const isWhole = this.#finish !== null && TEXT_IS_WHOLE.has(this.#finish) && !this.#hasCalls;
    return isWhole && this.#text !== "" ? this.#text : null;
  }

  #append(content: unknown): void {
    if (typeof content !== "string" || this.#text === null) return;
    this.#text = this.#text.length + content.length > MAX_ANSWER_CHARACTERS ? null : this.#text + content;
  }
}

/** Whether a chunk holds the usage and nothing else. */
export function isUsageOnly(given: unknown): boolean {
  if (!isObject(given) || !isObject(given["usage"])) return false;
  return Array.isArray(given["choices"]) && given["choices"].length === 0;
}

/** False for the opening chunk, which has the role only: it stands for no token. */
function holdsToken(delta: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(delta).some(
    ([name, value]) =>
      name !== "role" && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
