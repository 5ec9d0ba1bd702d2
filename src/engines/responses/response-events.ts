import { append } from "../../core/text/lists.js";
import type { CarriedReasoning } from "../turns/carried-reasoning.js";
import { StreamedTurn, type TurnEvent, type TurnItem } from "../turns/streamed-turn.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import {
  callItem,
  type ItemStatus,
  messageItem,
  openResponse,
  type ResponseHead,
  reasoningItem,
  refusalPart,
  responseOf,
  returnsSealedOnly,
  statusOfLast,
  textPart,
} from "./response-object.js";

/** The kinds of items that a chat streams, each with the events of its text. */
const KINDS = {
  text: { delta: "response.output_text.delta", done: "response.output_text.done", field: "text" },
  refusal: { delta: "response.refusal.delta", done: "response.refusal.done", field: "refusal" },
  reasoning: { delta: "response.reasoning_text.delta", done: "response.reasoning_text.done", field: "text" },
  call: {
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
    field: "arguments",
  },
} as const;
/** An item before the first. */
const NO_ITEM: OpenItem = { item: { kind: "text" }, text: "" };

/** The item that is being streamed, and its text or a call's arguments so far. */
interface OpenItem {
  readonly item: TurnItem;
  text: string;
}

/**
 * Converts the chunks of a streamed chat completion into the events of a response, by OpenAI's order: `response.created`, for each item
 * what is added, its deltas and what is done, `response.completed`.
 * Source: https://platform.openai.com/docs/api-reference/responses-streaming
 */
export class ResponseEvents {
  readonly #turn: StreamedTurn;
  readonly #output: JsonObject[] = [];
  #open: OpenItem = NO_ITEM;
  #model: unknown = null;
  #usage: unknown = null;
  #count = 0;

  constructor(private readonly head: ResponseHead) {
    const tools = listIn(head.asked["tools"]).map((tool) => text(record(tool)["name"]));
    this.#turn = new StreamedTurn(new Set(tools), head.id, returnsSealedOnly(head.asked));
  }

  /** Whether the answer is complete: the engine gave a reason for its end. */
  get isFinished(): boolean {
    return this.#turn.finish !== null;
  }

  /** The events of one chunk. */
  take(chunk: unknown): readonly JsonObject[] {
    const { choices, usage, model, error } = record(chunk);
    if (error != null) return [this.#event("error", { ...errorFields(error), error })];
    this.#model ??= model ?? null;
    this.#usage = usage ?? this.#usage;
    const events = this.#count === 0 ? this.#begin() : [];
    for (const event of this.#turn.take(choices)) append(events, this.#eventsOf(event, "completed"));
    return events;
  }

  /** The events after the last chunk. */
  end(): readonly JsonObject[] {
    const events = this.#count === 0 ? this.#begin() : [];
    const { finish } = this.#turn;
    // What ends here may have been cut.
    for (const event of this.#turn.end()) append(events, this.#eventsOf(event, statusOfLast(finish)));
    const response = responseOf(this.head, {
      model: this.#model,
      output: this.#output,
      finish,
      usage: this.#usage,
    });
    return [...events, this.#event(`response.${response["status"]}`, { response })];
  }

  #begin(): JsonObject[] {
    const response = openResponse(this.head, this.#model);
    return [this.#event("response.created", { response }), this.#event("response.in_progress", { response })];
  }

  #eventsOf(event: TurnEvent, status: ItemStatus): readonly JsonObject[] {
    switch (event.type) {
      case "begun":
        return this.#start(event.item);
      case "more":
        this.#open.text += event.text;
        return [
          this.#event(KINDS[event.item.kind].delta, { ...this.#at(), delta: event.text, ...logprobsOf(event.item) }),
        ];
      case "ended":
        return this.#close(status, event.reasoning);
      case "sealed":
        return this.#silent(event.reasoning);
    }
  }

  #start(item: TurnItem): readonly JsonObject[] {
    this.#open = { item, text: "" };
    const empty = item.kind === "call" ? {} : { content: [] };
    const begun = { item: { ...this.#itemOf("completed"), ...empty, status: "in_progress" }, ...this.#place() };
    const added = [this.#event("response.output_item.added", begun)];
    if (item.kind !== "call") added.push(this.#event("response.content_part.added", this.#part()));
    return added;
  }

  /** An item without a text. */
  #silent(reasoning: CarriedReasoning): readonly JsonObject[] {
    const item = reasoningItem(this.head, this.#output.length, "", reasoning);
    const begun = { item: { ...item, status: "in_progress" }, ...this.#place() };
    const events = [
      this.#event("response.output_item.added", begun),
      this.#event("response.output_item.done", { item, ...this.#place() }),
    ];
    this.#output.push(item);
    return events;
  }

  #close(status: ItemStatus, reasoning: CarriedReasoning | null): readonly JsonObject[] {
    const { item, text: whole } = this.#open;
    const { done, field } = KINDS[item.kind];
    const named = item.kind === "call" ? { name: item.name } : {};
    const events = [this.#event(done, { ...this.#at(), [field]: whole, ...named, ...logprobsOf(item) })];
    if (item.kind !== "call") events.push(this.#event("response.content_part.done", this.#part()));
    const closed = this.#itemOf(status, reasoning);
    events.push(this.#event("response.output_item.done", { item: closed, ...this.#place() }));
    this.#output.push(closed);
    return events;
  }

  /** @param reasoning what is sealed with it, once all of it is known */
  #itemOf(status: ItemStatus, reasoning: CarriedReasoning | null = null): JsonObject {
    const { item, text: so } = this.#open;
    const at = this.#output.length;
    switch (item.kind) {
      case "text":
        return messageItem(this.head, { at, status }, textPart(so));
      case "refusal":
        return messageItem(this.head, { at, status }, refusalPart(so));
      case "reasoning":
        return reasoningItem(this.head, at, so, reasoning);
      case "call":
        return callItem(this.head, { at, status }, { ...item, given: so });
    }
  }

  #part(): JsonObject {
    return { ...this.#at(), part: listIn(this.#itemOf("completed")["content"])[0] };
  }

  #at(): JsonObject {
    const part = this.#open.item.kind === "call" ? {} : { content_index: 0 };
    return { item_id: this.#itemOf("completed")["id"], ...this.#place(), ...part };
  }

  #place(): JsonObject {
    return { output_index: this.#output.length };
  }

  #event(type: string, fields: JsonObject): JsonObject {
    return { type, ...fields, sequence_number: this.#count++ };
  }
}

/** Events of plain text have log probabilities, here none. */
function logprobsOf({ kind }: TurnItem): JsonObject {
  return kind === "text" ? { logprobs: [] } : {};
}

function errorFields(error: unknown): JsonObject {
  const { code, message, param } = record(error);
  return { code: code ?? null, message: message ?? "the engine reported an error", param: param ?? null };
}
