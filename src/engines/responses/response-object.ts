import { isSilent, ReasoningRun, reasoningIn, SignedParts } from "../reasoning/answered-reasoning.js";
import { type CarriedReasoning, sealed } from "../reasoning/carried-reasoning.js";
import { type JsonObject, listIn, record } from "../upstream/json-values.js";

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
 * Converts a chat completion into a response; its first choice counts. `store` is false: nobody keeps it under its id but memstem. What the
 * engine gave with its reasoning, and with its calls, is sealed as encrypted content, which clients return unread.
 * Source: https://platform.openai.com/docs/api-reference/responses/object
 */
export function fromChatCompletion(answer: unknown, head: ResponseHead): JsonObject {
  const { choices, model, usage } = record(answer);
  const { message, finish_reason: finish } = record(listIn(choices)[0]);
  const { content, refusal, tool_calls: calls } = record(message);
  const thought = reasoningIn(record(message));
  const parts = new SignedParts();
  parts.take(record(message));
  const items: JsonObject[] = [];
  if (!isSilent(thought)) {
    const carried = new ReasoningRun().take(thought).carried(returnsSealedOnly(head));
    items.push(reasoningItem(head, items.length, thought.text, carried));
  }
  if (isText(refusal)) items.push(messageItem(head, items.length, refusalPart(refusal)));
  if (isText(content)) items.push(messageItem(head, items.length, textPart(content)));
  for (const call of listIn(calls)) {
    const { id, function: called } = record(call);
    const { name, arguments: given } = record(called);
    items.push(callItem(head, items.length, { id: String(id), name: String(name), given: String(given) }));
  }
  if (parts.carried !== null) items.push(reasoningItem(head, items.length, "", parts.carried));
  return responseOf(head, { model, output: items, finish, usage });
}

/** The response object, finished. */
export function responseOf(
  head: ResponseHead,
  { model, output, finish, usage }: { model: unknown; output: readonly JsonObject[]; finish: unknown; usage: unknown },
): JsonObject {
  const reason = finish === "length" ? "max_output_tokens" : finish === "content_filter" ? finish : null;
  return {
    ...openResponse(head, model),
    status: reason === null ? "completed" : "incomplete",
    incomplete_details: reason === null ? null : { reason },
    output,
    usage: usageOf(usage),
  };
}

/** The response object as the stream's first events have it. */
export function openResponse({ id, created, asked }: ResponseHead, model: unknown): JsonObject {
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

export function textPart(text: string): JsonObject {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

export function refusalPart(refusal: string): JsonObject {
  return { type: "refusal", refusal };
}

export function messageItem({ id }: ResponseHead, at: number, ...content: readonly JsonObject[]): JsonObject {
  return { id: `msg_${id}_${at}`, type: "message", status: "completed", role: "assistant", content };
}

/** @param carried what is sealed with it; null: that is not known yet */
export function reasoningItem(
  { id }: ResponseHead,
  at: number,
  text: string,
  carried: CarriedReasoning | null,
): JsonObject {
  const isSilentItem = text === "" && carried !== null;
  return {
    id: `rs_${id}_${at}`,
    type: "reasoning",
    summary: [],
    content: isSilentItem ? [] : [{ type: "reasoning_text", text }],
    ...(carried === null ? {} : { encrypted_content: sealed(carried) }),
  };
}

/** Whether a client that returns a reasoning item may leave out its text, as it does for OpenAI's. */
export function returnsSealedOnly({ asked }: ResponseHead): boolean {
  return asked["store"] === false || listIn(asked["include"]).includes("reasoning.encrypted_content");
}

/** A function call with its arguments as JSON. */
export interface CalledFunction {
  readonly id: string;
  readonly name: string;
  readonly given: string;
}

export function callItem(head: ResponseHead, at: number, { id, name, given }: CalledFunction): JsonObject {
  const status = "completed";
  return { id: `fc_${head.id}_${at}`, type: "function_call", status, call_id: id, name, arguments: given };
}

/** OpenAI's counts of a response; null where the engine reports none. */
function usageOf(usage: unknown): JsonObject | null {
  if (typeof usage !== "object" || usage === null) return null;
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } =
    record(usage);
  return {
    input_tokens: prompt_tokens,
    ...(prompt_tokens_details == null ? {} : { input_tokens_details: prompt_tokens_details }),
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0, ...record(completion_tokens_details) },
    total_tokens,
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
