import type { AnswerReader } from "./answer-reader.js";

/** Most characters of an answer that is written back as a memory; a longer one is not. */
const MAX_ANSWER_CHARACTERS = 100_000;
/** Stop reasons with which the text is the whole answer, where no call stands beside it; others withhold something. */
const TEXT_IS_WHOLE: ReadonlySet<unknown> = new Set(["end_turn", "stop_sequence", "max_tokens"]);

/**
 * Reads an answer of `/v1/messages`, or the events of a streamed one. Holds at most {@link MAX_ANSWER_CHARACTERS} of its text.
 * Source: https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export class ObservedMessage implements AnswerReader {
  #text: string | null = "";
  #stop: unknown = null;
  #hasCalls = false;
  #usage: Readonly<Record<string, unknown>> | null = null;
  /** What stands beside the usage: llama.cpp's `timings`. */
  #beside: Readonly<Record<string, unknown>> = {};
  firstTokenAt: number | null = null;
  isOver = false;

  take(given: unknown, at: number): void {
    const event = recordOf(given);
    if (event === null) return;
    switch (event["type"]) {
      case "message":
        this.#takeMessage(event);
        break;
      case "message_start":
        this.#takeFirstUsage(recordOf(event["message"])?.["usage"]);
        break;
      case "content_block_start":
        // A text's opening is empty and no token; a call's has its name.
        if (this.#isCall(event["content_block"])) this.firstTokenAt ??= at;
        break;
      case "content_block_delta":
        this.firstTokenAt ??= at;
        this.#append(recordOf(event["delta"])?.["text"]);
        break;
      case "message_delta":
        this.#stop = recordOf(event["delta"])?.["stop_reason"] ?? this.#stop;
        if (event["timings"] != null) this.#beside = { timings: event["timings"] };
        this.#takeUsage(event["usage"]);
        break;
      case "message_stop":
        this.isOver = true;
    }
  }

  /** Usage as an answer has it: `message_delta` adds to `message_start` and updates it. */
  get reported(): unknown {
    return this.#usage === null ? null : { ...this.#beside, usage: this.#usage };
  }

  get text(): string | null {
    return TEXT_IS_WHOLE.has(this.#stop) && !this.#hasCalls && this.#text !== "" ? this.#text : null;
  }

  #takeMessage(message: Readonly<Record<string, unknown>>): void {
    const { content, stop_reason, usage, timings } = message;
    for (const block of Array.isArray(content) ? (content as readonly unknown[]) : [])
      if (!this.#isCall(block) && recordOf(block)?.["type"] === "text") this.#append(recordOf(block)?.["text"]);
    this.#stop = stop_reason;
    if (timings != null) this.#beside = { timings };
    this.#takeUsage(usage);
  }

  #isCall(block: unknown): boolean {
    const isCall = recordOf(block)?.["type"] === "tool_use";
    this.#hasCalls ||= isCall;
    return isCall;
  }

  /** No prompt has no tokens: where all counts are 0, they are not known yet. */
  #takeFirstUsage(given: unknown): void {
    if (Object.values(recordOf(given) ?? {}).some((count) => typeof count === "number" && count > 0))
      this.#takeUsage(given);
  }

  #takeUsage(given: unknown): void {
    const usage = recordOf(given);
    if (usage === null) return;
    const said = Object.entries(usage).filter(([, count]) => count !== null && count !== undefined);
    this.#usage = { ...this.#usage, ...Object.fromEntries(said) };
  }

  #append(more: unknown): void {
    if (typeof more !== "string" || this.#text === null) return;
    this.#text = this.#text.length + more.length > MAX_ANSWER_CHARACTERS ? null : this.#text + more;
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : null;
}
