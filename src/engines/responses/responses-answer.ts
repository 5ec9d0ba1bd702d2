import { append } from "../../core/text/collections.js";
import { type JsonObject, listIn, parsedJson, record, text } from "../../core/text/json.js";
import { sentenceIn } from "../../core/text/sentence.js";
import { readOpenAiUsage } from "../adapters/reported-usage.js";
import { type CarriedReasoning, sealed } from "../turns/reasoning.js";
import {
  NO_TOOLS,
  StreamedTurn,
  type TurnEnd,
  type TurnEvent,
  type TurnItem,
  turnEndOf,
  type WholeItem,
} from "../turns/streamed-turn.js";
import { type ChunkConverter, errorIn, KEEP_ALIVE } from "../upstream/answer-body.js";

/** What a converted answer has of its own. */
export interface ResponseHead {
  /** Without the prefix `resp_`. */
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
  /** The request. */
  readonly asked: JsonObject;
}

/** Fields of a request that its response repeats, with what stands where the request has none. */
const REPEATED: JsonObject = {
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  reasoning: null,
  temperature: null,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_p: null,
  truncation: "disabled",
  user: null,
};

/**
 * Converts a chat completion into a response; its first choice counts. `store` is false: nobody keeps it under its id but memprefix. What the
 * engine gave with its reasoning, and with its calls, is sealed as encrypted content, which clients return unread.
 * Source: https://platform.openai.com/docs/api-reference/responses/object
 */
export function fromChatCompletion(answer: unknown, head: ResponseHead): JsonObject {
  const { choices, model, usage } = record(answer);
  const turn = new StreamedTurn(NO_TOOLS, head.id, returnsSealedOnly(head.asked)).takeWhole(listIn(choices)[0]);
  const items = turn.items();
  const end = endOf(turn);
  const last = items.findLastIndex(({ item }) => item !== null);
  const output = items.map((item, at) =>
    itemOf(head, { at, status: at === last ? statusOfLast(end) : "completed" }, item),
  );
  const response = responseOf(head, { model, output, end, usage });
  const error = errorIn(answer);
  if (error === null) return response;
  const { message } = errorFields(error);
  return { ...response, status: "failed", incomplete_details: null, error: { code: "server_error", message } };
}

/** The response object, finished. */
function responseOf(
  head: ResponseHead,
  { model, output, end, usage }: { model: unknown; output: readonly JsonObject[]; end: TurnEnd; usage: unknown },
): JsonObject {
  const reason = INCOMPLETE[end];
  return {
    ...openResponse(head, model),
    status: reason === null ? "completed" : "incomplete",
    incomplete_details: reason === null ? null : { reason },
    output,
    usage: usageOf(usage),
  };
}

/** Why a response is not complete; null where it is: what it holds, calls or a refusal, its items say. */
const INCOMPLETE: Readonly<Record<TurnEnd, string | null>> = {
  answer: null,
  calls: null,
  length: "max_output_tokens",
  refusal: "content_filter",
};

function endOf({ finish, isCallCut }: StreamedTurn): TurnEnd {
  return turnEndOf(finish, { hasCalls: false, isCallCut });
}

/** Whether an item is all that the model would have said. */
export type ItemStatus = "completed" | "incomplete";

/** The status of a turn's last item, which is the one that was cut where any was. */
function statusOfLast(end: TurnEnd): ItemStatus {
  return end === "length" ? "incomplete" : "completed";
}

/** The response object as the stream's first events have it. */
function openResponse({ id, created, asked }: ResponseHead, model: unknown): JsonObject {
  const repeated = Object.entries(REPEATED).map(([field, absent]) => [field, asked[field] ?? absent]);
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: created,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    model: model ?? asked["model"] ?? null,
    output: [],
    previous_response_id: null,
    store: false,
    usage: null,
    ...Object.fromEntries(repeated),
  };
}

/** Where an item stands in its response, and whether it is whole. */
interface ItemState {
  readonly at: number;
  readonly status: ItemStatus;
}

function itemOf(
  { id }: ResponseHead,
  { at, status }: ItemState,
  { item, text: said, reasoning }: WholeItem,
): JsonObject {
  if (item === null || item.kind === "reasoning") {
    const content = item === null ? [] : [{ type: "reasoning_text", text: said }];
    const seal = reasoning === null ? {} : { encrypted_content: sealed(reasoning) };
    return { id: `rs_${id}_${at}`, type: "reasoning", summary: [], content, ...seal };
  }
  if (item.kind === "call") {
    // Arguments that are JSON were not cut, though the turn may have been.
    const own = parsedJson(said) === undefined ? status : "completed";
    const called = { call_id: item.id, name: item.name, arguments: said };
    return { id: `fc_${id}_${at}`, type: "function_call", status: own, ...called };
  }
  const part =
    item.kind === "text"
      ? { type: "output_text", text: said, annotations: [], logprobs: [] }
      : { type: "refusal", refusal: said };
  return { id: `msg_${id}_${at}`, type: "message", status, role: "assistant", content: [part] };
}

/** Whether a client that returns a reasoning item may leave out its text, as it does for OpenAI's. */
function returnsSealedOnly(asked: JsonObject): boolean {
  return asked["store"] === false || listIn(asked["include"]).includes("reasoning.encrypted_content");
}

/** OpenAI's counts of a response; null where the engine reports none. */
function usageOf(usage: unknown): JsonObject | null {
  if (typeof usage !== "object" || usage === null) return null;
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } =
    record(usage);
  const { cachedTokens, writtenTokens } = readOpenAiUsage({ usage });
  const details = {
    ...record(prompt_tokens_details),
    ...(cachedTokens === null ? {} : { cached_tokens: cachedTokens }),
    ...(writtenTokens === null ? {} : { cache_write_tokens: writtenTokens }),
  };
  return {
    input_tokens: prompt_tokens,
    ...(Object.keys(details).length === 0 ? {} : { input_tokens_details: details }),
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0, ...record(completion_tokens_details) },
    total_tokens,
  };
}

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

/**
 * Converts the chunks of a streamed chat completion into the events of a response, by OpenAI's order: `response.created`, for each item
 * what is added, its deltas and what is done, `response.completed`.
 * Source: https://platform.openai.com/docs/api-reference/responses-streaming
 */
export class ResponseEvents implements ChunkConverter {
  readonly keepAlive = KEEP_ALIVE;
  readonly #turn: StreamedTurn;
  readonly #output: JsonObject[] = [];
  /** The item that is being streamed, and its text or a call's arguments so far; before the first, none that any event is of. */
  #open: { readonly item: TurnItem; text: string } = { item: { kind: "text" }, text: "" };
  #model: unknown = null;
  #usage: unknown = null;
  #count = 0;

  constructor(private readonly head: ResponseHead) {
    const tools = listIn(head.asked["tools"]).map((tool) => text(record(tool)["name"]));
    this.#turn = new StreamedTurn(new Set(tools), head.id, returnsSealedOnly(head.asked));
  }

  get isFinished(): boolean {
    return this.#turn.finish !== null;
  }

  take(chunk: unknown): readonly JsonObject[] {
    const { choices, usage, model } = record(chunk);
    const error = errorIn(chunk);
    if (error !== null) return [this.#event("error", { ...errorFields(error), error })];
    this.#model ??= model ?? null;
    this.#usage = usage ?? this.#usage;
    const events = this.#count === 0 ? this.#begin() : [];
    for (const event of this.#turn.take(choices)) append(events, this.#eventsOf(event, "completed"));
    return events;
  }

  end(): readonly JsonObject[] {
    const events = this.#count === 0 ? this.#begin() : [];
    const end = endOf(this.#turn);
    // What ends here may have been cut.
    for (const event of this.#turn.end()) append(events, this.#eventsOf(event, statusOfLast(end)));
    const response = responseOf(this.head, {
      model: this.#model,
      output: this.#output,
      end,
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
    const place = { at: this.#output.length, status: "completed" } as const;
    const item = itemOf(this.head, place, { item: null, text: "", reasoning });
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
    return itemOf(this.head, { at: this.#output.length, status }, { ...this.#open, reasoning });
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
  const { code, param } = record(error);
  return { code: code ?? null, message: sentenceIn(error) ?? "the engine reported an error", param: param ?? null };
}
