import { z } from "zod";
import type { UserId } from "../../core/index.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import type { ChatRequest } from "../../service/chat/chat.js";
import { withoutAbsentMemories } from "../../service/compose/compose-request.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/read-options.js";
import { composeBody, message, readCompose } from "./contracts.js";
import { depthWanted, depthWish } from "./depth-contract.js";

/*
 * `POST /v1/chat/completions` over the wire: OpenAI's body, of which only `messages`, `user` and `memstem` are looked at.
 */

/** Where chats come. */
export const CHAT_PATH = "/v1/chat/completions";

const HEADERS = { user: "x-memstem-user", conversation: "x-memstem-conversation" } as const;

/** What a chat completion can say to memstem: the fields of `/compose`, less those that the chat's own body has. */
export const chatSettings = composeBody
  .omit({ messages: true, prompt: true, system: true })
  .extend({
    user_id: field.userId.nullish().meta({
      description: "Whose memories. Or name the user in the header `X-Memstem-User`; without either `user` is taken.",
    }),
    conversation_id: field.conversationId.nullish().meta({
      description: "Names the conversation. Or use the header `X-Memstem-Conversation`. Absent: every call by itself.",
    }),
    adaptive_depth: depthWanted.nullish(),
    write_back: z
      .boolean()
      .nullish()
      .meta({ description: "Whether the question and its answer are kept as a memory. Default: MEMSTEM_WRITE_BACK." }),
  })
  .meta({ id: "ChatSettings" });

/** The body as the OpenAPI document has it. */
export const chatBody = z
  .looseObject({
    messages: z.array(message),
    user: z.string().nullish(),
    memstem: chatSettings.nullish(),
  })
  .meta({
    id: "ChatRequest",
    description: "OpenAI's request, as its clients send it; every other field goes upstream.",
  });
export const chatResult = z.looseObject({}).meta({ id: "ChatAnswer", description: "The engine's answer, untouched." });
export const chatEvents = z.string().meta({ description: "The engine's events, untouched." });
export const modelsResult = z.looseObject({}).meta({ id: "Models", description: "The engine's answer, untouched." });
export const chatHeaders = z.object({
  [HEADERS.user]: z.string().optional(),
  [HEADERS.conversation]: z.string().optional(),
});

/** Everything but `memstem` goes upstream, whatever it is. */
const chatFields = z.looseObject({ memstem: z.preprocess(withoutAbsentMemories, chatSettings.nullish()).optional() });
const headerText = z.string().regex(/^[\x20-\x7e]*$/, "must be printable ASCII; other names go into the body");
/** Made once: a schema is compiled when it is first used. */
const namedIn = {
  user: { name: HEADERS.user, schema: z.object({ [HEADERS.user]: headerText.pipe(field.userId) }) },
  conversation: {
    name: HEADERS.conversation,
    schema: z.object({ [HEADERS.conversation]: headerText.pipe(field.conversationId) }),
  },
};
const userOnly = z.object({ user: field.userId });

/** A chat completion's body and headers. Throws {@link InvalidRequestError} for what is wrong with what it says to memstem. */
export function readChat(given: unknown, headers: Pick<Headers, "get">): Omit<ChatRequest, "headers" | "query"> {
  const { memstem, ...body } = readOptions(chatFields, given);
  const { user_id, write_back, adaptive_depth, ...settings } = memstem ?? {};
  const userId = agreed(headerIn(headers, namedIn.user), "memstem.user_id", user_id) ?? readUser(body);
  const conversation_id = agreed(
    headerIn(headers, namedIn.conversation),
    "memstem.conversation_id",
    settings.conversation_id,
  );
  // What cannot be composed (a prefilled answer at the end, no messages at all) is the engine's to judge.
  const messages = field.messages.safeParse(body.messages);
  return {
    userId,
    agentId: settings.agent_id ?? null,
    engine: settings.engine ?? null,
    compose: messages.success
      ? readCompose({ ...settings, user_id: userId, conversation_id, messages: messages.data })
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

/** What a header and the body say: an identity is given, never guessed, so the two may not differ. */
function agreed<T>(header: NamedValue<T> | null, field: string, given: T | null | undefined): T | null {
  if (header === null || given == null) return header?.value ?? given ?? null;
  if (header.value === given) return given;
  throw new InvalidRequestError([{ field, message: `differs from the header ${header.name}` }]);
}

/** `user` as OpenAI has it, where nothing else names the user. */
function readUser({ user }: { readonly user?: unknown }): UserId {
  if (user !== undefined && user !== null) return readOptions(userOnly, { user }).user;
  const message = `name the user: in the header ${HEADERS.user}, in the body's memstem.user_id, or in the body's user`;
  throw new InvalidRequestError([{ field: "memstem.user_id", message }]);
}
