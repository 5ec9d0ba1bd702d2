import { z } from "zod";
import type { UserId } from "../../core/index.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import type { ChatRequest } from "../../service/chat/chat.js";
import { withoutAbsentMemories } from "../../service/compose/compose-request.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/read-options.js";
import { composeBody, message, readCompose } from "./compose-contract.js";
import { depthWanted, depthWish } from "./depth-contract.js";

/*
 * `POST /v1/chat/completions`: OpenAI's body. Only `messages`, `user` and `memstem` are read; the rest goes upstream unmodified.
 */

/** OpenAI's path of chat completions. */
export const CHAT_PATH = "/v1/chat/completions";

const HEADERS = {
  user: "x-memstem-user",
  conversation: "x-memstem-conversation",
  history: "x-memstem-history",
} as const;

/** The `memstem` field of a chat: the fields of `/compose` that the chat's own body does not have. */
export const chatSettings = composeBody
  .omit({ messages: true, prompt: true, system: true })
  .extend({
    user_id: field.userId.nullish().meta({
      description: "Whose memories. Alternatively the header `X-Memstem-User`. Default: the body's `user`.",
    }),
    conversation_id: field.conversationId.nullish().meta({
      description:
        "Names the conversation. Alternatively the header `X-Memstem-Conversation`. Absent: a single prompt.",
    }),
    adaptive_depth: depthWanted.nullish(),
    write_back: z
      .boolean()
      .nullish()
      .meta({ description: "Whether question and answer are stored as a memory. Default: `MEMSTEM_WRITE_BACK`." }),
  })
  .meta({ id: "ChatSettings", description: "For memstem; not sent to the engine." });

/** The body, for the OpenAPI document. */
export const chatBody = z
  .looseObject({
    messages: z.array(message),
    user: z.string().nullish().meta({ description: "OpenAI's end-user id. Names the user if nothing else does." }),
    memstem: chatSettings.nullish(),
  })
  .meta({
    id: "ChatRequest",
    description: "OpenAI's request. Every field but `memstem` goes upstream.",
  });
export const chatResult = z.looseObject({}).meta({ id: "ChatAnswer", description: "The engine's answer, unmodified." });
export const chatEvents = z.string().meta({ description: "The engine's server-sent events, unmodified." });
export const modelsResult = z.looseObject({}).meta({ id: "Models", description: "The engine's answer, unmodified." });
export const chatHeaders = z.object({
  [HEADERS.user]: z.string().optional().meta({ description: "Whose memories, in printable ASCII." }),
  [HEADERS.conversation]: z.string().optional().meta({ description: "Names the conversation, in printable ASCII." }),
  [HEADERS.history]: field.history.optional().meta({ description: "`history`, as in the body's `memstem`." }),
});

/** Everything but `memstem` goes upstream unread. */
const chatFields = z.looseObject({ memstem: z.preprocess(withoutAbsentMemories, chatSettings.nullish()).optional() });
const headerText = z.string().regex(/^[\x20-\x7e]*$/, "must be printable ASCII; other names go into the body");
/** Module-level, because a schema is compiled at its first use. */
const namedIn = {
  user: { name: HEADERS.user, schema: z.object({ [HEADERS.user]: headerText.pipe(field.userId) }) },
  conversation: {
    name: HEADERS.conversation,
    schema: z.object({ [HEADERS.conversation]: headerText.pipe(field.conversationId) }),
  },
  history: { name: HEADERS.history, schema: z.object({ [HEADERS.history]: field.history }) },
};

/** Where the body of a client's API has what memstem reads. */
export interface BodyForm {
  /** The field that names the user if nothing else does. */
  readonly userField: string;
  readonly userIn: (body: Readonly<Record<string, unknown>>) => unknown;
  /** The messages as chat messages; anything else where they cannot be composed. */
  readonly messagesIn: (body: Readonly<Record<string, unknown>>) => unknown;
}

const OPENAI_FORM: BodyForm = {
  userField: "user",
  userIn: ({ user }) => user,
  messagesIn: ({ messages }) => messages,
};

/** A chat as its body and its headers ask for it. */
export type AskedChat = Omit<ChatRequest, "headers" | "query">;

/** Reads a chat's body and headers. Throws {@link InvalidRequestError} if `memstem`, `user` or memstem's headers are invalid. */
export function readChat(given: unknown, headers: Pick<Headers, "get">, form: BodyForm = OPENAI_FORM): AskedChat {
  const { memstem, ...body } = readOptions(chatFields, given);
  const { user_id, write_back, adaptive_depth, ...settings } = memstem ?? {};
  const userId = agreed(headerIn(headers, namedIn.user), "memstem.user_id", user_id) ?? readUser(body, form);
  const conversation_id = agreed(
    headerIn(headers, namedIn.conversation),
    "memstem.conversation_id",
    settings.conversation_id,
  );
  const history = agreed(headerIn(headers, namedIn.history), "memstem.history", settings.history);
  // Messages that cannot be composed (none, or a prefilled answer last) go upstream; the engine judges them.
  const messages = field.messages.safeParse(form.messagesIn(body));
  return {
    userId,
    agentId: settings.agent_id ?? null,
    engine: settings.engine ?? null,
    compose: messages.success
      ? readCompose({ ...settings, user_id: userId, conversation_id, history, messages: messages.data })
      : null,
    body,
    writeBack: write_back ?? null,
    adaptiveDepth: depthWish(adaptive_depth),
  };
}

interface NamedValue<T> {
  readonly name: string;
  readonly value: T;
}

function headerIn<T>(
  headers: Pick<Headers, "get">,
  { name, schema }: { readonly name: string; readonly schema: z.ZodType<Record<string, T>> },
): NamedValue<T> | null {
  const given = headers.get(name);
  if (given === null) return null;
  return { name, value: readOptions(schema, { [name]: given })[name] as T };
}

/** The value of a header or of the body. They may not differ: an identity is never guessed. */
function agreed<T>(header: NamedValue<T> | null, field: string, given: T | null | undefined): T | null {
  if (header === null || given == null) return header?.value ?? given ?? null;
  if (header.value === given) return given;
  throw new InvalidRequestError([{ field, message: `differs from the header ${header.name}` }]);
}

/** The API's own name of the user, if nothing else names one. */
function readUser(body: Readonly<Record<string, unknown>>, { userField, userIn }: BodyForm): UserId {
  const user = userIn(body);
  if (user !== undefined && user !== null)
    return readOptions(z.object({ [userField]: field.userId }), { [userField]: user })[userField] as UserId;
  const message = `name the user: in the header ${HEADERS.user}, in the body's memstem.user_id, or in the body's ${userField}`;
  throw new InvalidRequestError([{ field: "memstem.user_id", message }]);
}
