import {
  AIMessage,
  type BaseMessage,
  FunctionMessage,
  ChatMessage as GenericMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { z } from "zod";
import type { ChatMessage, ContentPart, ITEM_FORM } from "../core/index.js";
import { isObject, isSameJson, parsedJson } from "../core/text/json.js";

const FORM = "responses_item" satisfies typeof ITEM_FORM;

type Content = BaseMessage["content"];

/** Keeps the content unmodified, with what {@link baseMessageOf} needs. Throws for a message that no model is sent. */
export function chatMessageOf(message: BaseMessage): ChatMessage {
  const { name, tool_calls: calls, tool_call_id: callId } = fieldsOf(message);
  return {
    role: roleOf(message),
    content: message.content as string | readonly ContentPart[],
    ...(name == null ? {} : { name }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(callId === undefined ? {} : { tool_call_id: callId }),
    ...withForm(message),
  };
}

const ROLES: Readonly<Record<string, string>> = {
  human: "user",
  ai: "assistant",
  system: "system",
  developer: "developer",
  tool: "tool",
  function: "function",
};
const OWN_ROLES = new Set(["system", "developer", "user", "assistant", "tool", "function"]);

function roleOf(message: BaseMessage): string {
  const role = GenericMessage.isInstance(message) ? message.role : ROLES[message.type];
  if (role === undefined) throw new TypeError(`a message of type "${message.type}" has no place in a prompt`);
  return OWN_ROLES.has(role) ? role : "user";
}

function fieldsOf(message: BaseMessage) {
  const { name, additional_kwargs: more } = message;
  const callId = ToolMessage.isInstance(message) ? message.tool_call_id : undefined;
  const own = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
  const raw: readonly unknown[] = Array.isArray(more.tool_calls) ? more.tool_calls : [];
  const calls = own.map(({ id, name: called, args }) => ({
    id,
    type: "function",
    function: { name: called, arguments: JSON.stringify(args) },
  }));
  return { name, tool_calls: calls.length > 0 ? calls : raw, tool_call_id: callId };
}

const call = z.looseObject({
  id: z.string().default(""),
  name: z.string(),
  args: z.record(z.string(), z.unknown()),
  type: z.literal("tool_call").default("tool_call"),
});

const invalidCall = z.object({
  id: z.string().exactOptional(),
  name: z.string().exactOptional(),
  args: z.string().exactOptional(),
  error: z.string().exactOptional(),
  type: z.literal("invalid_tool_call").default("invalid_tool_call"),
});

const form = z.object({
  role: z.string().optional(),
  id: z.string().optional(),
  additional_kwargs: z.record(z.string(), z.unknown()).optional(),
  response_metadata: z.record(z.string(), z.unknown()).optional(),
  usage_metadata: z.looseObject({}).optional(),
  /** Calls with more fields than a chat's. */
  tool_calls: z.array(call).optional(),
  invalid_tool_calls: z.array(invalidCall).optional(),
  status: z.enum(["success", "error"]).optional(),
});
type Form = z.output<typeof form>;

/** LangChain and LangGraph invent another id each time that a client sends a message without one. */
const RANDOM_ID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/i;
const PLAIN_CALL = new Set(["id", "name", "args", "type"]);

/** A tool's artifact is for programs and is no part of it. */
function withForm(message: BaseMessage): Readonly<Record<string, unknown>> {
  const { id, additional_kwargs, response_metadata } = message;
  const ai = AIMessage.isInstance(message) ? message : null;
  const calls = ai?.tool_calls ?? [];
  const isPlain = calls.every((call) => Object.keys(call).every((field) => PLAIN_CALL.has(field)));
  const own: Record<string, unknown> = {
    role: GenericMessage.isInstance(message) ? message.role : undefined,
    id: id === undefined || RANDOM_ID.test(id) ? undefined : id,
    additional_kwargs: orAbsent(additional_kwargs),
    response_metadata: orAbsent(response_metadata),
    usage_metadata: ai?.usage_metadata,
    tool_calls: isPlain ? undefined : calls,
    invalid_tool_calls: orAbsent(ai?.invalid_tool_calls),
    status: ToolMessage.isInstance(message) ? message.status : undefined,
  };
  const kept = JSON.parse(JSON.stringify(own)) as Readonly<Record<string, unknown>>;
  return Object.keys(kept).length === 0 ? {} : { [FORM]: kept };
}

function orAbsent<T extends object>(given: T | undefined): T | undefined {
  return given === undefined || Object.keys(given).length === 0 ? undefined : given;
}

/** Restores a message of {@link chatMessageOf}, or converts one that memprefix or another client added. */
export function baseMessageOf(message: ChatMessage): BaseMessage {
  const { role, content, name, tool_calls: calls, tool_call_id: callId, [FORM]: given, ...rest } = message;
  const { role: ownRole, usage_metadata: used, ...own } = form.catch({}).parse(given);
  const usage = used === undefined ? {} : { usage_metadata: used };
  const fields = {
    ...withoutAbsent(own),
    additional_kwargs: { ...rest, ...own.additional_kwargs },
    content: (content ?? "") as Content,
    ...(typeof name === "string" ? { name } : {}),
  };
  if (ownRole !== undefined) return new GenericMessage({ ...fields, role: ownRole });
  switch (role) {
    case "system":
      return new SystemMessage(fields);
    case "developer":
      return new SystemMessage({
        ...fields,
        additional_kwargs: { ...fields.additional_kwargs, __openai_role__: "developer" },
      });
    case "assistant":
      // LangChain's types have no usage here, its constructor does.
      return new AIMessage({ ...fields, ...(usage as { usage_metadata?: never }), ...callsOf(calls, own) });
    case "tool":
      return new ToolMessage({ ...fields, tool_call_id: typeof callId === "string" ? callId : "" });
    case "function":
      return new FunctionMessage({ ...fields, name: typeof name === "string" ? name : "" });
    default:
      return new HumanMessage(fields);
  }
}

const chatCalls = z
  .array(z.looseObject({ id: z.string().default(""), function: z.object({ name: z.string(), arguments: z.string() }) }))
  .catch([]);

function callsOf(given: unknown, { tool_calls: own, invalid_tool_calls: invalid }: Form) {
  const calls =
    own ??
    chatCalls.parse(given).flatMap(({ id, function: { name, arguments: json } }) => {
      const args = parsedJson(json);
      return isObject(args) ? [{ id, name, args, type: "tool_call" as const }] : [];
    });
  return { tool_calls: calls, invalid_tool_calls: invalid ?? [] };
}

/** Keeps the class and all other fields. */
export function withContent(message: BaseMessage, content: ChatMessage["content"]): BaseMessage {
  const own = Object.getOwnPropertyDescriptors(message);
  const changed = Object.create(Object.getPrototypeOf(message) as object, own) as BaseMessage;
  changed.content = (content ?? "") as Content;
  const { contentBlocks: _blocks, ...kwargs } = Object.getOwnPropertyDescriptors(message.lc_kwargs);
  const value = { value: changed.content, enumerable: true, writable: true, configurable: true };
  changed.lc_kwargs = Object.defineProperties({}, { ...kwargs, content: value }) as BaseMessage["lc_kwargs"];
  return changed;
}

type WithoutAbsent<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function withoutAbsent<T extends object>(given: T): WithoutAbsent<T> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as WithoutAbsent<T>;
}

export interface ComposedMessage {
  readonly message: ChatMessage;
  /** Index of the given message; null: memprefix added it, or restored it from the stored history. */
  readonly of: number | null;
  readonly isSame: boolean;
}

/** The given messages are in order, some changed, some missing. Searches from the end, because messages are removed or restored at the front. */
export function findGiven(given: readonly ChatMessage[], composed: readonly ChatMessage[]): readonly ComposedMessage[] {
  const found: ComposedMessage[] = [];
  let left = given.length;
  const lastOf = (isIt: (one: ChatMessage) => boolean): number => {
    let at = left - 1;
    while (at >= 0 && !isIt(given[at] as ChatMessage)) at--;
    return at;
  };
  for (const message of composed.toReversed()) {
    const same = lastOf((one) => isSameJson(one, message));
    const of = same >= 0 ? same : lastOf((one) => isWithMore(message, one));
    found.push({ message, of: of < 0 ? null : of, isSame: same >= 0 });
    if (of >= 0) left = of;
  }
  return found.reverse();
}

/** Whether a text is a whole section of memprefix's, which has no empty line. Linear time. */
function isSection(text: string): boolean {
  const section = text.trim();
  return section.startsWith("<memories>\n") && /\n<\/memories>(?:\n|$)/.test(section) && !section.includes("\n\n");
}

function isWithMore({ content, ...message }: ChatMessage, { content: given, ...own }: ChatMessage): boolean {
  if (message.role !== own.role || !isSameJson(message, own)) return false;
  const [parts, ownParts] = [partsOf(content), partsOf(given)];
  const [text, said] = [textOf(parts), textOf(ownParts)];
  const isInFront = text.endsWith(said);
  if (!isInFront && !text.startsWith(said)) return false;
  const more = isInFront ? text.slice(0, text.length - said.length) : text.slice(said.length);
  return (more === "" || isSection(more)) && isSameJson(othersIn(parts), othersIn(ownParts));
}

function partsOf(content: ChatMessage["content"]): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
}

function textOf(parts: readonly ContentPart[]): string {
  return parts.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : "")).join("");
}

function othersIn(parts: readonly ContentPart[]): readonly object[] {
  return parts
    .filter(({ type }) => type !== "text")
    .map(({ cache_control: _mark, prompt_cache_breakpoint: _breakpoint, ...part }) => part);
}

/** Keeps the given message's own parts. */
export function contentWith(content: ChatMessage["content"], given: ChatMessage["content"]): ChatMessage["content"] {
  if (!Array.isArray(content) || !Array.isArray(given)) return content;
  const own: readonly ContentPart[] = given;
  return (content as readonly ContentPart[]).map((part) => own.find((one) => isSameJson(one, part)) ?? part);
}
