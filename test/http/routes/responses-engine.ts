import type { ServerResponse } from "node:http";
import { history } from "../../../src/apis/responses/history.js";
import { encodeO200k } from "../../../src/cli/o200k.js";
import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { messageText } from "../../../src/core/index.js";
import { chatTokenizer } from "../../../src/eval/base/chat-tokens.js";
import { type Behaviour, openEvents, sendJson } from "./openai-engine.js";

/** A Responses request as it reached the engine. */
export interface ReceivedResponses {
  readonly input: string | readonly Readonly<Record<string, unknown>>[];
  readonly stream?: boolean;
  readonly store?: boolean;
  readonly previous_response_id?: string;
  readonly conversation?: string | { readonly id: string };
  readonly [field: string]: unknown;
}

/** The roles and texts of an input. */
export function told(input: unknown): string[][] {
  return (history({ input }) ?? []).map((message) => [message.role, messageText(message)]);
}

/** OpenAI's usage of a response. */
export function usageOf(input_tokens: number, cached_tokens: number) {
  return {
    input_tokens,
    input_tokens_details: { cached_tokens },
    output_tokens: 2,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input_tokens + 2,
  };
}

/** A message of the assistant's, as the API gives it. */
export function outputMessage(id: string, text: string) {
  const content = [{ type: "output_text", annotations: [], logprobs: [], text }];
  return { id, type: "message", status: "completed", content, role: "assistant" };
}

/** OpenAI's response object, with a field of the engine's own. */
export function responseObject(id: string, output: readonly object[], usage: object, fields: object = {}) {
  return {
    id,
    object: "response",
    created_at: 1_741_476_542,
    status: "completed",
    error: null,
    incomplete_details: null,
    instructions: null,
    model: "stub-1",
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    store: true,
    usage,
    metadata: {},
    kv_transfer_params: { engine: "its own" },
    ...fields,
  };
}

/** The events of a response of one message, by OpenAI's reference, with one that nobody knows. */
export function responseEvents(response: { readonly id: string }, item: ReturnType<typeof outputMessage>): object[] {
  const [part] = item.content;
  const at = { item_id: item.id, output_index: 0, content_index: 0 };
  const begun = { ...response, status: "in_progress", output: [], usage: null };
  const words = (part?.text ?? "").match(/\s*\S+/g) ?? [];
  const events = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress", content: [] } },
    { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
    ...words.map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [], obfuscation: "xY" })),
    { type: "response.output_text.done", ...at, text: part?.text, logprobs: [] },
    { type: "response.content_part.done", ...at, part },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.of_a_later_version", more: { é: "…" } },
    { type: "response.completed", response },
  ];
  return events.map((event, sequence_number) => ({ ...event, sequence_number }));
}

/** Events as they are sent: each with its name, and no `[DONE]`. */
export function eventsText(events: readonly object[]): string {
  return events
    .map((event) => `event: ${(event as { readonly type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");
}

/** How a stub with a simulated cache answers `/responses`; the rest it lacks. Keeps conversations, and responses where `store` is not false. */
export function answersResponses(says: (turn: number) => string = () => "Indeed."): Behaviour {
  const cache = new SimulatedCache("radix");
  const tokens = chatTokenizer(encodeO200k);
  /** What stands before the next turn, by the response's or the conversation's id. */
  const kept = new Map<string, readonly unknown[]>();
  let turn = 0;
  return ({ url, raw }, response: ServerResponse) => {
    if (url !== "/v1/responses") return sendJson(response, 404, { detail: "Not Found" });
    const asked = JSON.parse(raw) as ReceivedResponses;
    const { previous_response_id: previous, conversation: given, input } = asked;
    const conversation = typeof given === "object" ? given.id : given;
    const before = previous == null ? (kept.get(conversation ?? "") ?? []) : kept.get(previous);
    if (before === undefined) return sendJson(response, 400, notKept(previous ?? ""));
    const added = typeof input === "string" ? [{ role: "user", content: input }] : input;
    // Some tests send no input that an engine takes.
    const items = [...before, ...(Array.isArray(added) ? added : [])];
    const prompt = tokens(history({ input: items, instructions: asked["instructions"] }) ?? []);
    const cachedTokens = cache.serve(prompt);
    const item = outputMessage(`msg_${turn}`, says(turn));
    const id = `resp_${turn++}`;
    const store = asked.store !== false;
    if (store) kept.set(id, [...items, item]);
    if (conversation !== undefined) kept.set(conversation, [...items, item]);
    const object = responseObject(id, [item], usageOf(prompt.length, cachedTokens), { store });
    if (asked.stream !== true) return sendJson(response, 200, object);
    openEvents(response);
    response.end(eventsText(responseEvents(object, item)));
  };
}

function notKept(id: string) {
  const message = `Previous response with id '${id}' not found.`;
  const code = "previous_response_not_found";
  return { error: { message, type: "invalid_request_error", param: "previous_response_id", code } };
}
