import { randomUUID } from "node:crypto";
import { continuedBy, isInstructions } from "../../apis/responses/history.js";
import type { ConversationId } from "../../core/index.js";
import { type ChatComposer, type ChatRequest, NOBODY } from "./chat-request.js";

/** Finds the conversation of a request that names `previous_response_id` or `conversation` in place of a history: only its new end is sent. */
export async function withContinued(memprefix: ChatComposer, request: ChatRequest): Promise<ChatRequest> {
  const { api, body, compose, userId, agentId } = request;
  if (api.name !== "responses" || compose === null || userId === NOBODY) return request;
  const continued = continuedBy(body);
  if (continued === null) {
    const conversationId = compose.conversationId ?? (mayBeContinued(request) ? newName() : null);
    return { ...request, conversationId, compose: { ...compose, conversationId } };
  }
  // If the store fails, composing reports it.
  const found = await memprefix.responses.find(userId, agentId, continued).catch(() => null);
  const conversationId = compose.conversationId ?? found?.conversationId ?? newName();
  const added = compose.messages.filter((message) => !isInstructions(message));
  const instructions = compose.messages.filter(isInstructions);
  const before = found?.history.filter((message) => !isInstructions(message)) ?? [];
  const kept = { history: "exact", retention: "keep", sentNow: added.length } as const;
  const messages = [...instructions, ...before, ...added];
  return { ...request, conversationId, added, compose: { ...compose, ...kept, conversationId, messages } };
}

/** Whether the engine stores the response, so that a later request may continue it by its id. */
export function isStoredBy({ api, body, compose }: ChatRequest): boolean {
  return api.name === "responses" && compose !== null && body["store"] !== false;
}

/** Whether a response may be continued by its id: it is stored, and the request brings no answers of its own, as a client's history does. */
function mayBeContinued(request: ChatRequest): boolean {
  const said = request.compose?.messages ?? [];
  return isStoredBy(request) && said.every(({ role }) => role !== "assistant" && role !== "tool");
}

function newName(): ConversationId {
  return `response-${randomUUID()}` as ConversationId;
}
