/*
 * Clients do not send messages back byte for byte: SDKs and frameworks parse them into their own types and serialise them again. Two
 * messages have the same meaning if they differ only in what such a client adds, drops or formats differently. Meanings are compared to
 * recognise a history; the engine gets the client's messages unmodified.
 */

import type { Digest } from "./ids.js";
import { type ChatMessage, type ContentPart, ITEM_FORM, messageDigest } from "./message.js";

/** Fields that only control caching: Anthropic's and OpenAI's breakpoints. */
const CACHE_MARKS = ["cache_control", "prompt_cache_breakpoint"];

/**
 * Fields of answers that clients drop or format differently when they send an answer back. Reasoning does not count: clients and chat
 * templates drop it from earlier turns. Cache marks affect bytes, not meaning.
 * Sources: OpenAI's chat completion object; vLLM's and DeepSeek's `reasoning_content`, OpenRouter's `reasoning_details`, LiteLLM's
 * `thinking_blocks` and `provider_specific_fields`; AI SDK's and LangChain's `id`; `providerOptions` of the AI SDK's prompts (ids of items,
 * signatures, cache marks).
 */
const NOT_MEANT = new Set([
  ...[...CACHE_MARKS, "id", "annotations", "provider_specific_fields"],
  "providerOptions",
  ...["reasoning", "reasoning_content", "reasoning_details", "thinking_blocks", "anthropic_blocks"],
  ITEM_FORM,
]);
/** Fields of a content part that only control caching, or that only its provider reads. */
const NOT_MEANT_IN_PARTS = new Set([...CACHE_MARKS, "providerOptions"]);
/** Content parts of the AI SDK's that are reasoning. */
const REASONING_PARTS = new Set(["reasoning", "reasoning-file"]);
/** Fields of a tool call that repeat its position in the list, or only control caching. */
const NOT_MEANT_IN_CALLS = new Set([...CACHE_MARKS, "index"]);

/** A message's meaning is read for its history, for its window and for its prompt. Of those that mean what they are, none is kept. */
const MEANINGS = new WeakMap<ChatMessage, Digest>();

/** Digest of a message's meaning. Returns `exact`, the digest of the unmodified message, without hashing if the message is canonical. */
export function meaningDigest(message: ChatMessage, exact: Digest): Digest {
  const known = MEANINGS.get(message);
  if (known !== undefined) return known;
  const canonical = canonicalMessage(message);
  if (canonical === message) return exact;
  const meaning = messageDigest(canonical);
  MEANINGS.set(message, meaning);
  return meaning;
}

/**
 * The canonical form that all messages of one meaning share; the same object if the message is canonical. The canonical form has the same
 * meaning itself, so the digest of an unmodified message never equals the digest of another meaning.
 *
 * - Text: line breaks are `\n`, without white space at its ends. One text part is a plain text, and no content is an empty text. Several
 *   text parts stay separate, because chat templates join them differently.
 * - Null and empty fields are absent, and so are the fields of {@link NOT_MEANT}.
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

/**
 * The message without cache marks, as it is put back into a prompt whose client did not send it: there its marks would count against the
 * provider's limit. The same object if it has none.
 */
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
  if (!isRecord(value) || !CACHE_MARKS.some((field) => field in value)) return value;
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
      return isRecord(value) && typeof value["id"] === "string" ? kept(value, (name) => name === "id") : value;
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
  if (!isRecord(call)) return call;
  const bare = kept(call, (field, value) => !(NOT_MEANT_IN_CALLS.has(field) || isEmpty(value)));
  const called = canonicalFunction(bare["function"]);
  // Some clients omit the type, which was always "function" before OpenAI added others.
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

/** The record with only the fields that `isKept` accepts; the same object if it accepts all. */
function kept<T extends Readonly<Record<string, unknown>>>(
  record: T,
  isKept: (field: string, value: unknown) => boolean,
): T {
  const fields = Object.entries(record);
  const left = fields.filter(([field, value]) => isKept(field, value));
  return left.length === fields.length ? record : (Object.fromEntries(left) as T);
}

/** The first list if the second has the same objects. */
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

/** Arguments nested deeper are compared as text: the code that walks them is recursive. */
const MAX_LEVELS = 64;
/** Decimals with more digits can differ as text and be equal as doubles. */
const EXACT_DIGITS = 15;
const NUMBER = /-?\d[\d.eE+-]*/y;

/**
 * The canonical text of a tool call's arguments: without white space, fields sorted, each character and number spelled one way. Missing
 * arguments are an empty object. Invalid JSON and JSON nested deeper than {@link MAX_LEVELS} stay unmodified; numbers that a double would
 * round keep their digits.
 */
function canonicalArguments(given: unknown): string {
  // Some APIs send the value itself instead of its JSON.
  const json = typeof given === "string" ? given : (JSON.stringify(given ?? {}) ?? "{}");
  if (json.trim() === "") return "{}";
  const marked = isJson(json) ? withMarkedValues(json) : null;
  return marked === null ? json : written(JSON.parse(marked));
}

/**
 * The same JSON with every string prefixed by a letter and every number turned into such a string, so that a parser rounds nothing. Null if
 * nested too deep. Expects valid JSON.
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
      if (levels > MAX_LEVELS) return null;
      at++;
    }
  }
  marked.push(json.slice(copied));
  return marked.join("");
}

/** The offset after the string that starts at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** Serialises a value of marked JSON as plain JSON. */
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
