/*
 * Clients do not send messages back byte for byte: SDKs and frameworks parse them, keep them in types of their own and write them again.
 * Two messages mean the same where they differ in nothing but what such a client adds, drops or writes differently. What is meant is
 * compared to recognise a history; what goes to the engine is what the client sent.
 */

import type { Digest } from "./ids.js";
import { type ChatMessage, type ContentPart, messageDigest } from "./message.js";

/**
 * Fields that answers have and that clients drop, or write differently, when they send an answer back. What was thought is no part of what
 * was said: clients drop it, chat templates drop it from earlier turns. Marks for caches are about bytes.
 * Sources: OpenAI's chat completion object; vLLM's and DeepSeek's `reasoning_content`, OpenRouter's `reasoning_details`, LiteLLM's
 * `thinking_blocks` and `provider_specific_fields`; AI SDK's and LangChain's `id`.
 */
const NOT_MEANT = new Set([
  ...["id", "annotations", "cache_control", "prompt_cache_breakpoint", "provider_specific_fields"],
  ...["reasoning", "reasoning_content", "reasoning_details", "thinking_blocks", "anthropic_blocks"],
]);
/** Fields of a content part that are about caches. */
const NOT_MEANT_IN_PARTS = new Set(["cache_control", "prompt_cache_breakpoint"]);
/** Fields of a tool call that number it, where its place in the list says the same. */
const NOT_MEANT_IN_CALLS = new Set(["index", "cache_control"]);

/** Identifies a message by what it means. One hash less where that is the digest of the message as it is: `exact`. */
export function meaningDigest(message: ChatMessage, exact: Digest): Digest {
  const canonical = canonicalMessage(message);
  return canonical === message ? exact : messageDigest(canonical);
}

/**
 * The message in the one form that all messages with its meaning have; the same object where it has that form. The form is itself a
 * message that means the same, so no message's own digest is the digest of another meaning.
 *
 * - Text: line breaks are `\n`, without white space at its ends. One text part is a plain text, and no content is an empty one. Several
 *   text parts stay apart, because chat templates join them differently.
 * - Fields that are null or empty are absent; see {@link NOT_MEANT} for those that are never meant.
 * - Tool calls: arguments by their JSON value; see {@link canonicalArguments}.
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

function canonicalField(field: string, value: unknown): unknown {
  switch (field) {
    case "tool_calls":
      return Array.isArray(value) ? sameOr(value, value.map(canonicalCall)) : value;
    case "function_call":
      return canonicalFunction(value);
    case "audio":
      // An answer has its bytes, transcript and expiry too; what is sent back is its id.
      return isRecord(value) && typeof value["id"] === "string" ? kept(value, (name) => name === "id") : value;
    default:
      return value;
  }
}

function canonicalContent(content: ChatMessage["content"]): string | readonly ContentPart[] {
  if (typeof content === "string") return canonicalText(content);
  if (content === null || content === undefined) return "";
  const parts = content.map(canonicalPart);
  const said = parts.filter((part) => part.type !== "text" || part["text"] !== "");
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
  if (!isRecord(call)) return call;
  const bare = kept(call, (field, value) => !(NOT_MEANT_IN_CALLS.has(field) || isEmpty(value)));
  const called = canonicalFunction(bare["function"]);
  // Every tool call of OpenAI's had this type before there were others, and some clients leave it out.
  if (bare["type"] === undefined && called !== undefined) return { ...bare, type: "function", function: called };
  return called === bare["function"] ? bare : { ...bare, function: called };
}

function canonicalFunction(called: unknown): unknown {
  if (!isRecord(called)) return called;
  const given = called["arguments"];
  const canonical = canonicalArguments(given);
  const bare = kept(called, (field, value) => field === "arguments" || !isEmpty(value));
  return canonical === given ? bare : { ...bare, arguments: canonical };
}

/** The record with the fields that `isKept`; the same object where that is all of them. */
function kept<T extends Readonly<Record<string, unknown>>>(
  record: T,
  isKept: (field: string, value: unknown) => boolean,
): T {
  const fields = Object.entries(record);
  const left = fields.filter(([field, value]) => isKept(field, value));
  return left.length === fields.length ? record : (Object.fromEntries(left) as T);
}

/** The first list where the second has the same objects. */
function sameOr<T>(list: readonly T[], mapped: readonly T[]): readonly T[] {
  return list.length === mapped.length && list.every((item, at) => item === mapped[at]) ? list : mapped;
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Deeper arguments are compared as texts: no function takes them, and what walks them is recursive. */
const MOST_LEVELS = 64;
/** Decimals with more digits may be two numbers in a text and one in a program. */
const EXACT_DIGITS = 15;
const NUMBER = /-?\d[\d.eE+-]*/y;

/**
 * The arguments of a tool call by their value: without white space, fields in order, every character and number written one way. No
 * arguments are an empty object. What is no JSON stays as it is, and so does what is too deep; numbers that a program would round keep
 * their digits.
 */
function canonicalArguments(given: unknown): string {
  // Some APIs have the value itself in place of its JSON.
  const json = typeof given === "string" ? given : (JSON.stringify(given ?? {}) ?? "{}");
  if (json.trim() === "") return "{}";
  const marked = isJson(json) ? withMarkedValues(json) : null;
  return marked === null ? json : written(JSON.parse(marked));
}

/**
 * The same JSON with a letter before what every string says, and numbers as such strings, so that a parser rounds nothing. Null where it
 * is too deep. Expects valid JSON.
 */
function withMarkedValues(json: string): string | null {
  const marked: string[] = [];
  let copied = 0;
  let levels = 0;
  for (let at = 0; at < json.length; ) {
    const sign = json[at] as string;
    if (sign === '"') {
      marked.push(json.slice(copied, at), '"s');
      copied = at + 1;
      at = endOfString(json, at);
    } else if (sign === "-" || (sign >= "0" && sign <= "9")) {
      NUMBER.lastIndex = at;
      const [digits = sign] = NUMBER.exec(json) ?? [];
      marked.push(json.slice(copied, at), `"n${canonicalNumber(digits)}"`);
      at += digits.length;
      copied = at;
    } else {
      if (sign === "[" || sign === "{") levels++;
      else if (sign === "]" || sign === "}") levels--;
      if (levels > MOST_LEVELS) return null;
      at++;
    }
  }
  marked.push(json.slice(copied));
  return marked.join("");
}

/** Where what follows a string begins. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** A value of marked JSON as plain JSON. */
function written(value: unknown): string {
  if (typeof value === "string") return value.startsWith("n") ? value.slice(1) : JSON.stringify(value.slice(1));
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, field]) => `${JSON.stringify(name.slice(1))}:${written(field)}`);
  return `{${fields.join(",")}}`;
}

function canonicalNumber(digits: string): string {
  const significant = digits
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+/, "");
  if (significant === "") return "0";
  const size = Math.abs(Number(digits));
  return significant.length > EXACT_DIGITS || size < 1e-300 || size > 1e300 ? digits : String(Number(digits));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
