import { append } from "../../core/text/lists.js";
import { record, text } from "../upstream/json-values.js";
import { StreamedTurn, type TurnEvent, type TurnItem } from "../upstream/streamed-turn.js";
import { type AnthropicAnswer, anthropicError, anthropicUsage, stopReason } from "./message-answer.js";

/** Converts the chunks of a streamed chat completion into the events of a streamed `/v1/messages` answer, in order. */
export class MessageStream {
  readonly #turn: StreamedTurn;
  #isStarted = false;
  #usage: unknown = null;
  #timings: unknown = null;
  /** Blocks begun. */
  #blocks = 0;

  /**
   * @param tools names of the functions that the request has
   * @param ownId the message's id where the engine gives none
   */
  constructor(
    tools: ReadonlySet<string>,
    private readonly ownId: string,
  ) {
    this.#turn = new StreamedTurn(tools, ownId);
  }

  /** Whether the stream may end: the engine gave a finish reason. */
  get isFinished(): boolean {
    return this.#turn.finish !== null;
  }

  /** The events that a chunk stands for. */
  take(chunk: unknown): readonly AnthropicAnswer[] {
    const { id, model, choices, usage, timings, error } = record(chunk);
    if (error != null) return [anthropicError(chunk, 500)];
    if (usage != null) this.#usage = usage;
    if (timings != null) this.#timings = timings;
    const events: AnthropicAnswer[] = this.#isStarted ? [] : this.#start(id, model);
    append(events, this.#turn.take(choices).map(this.#eventOf));
    return events;
  }

  /** The events of the end. */
  end(): readonly AnthropicAnswer[] {
    return [
      ...(this.#isStarted ? [] : this.#start("", "")),
      ...this.#turn.end().map(this.#eventOf),
      {
        type: "message_delta",
        delta: { stop_reason: stopReason(this.#turn.finish, this.#turn), stop_sequence: null },
        usage: this.#usage === null ? { output_tokens: 0 } : anthropicUsage(this.#usage),
        ...(this.#timings === null ? {} : { timings: this.#timings }),
      },
      { type: "message_stop" },
    ];
  }

  #start(id: unknown, model: unknown): AnthropicAnswer[] {
    this.#isStarted = true;
    const message = {
      id: text(id) || this.ownId,
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

  readonly #eventOf = (event: TurnEvent): AnthropicAnswer => {
    const { type, item } = event;
    if (type === "begun") this.#blocks++;
    const index = this.#blocks - 1;
    switch (type) {
      case "begun":
        return { type: "content_block_start", index, content_block: emptyBlock(item) };
      case "more":
        return { type: "content_block_delta", index, delta: blockDelta(item, event.text) };
      case "ended":
        return { type: "content_block_stop", index };
    }
  };
}

function emptyBlock(item: TurnItem): AnthropicAnswer {
  switch (item.kind) {
    case "reasoning":
      return { type: "thinking", thinking: "", signature: "" };
    case "text":
    case "refusal":
      return { type: "text", text: "" };
    case "call":
      return { type: "tool_use", id: item.id, name: item.name, input: {} };
  }
}

function blockDelta({ kind }: TurnItem, more: string): AnthropicAnswer {
  switch (kind) {
    case "reasoning":
      return { type: "thinking_delta", thinking: more };
    case "text":
    case "refusal":
      return { type: "text_delta", text: more };
    case "call":
      return { type: "input_json_delta", partial_json: more };
  }
}
