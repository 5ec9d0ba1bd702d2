/*
 * responses: the proxy for OpenAI's Responses API.
 * Enters: a request with items. Leaves: the format by which the chat proxy composes it as messages, sends it as items and reads its answer.
 * Planning, refusals, feedback and writing back are the chat proxy's own.
 */

import type { ChatMessage } from "../../core/index.js";
import { inputOf, messagesOf } from "../../engines/responses/responses-items.js";
import type { ChatFormat, ProxiedBody } from "../chat/chat-format.js";
import { ResponsesAnswer } from "./responses-answer.js";

/** OpenAI's Responses API. */
export const RESPONSES: ChatFormat = {
  path: "responses",
  isChat: false,
  bodyOf: (own, messages) => (messages === null ? own : { ...own, input: inputOf(messages, own["input"]) }),
  answerReader: () => new ResponsesAnswer(),
};

/** The messages of a request, its instructions first; null where its input is neither a text nor a list of items. */
export function messagesOfResponses({ input, instructions }: ProxiedBody): readonly ChatMessage[] | null {
  return messagesOf(input, instructions);
}
