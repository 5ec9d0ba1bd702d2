import { z } from "zod";
import type { Api } from "../../apis/api/api.js";
import type { AgentId, ConversationId, PlanDepth, UserId } from "../../core/index.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import { type ChatRequest, NOBODY } from "../../service/chat/chat.js";
import { composeRequest, withoutAbsentMemories } from "../../service/compose/compose-request.js";
import { composeOptions } from "../../service/fields/compose-options.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/fields.js";
import type { GivenIdentity, GivenName } from "../requests/request.js";
import { composeBody, message } from "./compose-contract.js";
import { readerOf, snakeCased } from "./wire-form.js";

/*
 * Bodies of the proxy's APIs. memprefix reads instructions, messages, tools, the user's name and `memprefix`; the rest goes upstream byte for
 * byte.
 */

/** Options that only a chat has, or that need their own description. */
const chatOptions = z.strictObject({
  userId: field.userId
    .nullish()
    .describe("Whose memories. Alternatively the header `X-Memprefix-User`. Default: the body's `user`."),
  agentId: field.agentId
    .nullish()
    .describe("An agent with its own memories of this user. Alternatively the header `X-Memprefix-Agent`."),
  conversationId: field.conversationId
    .nullish()
    .describe("Names the conversation. Alternatively the header `X-Memprefix-Conversation`. Absent: a single prompt."),
  adaptiveDepth: z
    .boolean()
    .nullish()
    .describe(
      "Start with few of the retrieved memories; add more while the entropy of the answer's first token is high. Default: `MEMPREFIX_ADAPTIVE_DEPTH`.",
    ),
  bypass: z
    .boolean()
    .nullish()
    .describe(
      "Whether the request goes to the engine unmodified: no memories, no turn of the conversation, nothing learned or stored. Alternatively the header `X-Memprefix-Bypass`. Default: no.",
    ),
  writeBack: z
    .boolean()
    .nullish()
    .describe("Whether question and answer are stored as a memory. Default: `MEMPREFIX_WRITE_BACK`."),
});

/** The `memprefix` field of a chat: the fields of `/compose` that the chat's body lacks. */
const chatSettings = composeBody
  .omit({ messages: true, format: true, system: true, tools: true, model: true, dry_run: true })
  .extend(snakeCased(chatOptions).shape)
  .meta({ id: "ChatSettings", description: "For memprefix; not sent to the engine." });
const settingsIn = readerOf(composeOptions.partial().extend(chatOptions.shape));

/*
 * The bodies, for the OpenAPI document.
 */

export const chatBody = z
  .looseObject({
    messages: z.array(message),
    user: z.string().nullish().describe("OpenAI's end-user id. Names the user if nothing else does."),
    memprefix: chatSettings.nullish(),
  })
  .meta({
    id: "ChatRequest",
    description: "OpenAI's request. Every field but `memprefix` goes upstream.",
  });

const blocks = z.array(z.looseObject({ type: z.string() }));
const blockContent = z.union([z.string(), blocks]);

export const messagesBody = z
  .looseObject({
    system: blockContent.nullish(),
    messages: z.array(z.looseObject({ role: z.string(), content: blockContent })),
    metadata: z
      .looseObject({ user_id: z.string().nullish() })
      .nullish()
      .describe("Anthropic's. `user_id` names the user if nothing else does."),
    memprefix: chatSettings.nullish(),
  })
  .meta({ id: "MessagesRequest", description: "Anthropic's request. Every field but `memprefix` goes upstream." });

export const responsesBody = z
  .looseObject({
    input: z
      .union([z.string(), z.array(z.unknown())])
      .describe("A text, or items. Memories go into the items of the user, in front of their text."),
    instructions: z.string().nullish(),
    previous_response_id: z.string().nullish().describe("`input` has only what is new since."),
    user: z.string().nullish().describe("OpenAI's end-user id. Names the user if nothing else does."),
    memprefix: chatSettings.nullish(),
  })
  .meta({ id: "ResponsesRequest", description: "OpenAI's request. Every field but `memprefix` goes upstream." });

/** An answer of the engine's, for the OpenAPI document. */
export const engineAnswer = (id: string) =>
  z.looseObject({}).meta({ id, description: "The engine's answer, unmodified." });
export const engineEvents = z.string().describe("The engine's server-sent events, unmodified.");

export const MEMORIES_AT = ["memprefix", "memories"] as const;

/** Everything but `memprefix` goes upstream unread. */
const chatFields = z.looseObject({ memprefix: z.preprocess(withoutAbsentMemories, chatSettings.nullish()).optional() });
/** A name in a header. Bytes beyond ASCII are rejected: servers decode them differently. */
export const headerText = z.string().regex(/^[\x20-\x7e]*$/, "must be printable ASCII; other names go into the body");

const inHeader = <T>(name: z.ZodType<T, string>, description: string) =>
  headerText.pipe(name).optional().describe(description);

/** For clients that can set headers, and no fields of the body. */
export const chatHeaders = z.object({
  "x-memprefix-user": inHeader(field.userId, "Whose memories, in printable ASCII."),
  "x-memprefix-agent": inHeader(field.agentId, "Which agent of the user's, in printable ASCII."),
  "x-memprefix-conversation": inHeader(field.conversationId, "Names the conversation, in printable ASCII."),
  "x-memprefix-history": field.history.optional().describe("`history`, as in the body's `memprefix`."),
  "x-memprefix-bypass": z
    .enum(["true", "false"], "must be true or false")
    .optional()
    .describe("`bypass`, as in the body's `memprefix`."),
});
const HEADER_NAMES = Object.keys(chatHeaders.shape);

interface Names {
  readonly user: UserId;
  readonly agent: AgentId;
  readonly conversation: ConversationId;
}
const NAMES: { readonly [N in keyof Names]: z.ZodType<Names[N], string> } = {
  user: field.userId,
  agent: field.agentId,
  conversation: field.conversationId,
};

/** A request, read from its body and headers. */
export type AskedChat = Omit<ChatRequest, "headers" | "query" | "tools" | "written">;

/** Coding agents send JSON about themselves in the field that may name the user. */
const OF_AGENT = /^\s*\{/;

/**
 * Reads the body and headers of a request to one of the APIs. Throws {@link InvalidRequestError} if `memprefix`, `user` or memprefix's headers
 * are invalid, or if two places name different users, agents or conversations. A request that names no user is not composed.
 *
 * @param identity names from the base URL and from the operator's configured places
 * @param defaultUser the user of a request that names none
 */
export function readChat(
  api: Api,
  given: unknown,
  headers: Pick<Headers, "get">,
  identity: GivenIdentity,
  defaultUser: UserId | null = null,
): AskedChat {
  const { memprefix, ...body } = readOptions(chatFields, given);
  const { writeBack, adaptiveDepth, bypass, ...settings } = settingsIn(memprefix ?? {});
  const { path } = identity;
  const said = readOptions(
    chatHeaders,
    Object.fromEntries(HEADER_NAMES.map((name) => [name, headers.get(name) ?? undefined])),
  );
  const named = <N extends keyof Names>(name: N, inBody: Names[N] | null | undefined): Names[N] | null =>
    agreed([
      placed("the path", path[name] as Names[N] | null),
      sourceValue(identity[name], NAMES[name]),
      placed(`the header x-memprefix-${name}`, said[`x-memprefix-${name}`] as Names[N] | undefined),
      placed(`memprefix.${name}_id`, inBody),
    ]);
  const namedUser = named("user", settings.userId);
  const agentId = named("agent", settings.agentId);
  const conversationId = named("conversation", settings.conversationId);
  const history = agreed([
    placed("the header x-memprefix-history", said["x-memprefix-history"]),
    placed("memprefix.history", settings.history),
  ]);
  const isBypassed = agreed([
    placed("the path", path.isPlain ? "true" : null),
    placed("the header x-memprefix-bypass", said["x-memprefix-bypass"]),
    placed("memprefix.bypass", bypass == null ? null : `${bypass}`),
  ]);
  const unwanted = isBypassed === "true" ? "bypass" : identity.isSideCall ? "side_call" : null;
  const isUnnamed = unwanted === null && namedUser === null && api.user(body) == null;
  const userId = readUser(body, api, isUnnamed ? defaultUser : namedUser, {
    isRead: unwanted === null,
    isOfPath: path.user !== null,
  });
  const notWanted = unwanted ?? (userId === NOBODY ? "no_user" : null);
  // The engine judges messages that cannot be composed (none, or a prefilled answer last): they go upstream.
  const messages = notWanted === null ? field.messages.safeParse(api.history(body)) : null;
  const asked = { ...settings, userId, agentId, conversationId, history };
  return {
    api,
    userId,
    agentId,
    conversationId,
    engine: settings.engine ?? null,
    compose: messages?.success
      ? { ...composeRequest({ ...asked, messages: messages.data }), isRecognised: true }
      : null,
    notWanted,
    isWrite: path.isPlain,
    body,
    writeBack: notWanted === null ? (writeBack ?? null) : false,
    adaptiveDepth: adaptiveDepth ?? null,
  };
}

/** The value of `x-memprefix-depth`: a dictionary of structured fields (RFC 9651), entropies in nats. */
export function depthHeader({ given, retrieved, outcome, probes }: PlanDepth): string {
  const entropies = probes.map(({ entropy }) => (entropy === null ? "unclear" : entropy.toFixed(3)));
  return `given=${given}, retrieved=${retrieved}, outcome=${outcome}, entropies=(${entropies.join(" ")})`;
}

/** A value and where it was found; null: nowhere. */
type Place<T> = { readonly place: string; readonly value: T } | null;

function placed<T>(place: string, value: T | null | undefined): Place<T> {
  return value == null ? null : { place, value };
}

/** A name from a place that the operator configured. */
function sourceValue<T>(given: GivenName | null, schema: z.ZodType<T, string>): Place<T> {
  if (given === null) return null;
  const { field: name, from, value } = given;
  const text = from === "header" ? headerText.pipe(schema) : schema;
  const read = readOptions(z.object({ [name]: text }), { [name]: value });
  return { place: `the ${from} ${name}`.replace("the body", "the field"), value: read[name] as T };
}

/** The value of all places that have one. Different values are an error: an identity is never guessed. */
function agreed<T>(places: readonly Place<T>[]): T | null {
  const given = places.filter((place) => place !== null);
  const [first] = given;
  const other = given.find(({ value }) => value !== first?.value);
  if (first === undefined || other === undefined) return first?.value ?? null;
  throw new InvalidRequestError([
    { field: other.place.replace(/^the (?:header|field) /, ""), message: `differs from ${first.place}` },
  ]);
}

/**
 * The user: named elsewhere, else by the API's own field, else {@link NOBODY}. A base URL that names the user overrides that field, because its client cannot mean
 * another user.
 */
function readUser(
  body: Readonly<Record<string, unknown>>,
  { userField, user: userIn }: Api,
  named: UserId | null,
  { isRead, isOfPath }: { readonly isRead: boolean; readonly isOfPath: boolean },
): UserId {
  const user = userIn(body);
  if (named !== null) {
    const isOther = isOfPath && user != null && user !== "" && user !== named && !OF_AGENT.test(String(user));
    if (isOther) throw new InvalidRequestError([{ field: userField, message: "differs from the path" }]);
    return named;
  }
  if (user === undefined || user === null) return NOBODY;
  // The field goes to the engine, valid or not.
  if (!isRead) return field.userId.safeParse(user).data ?? NOBODY;
  return readOptions(z.object({ [userField]: field.userId }), { [userField]: user })[userField] as UserId;
}
