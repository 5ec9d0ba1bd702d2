import { z } from "zod";
import type { UserId } from "../../core/index.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import { type ChatRequest, NOBODY } from "../../service/chat/chat.js";
import { withoutAbsentMemories } from "../../service/compose/compose-request.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/read-options.js";
import { type GivenIdentity, type GivenName, NOTHING_GIVEN } from "../requests/identity.js";
import { composeBody, message, readCompose } from "./compose-contract.js";
import { depthWanted, depthWish } from "./depth-contract.js";

/*
 * `POST /v1/chat/completions`: OpenAI's body. Only `messages`, `user` and `memstem` are read; the rest goes upstream unmodified.
 */

/** OpenAI's path of chat completions. */
export const CHAT_PATH = "/v1/chat/completions";

const HEADERS = {
  user: "x-memstem-user",
  agent: "x-memstem-agent",
  conversation: "x-memstem-conversation",
  history: "x-memstem-history",
  policy: "x-memstem-policy",
  topK: "x-memstem-top-k",
  bypass: "x-memstem-bypass",
} as const;

/** The `memstem` field of a chat: the fields of `/compose` that the chat's own body does not have. */
export const chatSettings = composeBody
  .omit({ messages: true, format: true, prompt: true, system: true, dry_run: true, record_usage: true })
  .extend({
    user_id: field.userId.nullish().meta({
      description: "Whose memories. Alternatively the header `X-Memstem-User`. Default: the body's `user`.",
    }),
    agent_id: field.agentId.nullish().meta({
      description: "An agent with its own memories of this user. Alternatively the header `X-Memstem-Agent`.",
    }),
    conversation_id: field.conversationId.nullish().meta({
      description:
        "Names the conversation. Alternatively the header `X-Memstem-Conversation`. Absent: a single prompt.",
    }),
    adaptive_depth: depthWanted.nullish(),
    bypass: z.boolean().nullish().meta({
      description:
        "Whether the request goes to the engine unmodified: no memories, no turn of the conversation, nothing learned or stored. Alternatively the header `X-Memstem-Bypass`. Default: no.",
    }),
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
  [HEADERS.agent]: z.string().optional().meta({ description: "Which agent of the user's, in printable ASCII." }),
  [HEADERS.conversation]: z.string().optional().meta({ description: "Names the conversation, in printable ASCII." }),
  [HEADERS.history]: field.history.optional().meta({ description: "`history`, as in the body's `memstem`." }),
  [HEADERS.policy]: field.policy.optional().meta({ description: "`policy`, as in the body's `memstem`." }),
  [HEADERS.topK]: z
    .string()
    .regex(/^\d{1,4}$/)
    .optional()
    .meta({ description: "`top_k`, as in the body's `memstem`." }),
  [HEADERS.bypass]: z.enum(["true", "false"]).optional().meta({ description: "`bypass`, as in the body's `memstem`." }),
});

/** Everything but `memstem` goes upstream unread. */
const chatFields = z.looseObject({ memstem: z.preprocess(withoutAbsentMemories, chatSettings.nullish()).optional() });
const headerText = z.string().regex(/^[\x20-\x7e]*$/, "must be printable ASCII; other names go into the body");
/** A value that a header may give, and how it is checked there. Module-level, because a schema is compiled at its first use. */
interface HeaderValue<T> {
  readonly name: string;
  readonly schema: z.ZodType<Record<string, T>>;
}

function headerValue<T>(name: string, schema: z.ZodType<T>): HeaderValue<T> {
  return { name, schema: z.object({ [name]: schema }) as z.ZodType<Record<string, T>> };
}

const namedIn = {
  user: headerValue(HEADERS.user, headerText.pipe(field.userId)),
  agent: headerValue(HEADERS.agent, headerText.pipe(field.agentId)),
  conversation: headerValue(HEADERS.conversation, headerText.pipe(field.conversationId)),
  history: headerValue(HEADERS.history, field.history),
  policy: headerValue(HEADERS.policy, field.policy),
  topK: headerValue(
    HEADERS.topK,
    z
      .string()
      .regex(/^\d{1,4}$/, "must be a whole number")
      .transform(Number)
      .pipe(field.topK),
  ),
  bypass: headerValue(
    HEADERS.bypass,
    z.enum(["true", "false"], "must be true or false").transform((said) => said === "true"),
  ),
};

/** Where the body of a client's API has what memstem reads. */
export interface BodyForm {
  /** The field that names the user if nothing else does. */
  readonly userField: string;
  readonly userIn: (body: Readonly<Record<string, unknown>>) => unknown;
  /** Whether what that field has is a name; coding agents send JSON about themselves in it. */
  readonly isName: (user: unknown) => boolean;
  /** The messages as chat messages; anything else where they cannot be composed. */
  readonly messagesIn: (body: Readonly<Record<string, unknown>>) => unknown;
}

const OPENAI_FORM: BodyForm = {
  userField: "user",
  userIn: ({ user }) => user,
  isName: () => true,
  messagesIn: ({ messages }) => messages,
};

/** A chat as its body and its headers ask for it. */
export type AskedChat = Omit<ChatRequest, "headers" | "query">;

/**
 * Reads a chat's body and headers. Throws {@link InvalidRequestError} if `memstem`, `user` or memstem's headers are invalid, or if two
 * places name different users, agents or conversations. Who wants no memories need name nobody.
 *
 * @param identity what the request says of itself in its base URL, and in places of the operator's choice
 */
export function readChat(
  given: unknown,
  headers: Pick<Headers, "get">,
  identity: GivenIdentity = NOTHING_GIVEN,
  form: BodyForm = OPENAI_FORM,
): AskedChat {
  const { memstem, ...body } = readOptions(chatFields, given);
  const { user_id, write_back, adaptive_depth, bypass, ...settings } = memstem ?? {};
  const own = <T>(of: HeaderValue<T>) => headerIn(headers, of);
  const inField = <T>(name: string, value: T | null | undefined) =>
    value == null ? null : { place: `memstem.${name}`, value };
  const named = <T>(
    of: HeaderValue<T>,
    also: GivenName | null,
    schema: z.ZodType<T>,
    field: ReturnType<typeof inField<T>>,
    inPath: T | null,
  ) => agreed([inPath === null ? null : pathValue(inPath), also && sourceValue(also, schema), own(of), field]);
  const { path } = identity;
  const namedUser = named(namedIn.user, identity.user, field.userId, inField("user_id", user_id), path.user);
  const agentId = named(
    namedIn.agent,
    identity.agent,
    field.agentId,
    inField("agent_id", settings.agent_id),
    path.agent,
  );
  const conversationId = named(
    namedIn.conversation,
    identity.conversation,
    field.conversationId,
    inField("conversation_id", settings.conversation_id),
    path.conversation,
  );
  const history = agreed([own(namedIn.history), inField("history", settings.history)]);
  const policy = agreed([own(namedIn.policy), inField("policy", settings.policy)]);
  const top_k = agreed([own(namedIn.topK), inField("top_k", settings.top_k)]);
  const isBypassed =
    agreed([path.isPlain ? pathValue(true) : null, own(namedIn.bypass), inField("bypass", bypass)]) ?? false;
  const notWanted = isBypassed ? "bypass" : identity.isSideCall ? "side_call" : null;
  const userId = readUser(body, form, namedUser, { mayBeNobody: isBypassed, isOfPath: path.user !== null });
  // Messages that cannot be composed (none, or a prefilled answer last) go upstream; the engine judges them.
  const messages = notWanted === null ? field.messages.safeParse(form.messagesIn(body)) : null;
  const asked = {
    ...settings,
    user_id: userId,
    agent_id: agentId,
    conversation_id: conversationId,
    history,
    policy,
    top_k,
  };
  return {
    userId,
    agentId,
    conversationId,
    engine: settings.engine ?? null,
    compose: messages?.success ? readCompose({ ...asked, messages: messages.data }) : null,
    notWanted,
    body,
    writeBack: notWanted === null ? (write_back ?? null) : false,
    adaptiveDepth: depthWish(adaptive_depth),
  };
}

/** A value, and where it stands. */
interface PlacedValue<T> {
  readonly place: string;
  readonly value: T;
}

function headerIn<T>(headers: Pick<Headers, "get">, { name, schema }: HeaderValue<T>): PlacedValue<T> | null {
  const given = headers.get(name);
  if (given === null) return null;
  return { place: `the header ${name}`, value: readOptions(schema, { [name]: given })[name] as T };
}

/** A name of the operator's choice of places; headers hold printable ASCII. */
function sourceValue<T>({ field, from, value }: GivenName, schema: z.ZodType<T>): PlacedValue<T> {
  const text = from === "header" ? headerText.pipe(schema as z.ZodType<T, string>) : schema;
  const read = readOptions(z.object({ [field]: text }), { [field]: value });
  return { place: from === "header" ? `the header ${field}` : `the field ${field}`, value: read[field] as T };
}

/** The value of the places that have one. They may not differ: an identity is never guessed. */
function agreed<T>(places: readonly (PlacedValue<T> | null)[]): T | null {
  const given = places.filter((place) => place !== null);
  const [first] = given;
  const other = given.find(({ value }) => value !== first?.value);
  if (first === undefined || other === undefined) return first?.value ?? null;
  throw new InvalidRequestError([
    { field: other.place.replace(/^the (?:header|field) /, ""), message: `differs from ${first.place}` },
  ]);
}

/** A name that stands in the base URL. */
function pathValue<T>(value: T): PlacedValue<T> {
  return { place: "the path", value };
}

/**
 * The user: who is named elsewhere, else whom the API's own field names. With a base URL that names the user, a client cannot mean another
 * in that field.
 */
function readUser(
  body: Readonly<Record<string, unknown>>,
  { userField, userIn, isName }: BodyForm,
  named: UserId | null,
  { mayBeNobody, isOfPath }: { readonly mayBeNobody: boolean; readonly isOfPath: boolean },
): UserId {
  const user = userIn(body);
  if (named !== null) {
    const isOther = isOfPath && user != null && user !== "" && user !== named && isName(user);
    if (isOther) throw new InvalidRequestError([{ field: userField, message: "differs from the path" }]);
    return named;
  }
  if (user !== undefined && user !== null && !(mayBeNobody && user === ""))
    return readOptions(z.object({ [userField]: field.userId }), { [userField]: user })[userField] as UserId;
  if (mayBeNobody) return NOBODY;
  const message = `name the user: in the header ${HEADERS.user}, in the body's memstem.user_id, in the body's ${userField}, or in a base URL /users/{user}/v1`;
  throw new InvalidRequestError([{ field: "memstem.user_id", message }]);
}
