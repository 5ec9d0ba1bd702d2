/* A prompt of the AI SDK as messages of `compose`, and back. Values that JSON lacks (bytes, URLs) become objects with one field. */

import type { MessageLike } from "../service/base/call-types.js";

type Fields = Readonly<Record<string, unknown>>;

type Part = Fields & { readonly type: string };

/** `LanguageModelV2Message` to `LanguageModelV4Message`. */
interface PromptMessage {
  readonly role: string;
  readonly content: unknown;
}

/** Throws for what JSON cannot hold: a cycle, a bigint. */
export function messagesOf(prompt: readonly PromptMessage[]): readonly MessageLike[] {
  return prompt.map((message) => withMarks(asJson(message, 0) as MessageLike & Fields));
}

export function promptOf(messages: readonly MessageLike[]): PromptMessage[] {
  return messages.flatMap((message) => {
    const { role, content, ...rest } = withoutMark(fromJson(message) as PromptMessage & Fields);
    if (role === "system" || role === "developer") return [systemMessage(rest, content)];
    const parts = partsIn(content).map(withoutMark);
    return role === "tool" ? toolMessages(rest, parts) : [{ ...rest, role, content: parts }];
  });
}

function partsIn(content: unknown): readonly Part[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return (content ?? []) as readonly Part[];
}

/** A system message is one text: its parts are joined, and the last one's cache mark becomes the message's. */
function systemMessage(rest: Fields, content: unknown): PromptMessage {
  if (typeof content === "string") return { ...rest, role: "system", content };
  const parts = partsIn(content).map(withoutMark);
  const options = parts.findLast((part) => part["providerOptions"] !== undefined)?.["providerOptions"];
  const own = rest["providerOptions"] ?? options;
  return {
    ...rest,
    role: "system",
    content: parts.map((part) => part["text"]).join(""),
    ...(own === undefined ? {} : { providerOptions: own }),
  };
}

/** Tool messages have no text parts: text after the results goes into the last one, or into a user message. */
function toolMessages(rest: Fields, parts: readonly Part[]): PromptMessage[] {
  const own = parts.filter(({ type }) => type !== "text");
  const added = parts.filter(({ type }) => type === "text");
  if (added.length === 0) return [{ ...rest, role: "tool", content: parts }];
  const at = own.findLastIndex(({ type }) => type === "tool-result");
  if (at < 0) {
    return [
      { ...rest, role: "tool", content: own },
      { role: "user", content: added },
    ];
  }
  const text = added.map((part) => part["text"]).join("");
  const result = own[at] as Part;
  const content = own.with(at, { ...result, output: outputWith(result["output"] as ToolOutput, text) });
  return [{ ...rest, role: "tool", content }];
}

/** `LanguageModelV2ToolResultOutput` to `LanguageModelV4ToolResultOutput`. */
type ToolOutput = Fields & { readonly type: string; readonly value?: unknown };

/** A result with a text after it. JSON becomes the text that providers send of it. */
function outputWith(output: ToolOutput, text: string): ToolOutput {
  const behind = (value: string) => (value === "" ? text : `${value}\n\n${text}`);
  const { type, value } = output;
  switch (type) {
    case "json":
      return { ...output, type: "text", value: behind(JSON.stringify(value)) };
    case "error-json":
      return { ...output, type: "error-text", value: behind(JSON.stringify(value)) };
    case "content":
      return { ...output, value: [...(value as readonly unknown[]), { type: "text", text }] };
    case "execution-denied": {
      const { reason, ...denied } = output;
      return { ...denied, type: "error-text", value: behind(String(reason ?? "Tool execution denied.")) };
    }
    default:
      return { ...output, value: behind(String(value ?? "")) };
  }
}

/** The field that memprefix's adapter sets, and the AI SDK's option for it. */
const MARKS = [
  { field: "cache_control", provider: "anthropic", option: "cacheControl" },
  { field: "prompt_cache_breakpoint", provider: "openai", option: "promptCacheBreakpoint" },
] as const;

function withMarks(message: MessageLike & Fields): MessageLike {
  const { content } = message;
  const marked = withMark(message);
  return Array.isArray(content) ? { ...marked, content: content.map((part: Part) => withMark(part)) } : marked;
}

function withMark<T extends Fields>(holder: T): T {
  const found = MARKS.filter(({ provider, option }) => optionsOf(holder, provider)[option] !== undefined);
  const marks = found.map(({ field, provider, option }) => [field, optionsOf(holder, provider)[option]]);
  return marks.length === 0 ? holder : { ...holder, ...Object.fromEntries(marks) };
}

function withoutMark<T extends Fields>(holder: T): T {
  return MARKS.reduce((bare, { field, provider, option }) => {
    const { [field]: mark, ...rest } = bare;
    if (mark === undefined) return bare;
    const own = optionsOf(rest, provider);
    if (own[option] !== undefined) return rest as T;
    const all = rest["providerOptions"] as Fields | undefined;
    return { ...rest, providerOptions: { ...all, [provider]: { ...own, [option]: mark } } } as unknown as T;
  }, holder);
}

function optionsOf(holder: Fields, provider: string): Fields {
  return ((holder["providerOptions"] as Fields | undefined)?.[provider] ?? {}) as Fields;
}

/** Objects with one of these fields stand for values that JSON lacks; OBJECT stands for an object that looks like one. */
const BYTES = "memprefix:bytes";
const URL_TEXT = "memprefix:url";
const OBJECT = "memprefix:object";
/** `compose` rejects deeper nesting. Ends a cycle. */
const MAX_LEVELS = 200;

function asJson(value: unknown, level: number): unknown {
  if (typeof value === "bigint") throw new TypeError("a prompt with a bigint cannot be composed");
  if (typeof value !== "object" || value === null) return value;
  if (level > MAX_LEVELS) throw new TypeError("a prompt that is nested too deep cannot be composed");
  if (value instanceof Uint8Array) return { [BYTES]: base64(value) };
  if (value instanceof URL) return { [URL_TEXT]: value.href };
  if ("toJSON" in value && typeof value.toJSON === "function") return asJson(value.toJSON(), level + 1);
  if (Array.isArray(value)) return value.map((item) => asJson(item, level + 1) ?? null);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined && typeof field !== "function");
  const written = Object.fromEntries(fields.map(([name, field]) => [name, asJson(field, level + 1)]));
  return standsFor(written) === null ? written : { [OBJECT]: written };
}

function fromJson(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(fromJson);
  const inner = value as Fields;
  switch (standsFor(inner)) {
    case BYTES:
      return bytesIn(String(inner[BYTES]));
    case URL_TEXT:
      return new URL(String(inner[URL_TEXT]));
    case OBJECT:
      return restored(inner[OBJECT] as Fields);
    default:
      return restored(inner);
  }
}

function restored(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, fromJson(field)]));
}

function standsFor(fields: Fields): string | null {
  const [name, ...others] = Object.keys(fields);
  return others.length === 0 && (name === BYTES || name === URL_TEXT || name === OBJECT) ? name : null;
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function bytesIn(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
