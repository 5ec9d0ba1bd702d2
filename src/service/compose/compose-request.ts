import type { z } from "zod";
import {
  type AgentId,
  type Annotations,
  type ChatMessage,
  type ConversationId,
  type Digest,
  digestOf,
  type MemoryId,
  messageDigest,
  type PolicyName,
  type RequestId,
  type RetentionName,
  type RetrievedMemory,
  type UserId,
  withoutProviderMemories,
} from "../../core/index.js";
import { type EngineName, type MarksElsewhere, marksElsewhereIn } from "../../engines/adapters/engine-adapter.js";
import { InvalidRequestError } from "../base/errors.js";
import type { ComposeDefaults } from "../base/memprefix-parts.js";
import { composeOptions } from "../fields/compose-options.js";
import { type AsGiven, type GivenMemories, readOptions, type UnusableMemories } from "../fields/fields.js";
import { asGiven, type GivenMessages, type GivenPrompt, readMessages } from "../fields/given-messages.js";

const CONVERTED = [...(["messages", "format", "memories", "system", "tools", "annotations", "dryRun"] as const)];
type UnmodifiedField = Exclude<keyof z.output<typeof composeOptions>, (typeof CONVERTED)[number]>;
const UNMODIFIED = Object.keys(composeOptions.shape).filter(
  (name): name is UnmodifiedField => !(CONVERTED as readonly string[]).includes(name),
);

/** Fields that a request has as they were given; null or absent: as configured. */
type UnmodifiedFields = {
  readonly [Name in UnmodifiedField]?: AsGiven<NonNullable<z.output<typeof composeOptions>[Name]>> | null;
};

/** One checked compose request. `composeOptions` describes the other fields. Null means as configured unless said otherwise. */
export interface ComposeRequest extends UnmodifiedFields {
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  /** Null: the `single` layout. */
  readonly conversationId: ConversationId | null;
  /** Whether it continues the conversation that its history begins as, if it names none, and can be continued itself. Default: no. */
  readonly isRecognised?: boolean;
  /** Null: memprefix generates one. */
  readonly requestId: RequestId | null;
  /** The search query; null: the last user message. */
  readonly query: string | null;
  /** Instructions, plain history and, last, the question. */
  readonly messages: readonly ChatMessage[];
  /** The caller's messages in their own format; absent: they are chat messages. */
  readonly given?: GivenPrompt | null;
  /** Best first; null: search the configured source. */
  readonly memories: readonly RetrievedMemory[] | null;
  readonly unusable?: UnusableMemories;
  /** Ids of memories that Mem0's AI SDK provider had put into the messages. */
  readonly moved?: readonly MemoryId[];
  readonly topK: number | null;
  readonly memoryBudgetTokens: number | null;
  readonly memoryBudgetRatio: number | null;
  readonly policy: PolicyName | null;
  readonly retention: RetentionName | null;
  readonly annotations: Annotations;
  readonly engine: EngineName | null;
  /** The caller's cache marks outside the messages, for example on tools. */
  readonly marksElsewhere?: MarksElsewhere;
  /** One JSON text for each; null or absent: none. */
  readonly toolTexts?: readonly string[] | null;
  readonly dryRun?: boolean;
  /** Whether memories go into tool results for any model. Default: no. */
  readonly inResult?: boolean;
  /** How many of the messages, the last ones, the caller sent; those before them are remembered. Default: all. */
  readonly sentNow?: number;
  /** By earlier refusals of the engine; null: unknown. */
  readonly acceptedTokens?: number | null;
  /** Where the proxy sends the prompt; null: the caller sends it, and does not say where. */
  readonly destination?: Destination | null;
  /** Chosen by a batch; null: not chosen. */
  readonly worker?: string | null;
}

/** Whose state a request, or some of a batch, is about. */
export type BatchScope = Pick<ComposeRequest, "userId" | "agentId">;

export interface Destination {
  /** As the client names it; empty if it does not. */
  readonly model: string;
  /** The engine's own limit, by its count; null: unknown. */
  readonly promptTokens: number | null;
  /** Tokens that the engine adds for tools, by memprefix's counter. */
  readonly besideTokens: number;
}

/** Mem0's own default. */
export const DEFAULT_TOP_K = 20;

export function topKOf({ topK }: Pick<ComposeRequest, "topK">, defaults: Pick<ComposeDefaults, "topK">): number {
  return topK ?? defaults.topK ?? DEFAULT_TOP_K;
}

/** Parses the library's options. Throws {@link InvalidRequestError}. */
export function readComposeOptions(options: unknown): ComposeRequest {
  return composeRequest(readOptions(composeOptions, withoutAbsentMemories(options)));
}

/** `memories: null` counts as absent; `undefined` in a union with `unknown` would otherwise reach Mem0's parser. */
export function withoutAbsentMemories(options: unknown): unknown {
  if (typeof options !== "object" || options === null || !("memories" in options)) return options;
  if (options.memories !== null && options.memories !== undefined) return options;
  const { memories: _absent, ...rest } = options;
  return rest;
}

/** Builds a request from valid fields. Throws {@link InvalidRequestError} if they are inconsistent. */
export function composeRequest(fields: ComposeFields): ComposeRequest {
  const asked = messagesIn(fields);
  if (asked === null) {
    throw new InvalidRequestError([{ field: "query", message: "give a query, or messages that end with a question" }]);
  }
  if (fields.history === "stored" && fields.conversationId == null) {
    const message = "stored needs a conversation: give its id";
    throw new InvalidRequestError([{ field: "history", message }]);
  }
  const instructions: ChatMessage[] = fields.system ? [{ role: "system", content: fields.system }] : [];
  const { messages: said, memories: provided } = withoutProviderMemories([...instructions, ...asked.chat]);
  const { usable: given, unusable } = memoriesGiven(fields);
  // One object that grows: V8 spreads one as long as this slowly.
  const unmodified: Partial<Record<UnmodifiedField, unknown>> = {};
  for (const name of UNMODIFIED) unmodified[name] = fields[name] ?? null;
  const request = unmodified as { -readonly [Name in keyof ComposeRequest]: ComposeRequest[Name] };
  request.messages = said;
  const isChat = asked.format === "chat";
  request.given = isChat ? null : { ...asked, hasSystem: withoutProviderMemories(instructions).messages.length > 0 };
  request.memories = provided === null ? given : [...(given ?? []), ...provided];
  request.annotations = fields.annotations ?? true;
  if (provided !== null) request.moved = provided.map(({ id }) => id);
  if (unusable !== undefined && unusable.count > 0) request.unusable = unusable;
  if (fields.tools != null && fields.tools.length > 0) {
    request.toolTexts = fields.tools.map((tool) => JSON.stringify(tool));
    request.marksElsewhere = marksElsewhereIn({ tools: fields.tools });
  }
  if (fields.dryRun === true) request.dryRun = true;
  return request;
}

/** The fields of a request; messages and memories may be checked already. */
type ComposeFields = Omit<z.output<typeof composeOptions>, "messages" | "memories"> & {
  readonly messages?: GivenMessages | readonly ChatMessage[] | null | undefined;
  readonly memories?: GivenMemories | readonly RetrievedMemory[] | null | undefined;
};

function memoriesGiven({
  memories,
}: ComposeFields): Pick<ComposeRequest, "unusable"> & { usable: ComposeRequest["memories"] } {
  return memories != null && "usable" in memories ? memories : { usable: memories ?? null };
}

function messagesIn({ messages, format, query }: ComposeFields): GivenMessages | null {
  if (messages == null) return query == null ? null : asGiven([{ role: "user", content: query }]);
  const recognised = "chat" in messages ? messages : asGiven(messages);
  if (format == null || format === recognised.format) return recognised;
  const read = readMessages(recognised.given, format);
  if ("chat" in read) return read;
  throw new InvalidRequestError([...read]);
}

/** Prefix of user ids that the dashboard makes up for tries: their prompts go to no engine, and no figure counts them. */
const TRY_USERS = "memprefix-try-";

export function isTry({ userId }: Pick<ComposeRequest, "userId">): boolean {
  return userId.startsWith(TRY_USERS);
}

/** Fields that a request's digest has in another form, or that may differ in a repeated request: engine, limits and answer format. */
const NOT_DIGESTED: ReadonlySet<string> = new Set([
  ...(["requestId", "conversationId", "topK", "model", "engine"] satisfies UnmodifiedField[]),
  ...(["maxPromptTokens", "workers", "historyRatio"] satisfies UnmodifiedField[]),
]);
const DIGESTED = [...UNMODIFIED.filter((name) => !NOT_DIGESTED.has(name)), "annotations"] as const;

/** Detects a reused request id. */
export function requestDigest(request: ComposeRequest): Digest {
  const { memories } = request;
  const fields: unknown[] = DIGESTED.map((name) => (request[name] === false ? null : (request[name] ?? null)));
  fields.push(request.isRecognised === true ? null : request.conversationId, request.topK ?? DEFAULT_TOP_K);
  // Their digests are computed anyway; a long history's texts take longer than everything else here.
  fields.push(request.messages.map(messageDigest));
  // Other fields count only if the prompt shows them.
  if (request.dates === true || memories === null) return digestOf(JSON.stringify([...fields, memories]));
  // Takes half the time of their JSON.
  let texts = JSON.stringify(fields);
  for (const { id, text } of memories) texts += `${id.length},${text.length},${id}${text}`;
  return digestOf(texts);
}

export function modelOf({ destination, model }: ComposeRequest): string {
  return destination?.model || (model ?? "");
}
