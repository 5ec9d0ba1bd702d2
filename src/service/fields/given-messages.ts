import { z } from "zod";
import { API_NAMES, type ApiName } from "../../apis/api/api.js";
import { APIS } from "../../apis/apis.js";
import { type ChatMessage, unstorable } from "../../core/index.js";
import { record } from "../../core/text/json.js";
import type { FieldIssue, Instructions } from "../base/call-types.js";
import * as field from "./fields.js";
import { fieldIssues, LAST_ROLES, MESSAGE_ROLES } from "./fields.js";

const ROLES: ReadonlySet<unknown> = new Set(MESSAGE_ROLES);

/** Accepts messages of a role and a text by their shape: the schema takes ten times as long. Null for all others, which the schema checks. */
export function plainMessages(given: readonly unknown[], most: number): readonly ChatMessage[] | null {
  if (given.length === 0 || given.length > most || !given.every(isPlain)) return null;
  // Copies, like the schema's: the caller may change its own.
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

export const messageFormat = z.enum(API_NAMES);

export interface GivenMessages {
  readonly format: ApiName;
  readonly given: readonly unknown[];
  readonly chat: readonly ChatMessage[];
}

/** The parts of a request that decide its prompt's format. */
export interface GivenPrompt extends Pick<GivenMessages, "format" | "given"> {
  readonly hasSystem: boolean;
}

export interface RestoredPrompt {
  readonly messages: readonly ChatMessage[];
  /** Anthropic's instructions, which are not a message there. */
  readonly system?: Instructions;
}

const list = z
  .array(z.unknown(), "must be an array of chat messages")
  .min(1, "must not be empty")
  .max(field.MAX_MESSAGES, `must have at most ${field.MAX_MESSAGES} messages`);

/** Messages of any API, recognized by what only one API has. Plain texts are the same in all, and count as chat messages. */
export const givenMessages = z
  .preprocess(field.cutAt(field.MAX_MESSAGES), list)
  .transform((given, context): GivenMessages => {
    const read = readMessages(given, formatOf(given));
    if ("chat" in read) return read;
    for (const { field: name, message } of read) context.addIssue({ code: "custom", message, params: { field: name } });
    return z.NEVER;
  });

const chatMessages = z.object({ messages: field.messages });

/** Messages of a named format, or its issues by the request's fields. */
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
  // One given message may be several chat messages, so positions differ.
  return read.success
    ? { format, given, chat: read.data }
    : read.error.issues.map(({ message }) => ({ field: "messages", message }));
}

export function asGiven(chat: readonly ChatMessage[]): GivenMessages {
  return { format: "chat", given: chat, chat };
}

/** A composed prompt in the format of the given messages. What memprefix added is a user message there, or part of one. */
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

/** The messages' format, by the first message that only one API has. */
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
