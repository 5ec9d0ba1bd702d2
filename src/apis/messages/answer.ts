import { isRecord, record } from "../../core/text/json.js";
import { type AnswerReader, BoundedText, isWholeText } from "../api/answer.js";
import { countsPrompt, type EngineUsage, reported, reportedCount, usageRecord } from "../api/usage.js";

const OF_PROMPT: ReadonlySet<string> = new Set([
  "input_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
]);

/** Source: https://platform.claude.com/docs/en/build-with-claude/streaming */
export class MessageAnswer implements AnswerReader {
  readonly #text = new BoundedText();
  #stop: unknown = null;
  #hasCalls = false;
  #usage: Readonly<Record<string, unknown>> | null = null;
  /** llama.cpp's `timings`. */
  #beside: Readonly<Record<string, unknown>> = {};
  firstTokenAt: number | null = null;
  isOver = false;

  take(given: unknown, at: number): void {
    const event = record(given);
    switch (event["type"]) {
      case "message":
        this.#takeMessage(event);
        break;
      case "message_start":
        this.#takeUsage(record(event["message"])["usage"]);
        break;
      case "content_block_start":
        // A text's opening is empty and no token; a call's has its name.
        if (this.#isCall(event["content_block"])) this.firstTokenAt ??= at;
        break;
      case "content_block_delta":
        this.firstTokenAt ??= at;
        this.#text.append(record(event["delta"])["text"]);
        break;
      case "message_delta":
        this.#stop = record(event["delta"])["stop_reason"] ?? this.#stop;
        if (event["timings"] != null) this.#beside = { timings: event["timings"] };
        this.#takeUsage(event["usage"]);
        break;
      case "message_stop":
        this.isOver = true;
    }
  }

  /** `message_delta` adds to the usage of `message_start` and updates it. */
  get reported(): unknown {
    return this.#usage === null ? null : { ...this.#beside, usage: this.#usage };
  }

  get text(): string | null {
    return isWholeText(this.#stop) && !this.#hasCalls ? this.#text.whole : null;
  }

  #takeMessage(message: Readonly<Record<string, unknown>>): void {
    const { content, stop_reason, usage, timings } = message;
    for (const block of Array.isArray(content) ? (content as readonly unknown[]) : [])
      if (!this.#isCall(block) && record(block)["type"] === "text") this.#text.append(record(block)["text"]);
    this.#stop = stop_reason;
    if (timings != null) this.#beside = { timings };
    this.#takeUsage(usage);
  }

  #isCall(block: unknown): boolean {
    const isCall = record(block)["type"] === "tool_use";
    this.#hasCalls ||= isCall;
    return isCall;
  }

  /** Zeros for the prompt are not known yet, or left out after what was said before. */
  #takeUsage(given: unknown): void {
    if (!isRecord(given)) return;
    const isKnown = countsPrompt(given);
    const said = Object.entries(given).filter(
      ([name, count]) => count !== null && count !== undefined && (isKnown || !OF_PROMPT.has(name)),
    );
    if (said.length === 0) return;
    this.#usage = { ...this.#usage, ...Object.fromEntries(said) };
  }
}

/**
 * Reads the usage of a message, of a stream's `message_start` and `message_delta`, or of a gateway's chat completion with these fields. "Total
 * input tokens in a request is the summation of `input_tokens`, `cache_creation_input_tokens`, and `cache_read_input_tokens`" (API reference,
 * `Usage`). Without `input_tokens` the total is unknown. llama.cpp has cached tokens in `timings`.
 */
export function readMessagesUsage(answer: unknown): EngineUsage {
  const usage = reported(answer, "usage") ?? reported(answer, "message", "usage");
  const read = reportedCount(usage, "cache_read_input_tokens");
  const writtenTokens = reportedCount(usage, "cache_creation_input_tokens");
  const uncached = reportedCount(usage, "input_tokens");
  return usageRecord(
    {
      promptTokens: uncached === null ? null : uncached + (read ?? 0) + (writtenTokens ?? 0),
      cachedTokens: read ?? reportedCount(answer, "timings", "cache_n"),
      writtenTokens,
      completionTokens: reportedCount(usage, "output_tokens"),
    },
    usage ?? null,
  );
}
