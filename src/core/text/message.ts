/* text: ids, messages, token counts, collections. Enters: text and messages from callers. Leaves: the same, checked, counted or digested. */

import { keptIn } from "./collections.js";
import { type Digest, digestOf } from "./ids.js";
import { canonicalJsonText, isObject } from "./json.js";

/** `{ type: "text", text }`, an image, … Parts that are not text pass through unmodified. */
export interface ContentPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Of the OpenAI chat API. Unknown fields (tool calls, names, …) pass through unmodified. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: string | readonly ContentPart[] | null | undefined;
  readonly [field: string]: unknown;
}

/** Field for what a chat message has no place for: the type and id of another API's item. Neither counted nor meant. */
export const ITEM_FORM = "responses_item";

/** A message is digested for its history, for its window and for its prompt. */
const DIGESTS = new WeakMap<ChatMessage, Digest>();

/** Digest of all that the engine sees of a message, independent of the order of its JSON fields. */
export function messageDigest(message: ChatMessage): Digest {
  return keptIn(DIGESTS, message, digestOfMessage);
}

/** Whether a message is only a role and a text, as most are. */
export function isPlainMessage(message: ChatMessage): message is ChatMessage & { readonly content: string } {
  return typeof message.content === "string" && Object.keys(message).length === 2;
}

/** {@link messageDigest} without a cache, for messages digested once. */
export function digestOfMessage(message: ChatMessage): Digest {
  if (isPlainMessage(message)) {
    // The same text as canonicalJson gives, without its recursion.
    return digestOf(`{"content":${JSON.stringify(message.content)},"role":${JSON.stringify(message.role)}}`);
  }
  return digestOf(canonicalJson({ ...message, content: message.content ?? null }));
}

/** Its content, or its text parts joined by line breaks. */
export function messageText(message: ChatMessage): string {
  const { content } = message;
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  return content
    .map((part) => (typeof part["text"] === "string" ? part["text"] : ""))
    .filter((text) => text !== "")
    .join("\n");
}

/** Everything that costs tokens: content and all other fields. */
export function countedText(message: ChatMessage): string {
  if (isPlainMessage(message)) return message.content;
  const { role: _role, content: _content, [ITEM_FORM]: _form, providerOptions: _options, ...rest } = message;
  const text = [messageText(message), ...callsIn(message)].join("\n");
  return Object.keys(rest).length === 0 ? text : `${text}\n${canonicalJson(rest)}`;
}

/** Calls and results in parts, as in Anthropic's answers and the AI SDK's prompts. */
function callsIn({ content }: ChatMessage): readonly string[] {
  if (typeof content === "string" || content === null || content === undefined) return [];
  return content.flatMap((part) => {
    if (part.type === "tool-result") return [resultText(part["output"])];
    return isCall(part) ? [canonicalJson({ input: part["input"], name: part["name"] ?? part["toolName"] })] : [];
  });
}

function resultText(output: unknown): string {
  const { value } = (output ?? {}) as { readonly value?: unknown };
  if (typeof value === "string") return value;
  const isContent = (output as { readonly type?: unknown } | null | undefined)?.type === "content";
  return isContent && Array.isArray(value) ? messageText({ role: "", content: value }) : canonicalJson(value);
}

export function isCall({ type }: ContentPart): boolean {
  return type === "tool_use" || type === "tool-call";
}

export function isInstruction(message: ChatMessage): boolean {
  return message.role === "system" || message.role === "developer";
}

export function instructionsAtHead(messages: readonly ChatMessage[]): number {
  const first = messages.findIndex((message) => !isInstruction(message));
  return first < 0 ? messages.length : first;
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join()}}`;
}

/* Clients do not send messages back byte for byte. Equal meanings differ only in what such a client adds, drops or formats. */

export const CACHE_MARKS = ["cache_control", "prompt_cache_breakpoint"];

/**
 * Fields that clients drop or change when they send an answer back. Clients and chat templates drop reasoning from earlier turns. Sources: OpenAI's
 * chat completion object; vLLM's and DeepSeek's `reasoning_content`, OpenRouter's `reasoning_details`, LiteLLM's `thinking_blocks` and
 * `provider_specific_fields`, GitHub Copilot's `reasoning_text` and `reasoning_opaque`, Gemini's `extra_content`, AI SDK's and LangChain's `id`,
 * and `providerOptions` of the AI SDK's prompts.
 */
const NOT_MEANT = new Set([
  ...[...CACHE_MARKS, "id", "annotations", "provider_specific_fields", "extra_content"],
  "providerOptions",
  ...["reasoning", "reasoning_content", "reasoning_details", "reasoning_text", "reasoning_opaque"],
  "thinking_blocks",
  ITEM_FORM,
]);
/** They control caching, or only the provider reads them. */
const NOT_MEANT_IN_PARTS = new Set([...CACHE_MARKS, "providerOptions"]);
const REASONING_PARTS = new Set(["reasoning", "reasoning-file", "thinking", "redacted_thinking"]);
/** They repeat the call's position, control caching, or sign it. */
const NOT_MEANT_IN_CALLS = new Set([...CACHE_MARKS, "index", "extra_content", "provider_specific_fields"]);

/** Read for history, window and prompt. A message that is its own meaning is not kept here. */
const MEANINGS = new WeakMap<ChatMessage, Digest>();

/** Returns `exact`, the digest of the unmodified message, without hashing if the message is canonical. */
export function meaningDigest(message: ChatMessage, exact: Digest): Digest {
  const known = MEANINGS.get(message);
  if (known !== undefined) return known;
  const canonical = canonicalMessage(message);
  if (canonical === message) return exact;
  const meaning = messageDigest(canonical);
  MEANINGS.set(message, meaning);
  return meaning;
}

export function meaningOf(message: ChatMessage): Digest {
  return meaningDigest(message, messageDigest(message));
}

/**
 * The canonical form of all messages with one meaning; the same object if already canonical.
 * - Text: line breaks are `\n`, ends are trimmed. One text part becomes a text; several stay, as chat templates join them differently.
 * - Null, empty and {@link NOT_MEANT} fields are absent.
 * - Tool calls: see {@link canonicalArguments}.
 */
export function canonicalMessage(message: ChatMessage): ChatMessage {
  const content = canonicalContent(message.content);
  const fields = Object.keys(message);
  let isSame = content === message.content;
  const canonical: Record<string, unknown> = { role: message.role, content };
  for (const field of fields) {
    if (field === "role" || field === "content") continue;
    const value = message[field];
    const kept = NOT_MEANT.has(field) || isEmpty(value) ? undefined : canonicalField(field, value);
    if (kept !== value) isSame = false;
    if (kept !== undefined) canonical[field] = kept;
  }
  return isSame ? message : (canonical as unknown as ChatMessage);
}

/** Removes cache marks from a message that its client did not send now: they would count against the provider's limit. */
export function withoutMarks(message: ChatMessage): ChatMessage {
  const { content, tool_calls: calls } = message;
  const parts = Array.isArray(content) ? sameOr(content, content.map(unmarked)) : content;
  const unmarkedCalls = Array.isArray(calls) ? sameOr(calls, calls.map(unmarked)) : calls;
  const bare = unmarked(message);
  if (bare === message && parts === content && unmarkedCalls === calls) return message;
  return {
    ...bare,
    ...(parts === content ? {} : { content: parts }),
    ...(unmarkedCalls === calls ? {} : { tool_calls: unmarkedCalls }),
  };
}

function unmarked<T>(value: T): T {
  if (!isObject(value) || !CACHE_MARKS.some((field) => field in value)) return value;
  return kept(value, (field) => !CACHE_MARKS.includes(field));
}

function canonicalField(field: string, value: unknown): unknown {
  switch (field) {
    case "tool_calls":
      return Array.isArray(value) ? sameOr(value, value.map(canonicalCall)) : value;
    case "function_call":
      return canonicalFunction(value);
    case "audio":
      // An answer also has bytes, transcript and expiry; clients send back only the id.
      return isObject(value) && typeof value["id"] === "string" ? kept(value, (name) => name === "id") : value;
    default:
      return value;
  }
}

function canonicalContent(content: ChatMessage["content"]): string | readonly ContentPart[] {
  if (typeof content === "string") return canonicalText(content);
  if (content === null || content === undefined) return "";
  const parts = content.map(canonicalPart);
  const said = parts.filter(({ type, text }) => (type === "text" ? text !== "" : !REASONING_PARTS.has(type)));
  const [only] = said;
  if (only === undefined) return "";
  if (said.length === 1 && only.type === "text" && typeof only["text"] === "string" && Object.keys(only).length === 2)
    return only["text"];
  return sameOr(content, said);
}

function canonicalPart(part: ContentPart): ContentPart {
  const text = part["text"];
  const bare = kept(part, (field, value) => field === "text" || !(NOT_MEANT_IN_PARTS.has(field) || isEmpty(value)));
  if (part.type !== "text" || typeof text !== "string") return bare;
  const canonical = canonicalText(text);
  return canonical === text ? bare : { ...bare, text: canonical };
}

function canonicalText(text: string): string {
  return (text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text).trim();
}

function canonicalCall(call: unknown): unknown {
  if (!isObject(call)) return call;
  const bare = kept(call, (field, value) => !(NOT_MEANT_IN_CALLS.has(field) || isEmpty(value)));
  const called = canonicalFunction(bare["function"]);
  // Some clients omit the type, which was always "function" before OpenAI added others.
  if (bare["type"] === undefined && called !== undefined) return { ...bare, type: "function", function: called };
  return called === bare["function"] ? bare : { ...bare, function: called };
}

function canonicalFunction(called: unknown): unknown {
  if (!isObject(called)) return called;
  const given = called["arguments"];
  const canonical = canonicalArguments(given);
  const bare = kept(called, (field, value) => field === "arguments" || !isEmpty(value));
  return canonical === given ? bare : { ...bare, arguments: canonical };
}

/** The same object if `isKept` accepts all fields. */
function kept<T extends Readonly<Record<string, unknown>>>(
  record: T,
  isKept: (field: string, value: unknown) => boolean,
): T {
  const fields = Object.entries(record);
  const left = fields.filter(([field, value]) => isKept(field, value));
  return left.length === fields.length ? record : (Object.fromEntries(left) as T);
}

function sameOr<T>(list: readonly T[], mapped: readonly T[]): readonly T[] {
  return list.length === mapped.length && list.every((item, at) => item === mapped[at]) ? list : mapped;
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** A tool call's arguments. Some APIs send the value itself instead of its JSON. */
function canonicalArguments(given: unknown): string {
  const json = typeof given === "string" ? given : (JSON.stringify(given ?? {}) ?? "{}");
  return json.trim() === "" ? "{}" : canonicalJsonText(json);
}

/** Passed in, so that `core` needs no tokenizer. Must be pure. */
export type TokenCounter = (text: string) => number;

/** Tokens around one message (role, delimiters), an estimate: OpenAI documents four, and ChatML-like templates need four. */
export const TOKENS_PER_MESSAGE = 4;

const fixed = new WeakMap<TokenCounter, Map<string, number>>();

/** Tokens of memprefix's own text, such as a tag. Counted once, as each prompt repeats it. */
export function fixedTokens(text: string, countTokens: TokenCounter): number {
  return keptIn(
    keptIn(fixed, countTokens, () => new Map<string, number>()),
    text,
    countTokens,
  );
}
