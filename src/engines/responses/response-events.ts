import { append } from "../../core/text/lists.js";
import {
  isSilent,
  ReasoningRun,
  reasoningIn,
  type SaidReasoning,
  SignedParts,
} from "../reasoning/answered-reasoning.js";
import type { CarriedReasoning } from "../reasoning/carried-reasoning.js";
import { type JsonObject, listIn, record } from "../upstream/json-values.js";
import {
  callItem,
  messageItem,
  openResponse,
  type ResponseHead,
  reasoningItem,
  refusalPart,
  responseOf,
  returnsSealedOnly,
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
type Kind = keyof typeof KINDS;

/** The item that is being streamed. */
interface OpenItem {
  readonly kind: Kind;
  /** Its text, or a call's arguments, so far. */
  text: string;
  /** Of a call: which of the answer's. */
  readonly index: number;
  readonly callId: string;
  readonly name: string;
}

/**
 * Converts the chunks of a streamed chat completion into the events of a response, by OpenAI's order: `response.created`, for each item
 * what is added, its deltas and what is done, `response.completed`.
 * Source: https://platform.openai.com/docs/api-reference/responses-streaming
 */
export class ResponseEvents {
  readonly #output: JsonObject[] = [];
  #open: OpenItem | null = null;
  /** The reasoning of the open item, or what was said of reasoning since the last one. */
  #run = new ReasoningRun();
  readonly #parts = new SignedParts();
  /** Characters of the answer's text so far. */
  #characters = 0;
  #model: unknown = null;
  #usage: unknown = null;
  #finish: unknown = null;
  #count = 0;

  constructor(private readonly head: ResponseHead) {}

  /** Whether the answer is complete: the engine gave a reason for its end. */
  get isFinished(): boolean {
    return this.#finish !== null;
  }

  /** The events of one chunk. */
  take(chunk: unknown): readonly JsonObject[] {
    const { choices, usage, model, error } = record(chunk);
    if (error != null) return [this.#event("error", { ...errorFields(error), error })];
    this.#model ??= model ?? null;
    this.#usage = usage ?? this.#usage;
    const events = this.#count === 0 ? this.#begin() : [];
    for (const choice of listIn(choices)) {
      const { index, delta, finish_reason: finish } = record(choice);
      if (index !== 0 && index !== undefined) continue;
      const { content, refusal, tool_calls: calls } = record(delta);
      this.#parts.take(record(delta));
      append(events, this.#thought(reasoningIn(record(delta))));
      append(events, this.#say("text", content));
      append(events, this.#say("refusal", refusal));
      for (const call of listIn(calls)) append(events, this.#call(record(call)));
      this.#finish = finish ?? this.#finish;
    }
    return events;
  }

  /** The events behind the last chunk. */
  end(): readonly JsonObject[] {
    const begun = this.#count === 0 ? this.#begin() : [];
    const { carried } = this.#parts;
    const closed = [...this.#close(), ...this.#unsaid(), ...(carried === null ? [] : this.#silent(carried))];
    const response = responseOf(this.head, {
      model: this.#model,
      output: this.#output,
      finish: this.#finish,
      usage: this.#usage,
    });
    return [...begun, ...closed, this.#event(`response.${response["status"]}`, { response })];
  }

  #begin(): JsonObject[] {
    const response = openResponse(this.head, this.#model);
    return [this.#event("response.created", { response }), this.#event("response.in_progress", { response })];
  }

  #thought(thought: SaidReasoning): readonly JsonObject[] {
    if (isSilent(thought)) return [];
    const opened = this.#open?.kind === "reasoning" || thought.text === "" ? [] : this.#close();
    this.#run.take(thought);
    return [...opened, ...this.#say("reasoning", thought.text)];
  }

  /** An item with what was said of reasoning without a text. */
  #unsaid(): readonly JsonObject[] {
    return this.#run.isEmpty ? [] : this.#silent(this.#taken());
  }

  #silent(carried: CarriedReasoning): readonly JsonObject[] {
    const item = reasoningItem(this.head, this.#output.length, "", carried);
    const added = this.#event("response.output_item.added", {
      item: { ...item, status: "in_progress" },
      ...this.#place(),
    });
    const done = this.#event("response.output_item.done", { item, ...this.#place() });
    this.#output.push(item);
    return [added, done];
  }

  #taken(): CarriedReasoning {
    const carried = this.#run.carried(returnsSealedOnly(this.head));
    this.#run = new ReasoningRun();
    return this.#characters === 0 ? carried : { ...carried, behind: this.#characters };
  }

  #say(kind: Exclude<Kind, "call">, text: unknown): readonly JsonObject[] {
    if (typeof text !== "string" || text === "") return [];
    const opened = this.#open?.kind === kind ? [] : this.#start({ kind, text: "", index: -1, callId: "", name: "" });
    return [...opened, ...this.#delta(text)];
  }

  #call({ index, id, function: called }: JsonObject): readonly JsonObject[] {
    const { name, arguments: given } = record(called);
    const at = typeof index === "number" ? index : 0;
    const isSame = this.#open?.kind === "call" && this.#open.index === at;
    const opened = isSame
      ? []
      : this.#start({ kind: "call", text: "", index: at, callId: String(id ?? ""), name: String(name ?? "") });
    return [...opened, ...(typeof given === "string" && given !== "" ? this.#delta(given) : [])];
  }

  #start(item: OpenItem): readonly JsonObject[] {
    const closed = [...this.#close(), ...(item.kind === "reasoning" ? [] : this.#unsaid())];
    this.#open = item;
    const whole = this.#itemOf(item);
    const empty = item.kind === "call" ? {} : { content: [] };
    const begun = { item: { ...whole, ...empty, status: "in_progress" }, ...this.#place() };
    const added = [...closed, this.#event("response.output_item.added", begun)];
    if (item.kind !== "call") added.push(this.#event("response.content_part.added", this.#part(item)));
    return added;
  }

  #delta(delta: string): readonly JsonObject[] {
    const open = this.#open;
    if (open === null) return [];
    open.text += delta;
    if (open.kind === "text") this.#characters += delta.length;
    return [this.#event(KINDS[open.kind].delta, { ...this.#at(open), delta, ...logprobsOf(open) })];
  }

  #close(): readonly JsonObject[] {
    const open = this.#open;
    if (open === null) return [];
    const { done, field } = KINDS[open.kind];
    const item = this.#itemOf(open, open.kind === "reasoning" ? this.#taken() : null);
    const named = open.kind === "call" ? { name: open.name } : {};
    const events = [this.#event(done, { ...this.#at(open), [field]: open.text, ...named, ...logprobsOf(open) })];
    if (open.kind !== "call") events.push(this.#event("response.content_part.done", this.#part(open)));
    events.push(this.#event("response.output_item.done", { item, ...this.#place() }));
    this.#output.push(item);
    this.#open = null;
    return events;
  }

  /** @param carried of reasoning: what is sealed with it, once all of it is known */
  #itemOf({ kind, text, callId, name }: OpenItem, carried: CarriedReasoning | null = null): JsonObject {
    const at = this.#output.length;
    switch (kind) {
      case "text":
        return messageItem(this.head, at, textPart(text));
      case "refusal":
        return messageItem(this.head, at, refusalPart(text));
      case "reasoning":
        return reasoningItem(this.head, at, text, carried);
      case "call":
        return callItem(this.head, at, { id: callId, name, given: text });
    }
  }

  #part(open: OpenItem): JsonObject {
    return { ...this.#at(open), part: listIn(this.#itemOf(open)["content"])[0] };
  }

  #at(open: OpenItem): JsonObject {
    const part = open.kind === "call" ? {} : { content_index: 0 };
    return { item_id: this.#itemOf(open)["id"], ...this.#place(), ...part };
  }

  #place(): JsonObject {
    return { output_index: this.#output.length };
  }

  #event(type: string, fields: JsonObject): JsonObject {
    return { type, ...fields, sequence_number: this.#count++ };
  }
}

/** Events of plain text have log probabilities, here none. */
function logprobsOf({ kind }: OpenItem): JsonObject {
  return kind === "text" ? { logprobs: [] } : {};
}

function errorFields(error: unknown): JsonObject {
  const { code, message, param } = record(error);
  return { code: code ?? null, message: message ?? "the engine reported an error", param: param ?? null };
}
