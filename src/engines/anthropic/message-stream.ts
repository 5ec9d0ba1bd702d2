import { append } from "../../core/text/lists.js";
import {
  isSilent,
  ReasoningRun,
  reasoningIn,
  type SaidReasoning,
  SignedParts,
} from "../reasoning/answered-reasoning.js";
import { type CarriedReasoning, sealed } from "../reasoning/carried-reasoning.js";
import { record, text } from "../upstream/json-values.js";
import { type AnthropicAnswer, anthropicError, anthropicUsage, stopReason, thinkingBlock } from "./message-answer.js";

/** Converts the chunks of a streamed chat completion into the events of a streamed `/v1/messages` answer, in order. */
export class MessageStream {
  #isStarted = false;
  /** Whether the engine said that the answer is whole. */
  #isFinished = false;
  #finish: unknown = null;
  #usage: unknown = null;
  #timings: unknown = null;
  /** Blocks begun. */
  #blocks = 0;
  /** The open block's kind: `text`, `thinking`, or a call by its index; null for none. */
  #open: string | null = null;
  /** The reasoning of the open block, or what was said of reasoning since the last one. */
  #run = new ReasoningRun();
  readonly #parts = new SignedParts();
  /** Block indexes of calls by OpenAI's index. */
  readonly #calls = new Map<number, number>();

  /** Whether the stream may end: the engine gave a finish reason. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** The events that a chunk stands for. */
  take(chunk: unknown): readonly AnthropicAnswer[] {
    const { id, model, choices, usage, timings, error } = record(chunk);
    if (error != null) return [anthropicError(chunk, 500)];
    if (usage != null) this.#usage = usage;
    if (timings != null) this.#timings = timings;
    const { delta, finish_reason, index = 0 } = record(Array.isArray(choices) ? choices[0] : null);
    const events: AnthropicAnswer[] = this.#isStarted ? [] : this.#start(id, model);
    if (index !== 0) return events;
    append(events, this.#said(record(delta)));
    if (finish_reason != null) {
      this.#finish = finish_reason;
      this.#isFinished = true;
    }
    return events;
  }

  /** The events of the end. */
  end(): readonly AnthropicAnswer[] {
    return [
      ...(this.#isStarted ? [] : this.#start("", "")),
      ...this.#close(),
      ...this.#unsaid(),
      ...this.#signedParts(),
      {
        type: "message_delta",
        delta: { stop_reason: stopReason(this.#finish), stop_sequence: null },
        usage: this.#usage === null ? { output_tokens: 0 } : anthropicUsage(this.#usage),
        ...(this.#timings === null ? {} : { timings: this.#timings }),
      },
      { type: "message_stop" },
    ];
  }

  #start(id: unknown, model: unknown): AnthropicAnswer[] {
    this.#isStarted = true;
    const message = {
      id: text(id),
      type: "message",
      role: "assistant",
      model: text(model),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      // Known at the end only.
      usage: { input_tokens: 0, output_tokens: 0 },
    };
    return [{ type: "message_start", message }, { type: "ping" }];
  }

  #said(delta: Readonly<Record<string, unknown>>): readonly AnthropicAnswer[] {
    const { content, tool_calls } = delta;
    const events: AnthropicAnswer[] = [];
    this.#parts.take(delta);
    append(events, this.#thought(reasoningIn(delta)));
    if (text(content) !== "") {
      append(events, this.#opened("text", { type: "text", text: "" }));
      events.push(this.#delta({ type: "text_delta", text: content }));
    }
    for (const call of Array.isArray(tool_calls) ? (tool_calls as readonly unknown[]) : [])
      append(events, this.#called(record(call)));
    return events;
  }

  #thought(thought: SaidReasoning): readonly AnthropicAnswer[] {
    if (isSilent(thought)) return [];
    if (thought.text === "") {
      this.#run.take(thought);
      return [];
    }
    const opened = this.#opened("thinking", { type: "thinking", thinking: "", signature: "" });
    this.#run.take(thought);
    return [...opened, this.#delta({ type: "thinking_delta", thinking: thought.text })];
  }

  #called({ index, id, function: called }: Readonly<Record<string, unknown>>): readonly AnthropicAnswer[] {
    const { name, arguments: json } = record(called);
    const at = typeof index === "number" ? index : this.#calls.size;
    const known = this.#calls.get(at);
    const block = { type: "tool_use", id: text(id), name: text(name), input: {} };
    const opened = known === undefined ? this.#opened(`call ${at}`, block) : [];
    if (known === undefined) this.#calls.set(at, this.#blocks - 1);
    const place = known ?? this.#blocks - 1;
    const more = text(json);
    return more === "" ? opened : [...opened, this.#delta({ type: "input_json_delta", partial_json: more }, place)];
  }

  #opened(kind: string, content_block: AnthropicAnswer): readonly AnthropicAnswer[] {
    if (this.#open === kind) return [];
    const closed = this.#close();
    const unsaid = kind === "thinking" ? [] : this.#unsaid();
    this.#open = kind;
    this.#blocks++;
    return [...closed, ...unsaid, { type: "content_block_start", index: this.#blocks - 1, content_block }];
  }

  #close(): readonly AnthropicAnswer[] {
    if (this.#open === null) return [];
    const signature = this.#open === "thinking" ? sealed(this.#taken()) : null;
    this.#open = null;
    return [
      ...(signature === null ? [] : [this.#delta({ type: "signature_delta", signature })]),
      { type: "content_block_stop", index: this.#blocks - 1 },
    ];
  }

  /** A block with what was said of reasoning without a text. */
  #unsaid(): readonly AnthropicAnswer[] {
    return this.#run.isEmpty ? [] : this.#whole(thinkingBlock("", this.#taken()));
  }

  /** A block with what stands beside the answer's calls and text. */
  #signedParts(): readonly AnthropicAnswer[] {
    const { carried } = this.#parts;
    return carried === null ? [] : this.#whole(thinkingBlock("", carried));
  }

  #whole(content_block: AnthropicAnswer): readonly AnthropicAnswer[] {
    const index = this.#blocks++;
    return [
      { type: "content_block_start", index, content_block },
      { type: "content_block_stop", index },
    ];
  }

  #taken(): CarriedReasoning {
    const carried = this.#run.carried();
    this.#run = new ReasoningRun();
    return carried;
  }

  #delta(delta: AnthropicAnswer, index = this.#blocks - 1): AnthropicAnswer {
    return { type: "content_block_delta", index, delta };
  }
}
