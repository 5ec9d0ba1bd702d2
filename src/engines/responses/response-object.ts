import { readOpenAiUsage } from "../adapters/reported-usage.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import { reasoningIn } from "../upstream/streamed-turn.js";
import { type CalledFunction, callsIn } from "../upstream/tool-calls.js";
import { type TurnEnd, turnEndOf } from "../upstream/turn-end.js";

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
 * Converts a chat completion into a response; its first choice counts. `store` is false: nobody keeps it under its id but memstem.
 * Source: https://platform.openai.com/docs/api-reference/responses/object
 */
export function fromChatCompletion(answer: unknown, head: ResponseHead): JsonObject {
  const { choices, model, usage } = record(answer);
  const { message, finish_reason: finish } = record(listIn(choices)[0]);
  const said = record(message);
  const parts = [refusalPart(text(said["refusal"])), textPart(text(said["content"]))];
  const items: ((at: number, status: ItemStatus) => JsonObject)[] = [];
  const thought = reasoningIn(said);
  if (thought !== "") items.push((at) => reasoningItem(head, at, thought));
  for (const part of parts.filter(({ refusal, text: whole }) => (refusal ?? whole) !== ""))
    items.push((at, status) => messageItem(head, { at, status }, part));
  for (const call of callsIn(said, head.id)) items.push((at, status) => callItem(head, { at, status }, call));
  const last = items.length - 1;
  const output = items.map((item, at) => item(at, at === last ? statusOfLast(finish) : "completed"));
  return responseOf(head, { model, output, finish, usage });
}

/** The response object, finished. */
export function responseOf(
  head: ResponseHead,
  { model, output, finish, usage }: { model: unknown; output: readonly JsonObject[]; finish: unknown; usage: unknown },
): JsonObject {
  const reason = INCOMPLETE[endOf(finish)];
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

function endOf(finish: unknown): TurnEnd {
  return turnEndOf(finish, { hasCalls: false });
}

/** Whether an item is all that the model would have said. */
export type ItemStatus = "completed" | "incomplete";

/** The status of a turn's last item, which is the one that was cut where any was. */
export function statusOfLast(finish: unknown): ItemStatus {
  return endOf(finish) === "length" ? "incomplete" : "completed";
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

/** Where an item stands in its response, and whether it is whole. */
interface ItemState {
  readonly at: number;
  readonly status: ItemStatus;
}

export function messageItem(
  { id }: ResponseHead,
  { at, status }: ItemState,
  ...content: readonly JsonObject[]
): JsonObject {
  return { id: `msg_${id}_${at}`, type: "message", status, role: "assistant", content };
}

export function reasoningItem({ id }: ResponseHead, at: number, text: string): JsonObject {
  return { id: `rs_${id}_${at}`, type: "reasoning", summary: [], content: [{ type: "reasoning_text", text }] };
}

/** Arguments that are JSON were not cut, though the turn may have been. */
export function callItem(
  head: ResponseHead,
  { at, status: ofLast }: ItemState,
  { id, name, given }: CalledFunction,
): JsonObject {
  const status = isJson(given) ? "completed" : ofLast;
  return { id: `fc_${head.id}_${at}`, type: "function_call", status, call_id: id, name, arguments: given };
}

/** OpenAI's counts of a response; null where the engine reports none. */
function usageOf(usage: unknown): JsonObject | null {
  if (typeof usage !== "object" || usage === null) return null;
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } =
    record(usage);
  const { writtenTokens } = readOpenAiUsage({ usage });
  const details = {
    ...record(prompt_tokens_details),
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

function isJson(given: string): boolean {
  try {
    JSON.parse(given);
    return true;
  } catch {
    return false;
  }
}
