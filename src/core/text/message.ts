/*
 * text: the values that everything else is made of. Ids and labels, digests, chat messages and their meaning, token counting, storable
 * text, lists, and a bounded map.
 * Enters: text and messages from callers. Leaves: the same, checked, counted or digested. Nothing here depends on memories.
 */

import { type Digest, digestOf } from "./ids.js";

/** A part of a multi-part message (`{ type: "text", text }`, an image, …); parts that are not text pass through unmodified. */
export interface ContentPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A chat message of the OpenAI chat API. Unknown fields (tool calls, names, …) pass through unmodified. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: string | readonly ContentPart[] | null | undefined;
  readonly [field: string]: unknown;
}

/**
 * Field of a message that was an item of another API: what of the item a chat message has no place for (its type, its id). Neither counted
 * nor meant.
 */
export const ITEM_FORM = "responses_item";

/** A message is digested for its history, for its window and for its prompt. */
const DIGESTS = new WeakMap<ChatMessage, Digest>();

/** Digest of everything that the engine sees of a message; independent of the order of its JSON fields. Remembered with the message. */
export function messageDigest(message: ChatMessage): Digest {
  const known = DIGESTS.get(message);
  if (known !== undefined) return known;
  const digest = digestOfMessage(message);
  DIGESTS.set(message, digest);
  return digest;
}

/** Whether a message is a role and a text, and nothing else: most messages of a history are. */
export function isPlainMessage(message: ChatMessage): message is ChatMessage & { readonly content: string } {
  return typeof message.content === "string" && Object.keys(message).length === 2;
}

/** {@link messageDigest} of a message that is digested once: to remember it takes as long as the digest. */
export function digestOfMessage(message: ChatMessage): Digest {
  if (isPlainMessage(message)) {
    // The same text as canonicalJson gives, without its recursion.
    return digestOf(`{"content":${JSON.stringify(message.content)},"role":${JSON.stringify(message.role)}}`);
  }
  return digestOf(canonicalJson({ ...message, content: message.content ?? null }));
}

/** The message's text: its content, or its text parts joined by line breaks. */
export function messageText(message: ChatMessage): string {
  const { content } = message;
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  return content
    .map((part) => (typeof part["text"] === "string" ? part["text"] : ""))
    .filter((text) => text !== "")
    .join("\n");
}

/** Everything in a message that costs tokens, as one text: its content and any other fields. */
export function countedText(message: ChatMessage): string {
  if (isPlainMessage(message)) return message.content;
  const { role: _role, content: _content, [ITEM_FORM]: _form, providerOptions: _options, ...rest } = message;
  const text = [messageText(message), ...callsIn(message)].join("\n");
  return Object.keys(rest).length === 0 ? text : `${text}\n${canonicalJson(rest)}`;
}

/** The calls and results in a message's parts, as Anthropic's answers and the AI SDK's prompts have them; OpenAI's are fields and texts. */
function callsIn({ content }: ChatMessage): readonly string[] {
  if (typeof content === "string" || content === null || content === undefined) return [];
  return content.flatMap((part) => {
    if (part.type === "tool-result") return [resultText(part["output"])];
    return isCall(part) ? [canonicalJson({ input: part["input"], name: part["name"] ?? part["toolName"] })] : [];
  });
}

/** A tool's result in the AI SDK's form: a text, JSON, or parts of which the texts cost tokens here. */
function resultText(output: unknown): string {
  const { value } = (output ?? {}) as { readonly value?: unknown };
  if (typeof value === "string") return value;
  const isContent = (output as { readonly type?: unknown } | null | undefined)?.type === "content";
  return isContent && Array.isArray(value) ? messageText({ role: "", content: value }) : canonicalJson(value);
}

/** Whether a content part is a tool's call: Anthropic's, or the AI SDK's. */
export function isCall({ type }: ContentPart): boolean {
  return type === "tool_use" || type === "tool-call";
}

/** Whether a message belongs to the head of a prompt: instructions before the conversation. */
export function isInstruction(message: ChatMessage): boolean {
  return message.role === "system" || message.role === "developer";
}

/** How many messages at the front are instructions. */
export function instructionsAtHead(messages: readonly ChatMessage[]): number {
  const first = messages.findIndex((message) => !isInstruction(message));
  return first < 0 ? messages.length : first;
}

function canonicalJson(value: unknown): string {
  const parts: string[] = [];
  writeJson(value, parts);
  return parts.join("");
}

/** Parts are appended, so nested values are not copied once per level. */
function writeJson(value: unknown, parts: string[]): void {
  if (Array.isArray(value)) {
    parts.push("[");
    for (const [at, item] of value.entries()) {
      if (at > 0) parts.push(",");
      writeJson(item, parts);
    }
    parts.push("]");
  } else if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    parts.push("{");
    for (const [at, [name, field]] of fields.entries()) {
      parts.push(at > 0 ? "," : "", JSON.stringify(name), ":");
      writeJson(field, parts);
    }
    parts.push("}");
  } else parts.push(JSON.stringify(value) ?? "null");
}
