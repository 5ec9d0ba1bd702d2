import { z } from "zod";

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

/** Most characters of an answer that are kept to be written back; a longer one is not. */
const MAX_ANSWER_CHARACTERS = 100_000;
/** Reasons for which an answer's text is the whole of it; others leave it to a tool, or hold something back. */
const TEXT_IS_WHOLE = new Set(["stop", "length"]);

/** What is learned of an engine's answer while it goes by. Holds at most {@link MAX_ANSWER_CHARACTERS} of its first choice's text. */
export class ObservedAnswer {
  #text: string | null = "";
  #finish: string | null = null;
  /** When the first token came; null where none did, or where the answer came as a whole. In the clock's milliseconds. */
  firstTokenAt: number | null = null;
  /** The last thing that had token counts in it. */
  reported: unknown = null;

  /** Takes an answer, or one chunk of a streamed one; whatever else it is given changes nothing. */
  take(given: unknown, at: number): void {
    const read = chunk.safeParse(given);
    if (!read.success) return;
    const { choices, usage, timings } = read.data;
    if (isObject(usage) || isObject(timings)) this.reported = given;
    for (const { index, delta, message, finish_reason } of choices) {
      if (delta && holdsToken(delta)) this.firstTokenAt ??= at;
      if (index !== 0) continue;
      this.#append((delta ?? message)?.["content"]);
      this.#finish = finish_reason ?? this.#finish;
    }
  }

  /** The first choice's text, once it is whole; null where it is none, or too long. */
  get text(): string | null {
    return this.#finish !== null && TEXT_IS_WHOLE.has(this.#finish) && this.#text !== "" ? this.#text : null;
  }

  #append(content: unknown): void {
    if (typeof content !== "string" || this.#text === null) return;
    this.#text = this.#text.length + content.length > MAX_ANSWER_CHARACTERS ? null : this.#text + content;
  }
}

/** Whether a chunk is the one that was asked for to hold the usage, and holds nothing else. */
export function isUsageOnly(given: unknown): boolean {
  if (!isObject(given) || !isObject(given["usage"])) return false;
  return Array.isArray(given["choices"]) && given["choices"].length === 0;
}

/** Engines open with a chunk that names the role only: no token was made for it. */
function holdsToken(delta: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(delta).some(
    ([name, value]) =>
      name !== "role" && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
