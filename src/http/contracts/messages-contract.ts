import { z } from "zod";
import { type ChatRequest, chatOfMessages, MESSAGES } from "../../service/chat/chat.js";
import { UnheldThreadError } from "../problems/problem.js";
import type { GivenIdentity } from "../requests/request.js";
import { type BodyForm, chatSettings, readChat } from "./chat-contract.js";

/*
 * `POST /v1/messages`: Anthropic's body. Only `system`, `messages`, `metadata.user_id` and `memprefix` are read; the rest goes upstream
 * unmodified.
 */

/** Anthropic's path of messages. */
export const MESSAGES_PATH = "/v1/messages";
/** Anthropic's path that counts a request's tokens. */
export const COUNT_TOKENS_PATH = "/v1/messages/count_tokens";

const blocks = z.array(z.looseObject({ type: z.string() }));
const content = z.union([z.string(), blocks]);

/** The body, for the OpenAPI document. */
export const messagesBody = z
  .looseObject({
    system: content.nullish(),
    messages: z.array(z.looseObject({ role: z.string(), content })),
    metadata: z
      .looseObject({ user_id: z.string().nullish() })
      .nullish()
      .describe("Anthropic's. `user_id` names the user if nothing else does."),
    memprefix: chatSettings.nullish(),
  })
  .meta({ id: "MessagesRequest", description: "Anthropic's request. Every field but `memprefix` goes upstream." });
export const countTokensBody = z
  .looseObject({})
  .meta({ id: "CountTokensRequest", description: "Anthropic's request, sent on unmodified." });

const ANTHROPIC_FORM: BodyForm = {
  userField: "metadata.user_id",
  userIn: ({ metadata }) => (metadata as { readonly user_id?: unknown } | null | undefined)?.user_id,
  isName: (user) => typeof user !== "string" || !/^\s*\{/.test(user),
  messagesIn: chatOfMessages,
};

/** A body without memprefix's own field, which the engine does not know. */
export function withoutSettings(given: unknown): unknown {
  if (typeof given !== "object" || given === null || !("memprefix" in given)) return given;
  const { memprefix: _settings, ...body } = given;
  return body;
}

const threaded = z.looseObject({ thread: z.looseObject({ type: z.string() }) });

/**
 * Reads a request's body and headers. A thread is not begun: its later requests would have what is new alone, and a prompt is composed of
 * the whole conversation. Throws `InvalidRequestError` if `memprefix`, the user's name or memprefix's headers are invalid, and
 * {@link UnheldThreadError} for a request that goes on with a thread.
 */
export function readMessages(
  given: unknown,
  headers: Pick<Headers, "get">,
  identity?: GivenIdentity,
): Omit<ChatRequest, "headers" | "query"> {
  const read = threaded.safeParse(given);
  if (read.data?.thread.type === "continue") throw new UnheldThreadError();
  const { thread: _thread, ...alone } = read.data ?? {};
  return { ...readChat(read.success ? alone : given, headers, identity, ANTHROPIC_FORM), format: MESSAGES };
}
