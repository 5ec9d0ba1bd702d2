import { z } from "zod";
import { API_NAMES, type ApiName } from "../../apis/api/api.js";
import { APIS } from "../../apis/apis.js";
import { type ChatMessage, unstorable } from "../../core/index.js";
import { record } from "../../core/text/json.js";
import type { FieldIssue, Instructions } from "../base/call-types.js";
import * as field from "./fields.js";
import { fieldIssues, LAST_ROLES, MESSAGE_ROLES } from "./fields.js";

const ROLES: ReadonlySet<unknown> = new Set(MESSAGE_ROLES);

/**
 * Chat messages that have a role and a text each and nothing else, as most have, accepted by their shape: a history of hundreds is sent with
 * every request, and the schema takes ten times as long. Null for all others, valid or not, which are the schema's.
 *
 * @param most messages of a request
 */
export function plainMessages(given: readonly unknown[], most: number): readonly ChatMessage[] | null {
  if (given.length === 0 || given.length > most || !given.every(isPlain)) return null;
  // Copies, as the schema's are: the caller may change its own.
  return LAST_ROLES.includes(given.at(-1)?.role ?? "") ? given.map(({ role, content }) => ({ role, content })) : null;
}

function isPlain(message: unknown): message is ChatMessage & { readonly content: string } {
  if (typeof message !== "object" || message === null || Object.getPrototypeOf(message) !== Object.prototype)
    return false;
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown };
  if (typeof content !== "string" || !ROLES.has(role)) return false;
  return (
    Object.keys(message).length === 2 &&
    Object.hasOwn(message, "role") &&
    Object.hasOwn(message, "content") &&
    unstorable(content) === null
  );
}

/** The API whose messages a request gives. */
export const messageFormat = z.enum(API_NAMES);

/** Messages as a caller gave them, and the same as chat messages. */
export interface GivenMessages {
  readonly format: ApiName;
  readonly given: readonly unknown[];
  readonly chat: readonly ChatMessage[];
}

/** What of a request gives its prompt the format of its messages. */
export interface GivenPrompt extends Pick<GivenMessages, "format" | "given"> {
  /** Whether the request has instructions beside them. */
  readonly hasSystem: boolean;
}

/** A composed prompt in the format of the messages that it was made of. */
export interface RestoredPrompt {
  readonly messages: readonly ChatMessage[];
  /** Anthropic's instructions, which are no message; absent where there are none. */
  readonly system?: Instructions;
}

const list = z
  .array(z.unknown(), "must be an array of chat messages")
  .min(1, "must not be empty")
  .max(field.MAX_MESSAGES, `must have at most ${field.MAX_MESSAGES} messages`);

/** Messages of any API, by what only one of them has; plain texts are alike in all, and are chat messages. */
export const givenMessages = z
  .preprocess(field.cutAt(field.MAX_MESSAGES), list)
  .transform((given, context): GivenMessages => {
    const read = readMessages(given, formatOf(given));
    if ("chat" in read) return read;
    for (const { field: name, message } of read) context.addIssue({ code: "custom", message, params: { field: name } });
    return z.NEVER;
  });

const chatMessages = z.object({ messages: field.messages });

/** Messages of a named format; what is wrong with them, by the fields of a request. */
export function readMessages(given: readonly unknown[], format: ApiName): GivenMessages | readonly FieldIssue[] {
  if (format === "chat") {
    const plain = plainMessages(given, field.MAX_MESSAGES);
    if (plain !== null) return { format, given, chat: plain };
    const read = chatMessages.safeParse({ messages: given });
    return read.success ? { format, given, chat: read.data.messages } : fieldIssues(read.error);
  }
  const unstored = given.flatMap((message, at) => {
    const problem = field.unkeepable(message);
    return problem === null ? [] : [{ field: `messages[${at}]`, message: problem }];
  });
  if (unstored.length > 0) return unstored;
  const api = APIS[format];
  const chat = api.history({ [api.historyField]: given });
  if (chat === null) return [{ field: "messages", message: "must be messages of Anthropic's API" }];
  const read = field.messages.safeParse(chat);
  // One message given may be several chat messages, so positions differ.
  return read.success
    ? { format, given, chat: read.data }
    : read.error.issues.map(({ message }) => ({ field: "messages", message }));
}

/** Chat messages that are given as such. */
export function asGiven(chat: readonly ChatMessage[]): GivenMessages {
  return { format: "chat", given: chat, chat };
}

/**
 * A composed prompt in the format of the messages given, chat messages by default. What memprefix added is a user's message there, or part
 * of one.
 */
export function restored(prompt: GivenPrompt | null, composed: readonly ChatMessage[]): RestoredPrompt {
  if (prompt === null || prompt.format === "chat") return { messages: composed };
  const api = APIS[prompt.format];
  const instructions = prompt.hasSystem ? { system: "" } : {};
  const { [api.historyField]: messages, system } = api.withPrompt(
    { ...instructions, [api.historyField]: prompt.given },
    composed,
  );
  return {
    messages: messages as RestoredPrompt["messages"],
    ...(api.name === "messages" && system !== undefined ? { system: system as Instructions } : {}),
  };
}

/** The format of messages, by the first that only one API has. */
function formatOf(given: readonly unknown[]): ApiName {
  for (const message of given) {
    const { role, type, content, tool_calls: calls } = record(message);
    if (role === "tool" || role === "function" || Array.isArray(calls)) return "chat";
    if (typeof type === "string" && (role === undefined || type === "message")) return "responses";
    if (!Array.isArray(content)) continue;
    for (const part of content as readonly unknown[]) {
      const { type: kind } = record(part);
      if (typeof kind !== "string") continue;
      if (RESPONSES_PARTS.has(kind)) return "responses";
      if (ANTHROPIC_BLOCKS.has(kind)) return "messages";
    }
  }
  return "chat";
}

/** Source: https://platform.openai.com/docs/api-reference/responses/create */
const RESPONSES_PARTS = new Set(["input_text", "output_text", "input_image", "input_file"]);
/** Source: https://platform.claude.com/docs/en/api/messages */
const ANTHROPIC_BLOCKS = new Set(["tool_use", "tool_result"]);
