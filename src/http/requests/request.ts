/*
 * requests: a request's data on its way through the app, and how its path is read.
 * Enters: Node's request and response. Leaves: the typed Hono environment, the log's entry, and paths that several folders name.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Context } from "hono";
import { z } from "zod";
import type { AgentId, ConversationId, UserId } from "../../core/index.js";
import type { ComposeAnswer } from "../../service/base/call-types.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import type { HeaderPair } from "../../service/chat/chat.js";
import type { IdentitySource, IdentitySources } from "../../service/chat/chat-request.js";
import type { NotComposedReason } from "../../service/chat/compose-with-timeout.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/fields.js";
import type { Memprefix } from "../../service/library/memprefix.js";

/** The log's entry for a composed prompt. */
export interface ComposedEntry {
  readonly requestId?: string;
  readonly totalTokens?: number;
  readonly expectedCachedTokens?: number;
  readonly warnings?: readonly string[];
  /** Why a chat went to its engine unmodified; absent where it was composed. */
  readonly notComposed?: NotComposedReason;
}

export function entryOf({ requestId, plan, warnings }: ComposeAnswer): ComposedEntry {
  const { totalTokens, expectedCachedTokens } = plan;
  return { requestId, totalTokens, expectedCachedTokens, warnings: warnings.map(({ code }) => code) };
}

/** Hono's environment: passed from one handler to the next. */
export interface HttpEnvironment {
  Bindings: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse };
  Variables: {
    /** The caller's tenant: the only way from a route to any state. */
    memprefix: Memprefix;
    /** Id of the caller's API key; null without keys. */
    keyId: string | null;
    /** Name of the key's tenant; absent without keys. */
    tenant?: string;
    /** The key itself where it is the configured one, which may have any form. */
    configuredKey?: string;
    composed?: ComposedEntry;
  };
}

/** The log's entry for a request. Never holds memory text or a query. */
export interface RequestLog extends ComposedEntry {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  /** From the request's arrival to its answer's head. */
  readonly ms: number;
}

export const COMPOSE_PATH = "/compose";

export const BATCH_PATH = "/compose/batch";

/** Receives Mem0's events. */
export const WEBHOOK_PATH = "/webhooks/mem0";

/** Pages and their parts: the same bytes for everybody, without data. */
const PAGE_PATHS = [
  ...["/", "/dashboard", "/dashboard/page.js", "/dashboard/page.css", "/dashboard/icon.svg"],
  ...["/docs", "/docs/api.js"],
];

/** Open without a key, and under no key's limits. */
export const OPEN_PATHS: ReadonlySet<string> = new Set([
  "/health",
  "/healthz",
  "/livez",
  "/openapi.json",
  ...PAGE_PATHS,
]);

/** Answered even while the service is overloaded or stopping, for operators. */
export const ALWAYS_ANSWERED: ReadonlySet<string> = new Set(["/health", "/healthz", "/livez", "/metrics"]);

/** Prefix of the OpenAI-compatible paths. */
export const OPENAI_PATHS = "/v1/";

/** Paths below `/v1` whose bodies are JSON that is read: a prompt, or another input of a model, which may name a cache. */
const READ_PATHS =
  /^(?:chat\/completions|messages(?:\/count_tokens)?|responses(?:\/input_tokens|\/compact)?|completions|embeddings|moderations|rerank|score|classify|pooling|tokenize|detokenize)$/;

/** Whether a request's body is streamed to the engine unread: files, audio, whatever else is the engine's alone. */
export function isUpload({ req: { method, path } }: Pick<Context, "req">): boolean {
  if (method === "GET" || method === "HEAD" || !isOpenAiPath(path)) return false;
  return !READ_PATHS.test(path.slice(OPENAI_PATHS.length));
}

export function isOpenAiPath(path: string): boolean {
  return path.startsWith(OPENAI_PATHS);
}

const ANTHROPIC_PATH = "/v1/messages";

export function isAnthropicPath(path: string): boolean {
  return path === ANTHROPIC_PATH || path.startsWith(`${ANTHROPIC_PATH}/`);
}

/** Splits a request target (RFC 9112 §3.2) into path and query. The query starts with `?`, or is empty. */
export function cutTarget(target: string): { readonly path: string; readonly query: string } {
  const at = target.indexOf("?");
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at) };
}

/*
 * Base URLs, before the paths of `/v1`, for clients that can set nothing else: `/users/{user}/v1`, optionally with agent and conversation, and
 * `/plain/v1`, which never composes. For eviction hooks, which cannot send headers: `/keys/{key}`, with the API key, before `/evict`.
 */

/** Names in a base URL; null where it has none. */
export interface NamedByPath {
  readonly user: UserId | null;
  readonly agent: AgentId | null;
  readonly conversation: ConversationId | null;
  /** Whether its requests go to the engine unmodified. */
  readonly isPlain: boolean;
}

/** A path below a base URL: escaped names, and the path below `/v1` that it stands for. */
interface BasedPath {
  readonly names: Readonly<Record<string, string>>;
  readonly isPlain: boolean;
  readonly path: string;
}

const NAMED =
  /^\/users\/(?<user_id>[^/]*)(?:\/agents\/(?<agent_id>[^/]*))?(?:\/conversations\/(?<conversation_id>[^/]*))?(?<path>\/v1(?:\/.*)?)$/s;
const PLAIN = /^\/plain(?<path>\/v1(?:\/.*)?)$/s;

const KEYED = /^\/keys\/(?<key>[^/]+)(?<path>\/evict)$/s;

function basedPath(path: string): BasedPath | null {
  const plain = PLAIN.exec(path)?.groups;
  if (plain !== undefined) return { names: {}, isPlain: true, path: plain["path"] ?? "" };
  const { path: below, ...names } = NAMED.exec(path)?.groups ?? {};
  return below === undefined ? null : { names, isPlain: false, path: below };
}

/** The path that routes a request: the part after its base URL, which may end with a slash. */
export function pathAfterBase(path: string): string {
  return basedPath(path)?.path.replace(/^\/v1\/+/, OPENAI_PATHS) ?? KEYED.exec(path)?.groups?.["path"] ?? path;
}

/** The API key in a request's base URL; null for none. */
export function keyInBase(url: string): string | null {
  const key = KEYED.exec(new URL(url).pathname)?.groups?.["key"];
  try {
    return key === undefined ? null : decodeURIComponent(key);
  } catch {
    return key ?? null;
  }
}

const NOBODY_NAMED: NamedByPath = { user: null, agent: null, conversation: null, isPlain: false };
/** URL parsers resolve such a segment, even an escaped one, to another path. */
const isDots = (name: string) => name === "." || name === "..";
const inPath = <T>(name: z.ZodType<T, string>) =>
  z
    .string()
    .refine((text) => !isDots(text), "must not be . or .. in a path: name it in a header or in the body")
    .pipe(name)
    .optional();
const namesInPath = z.object({
  user_id: inPath(field.userId as z.ZodType<UserId, string>),
  agent_id: inPath(field.agentId as z.ZodType<AgentId, string>),
  conversation_id: inPath(field.conversationId as z.ZodType<ConversationId, string>),
});

/** The names in a request's base URL. Throws {@link InvalidRequestError} for an invalid name. */
export function namedByPath(url: string): NamedByPath {
  const based = basedPath(new URL(url).pathname);
  if (based === null) return NOBODY_NAMED;
  const decoded = Object.entries(based.names)
    .filter(([, name]) => name !== undefined)
    .map(([of, name]): [string, string] => [of, decodedName(of, name)]);
  const {
    user_id = null,
    agent_id = null,
    conversation_id = null,
  } = readOptions(namesInPath, Object.fromEntries(decoded));
  return { user: user_id, agent: agent_id, conversation: conversation_id, isPlain: based.isPlain };
}

function decodedName(of: string, name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    throw new InvalidRequestError([{ field: of, message: "must be percent-encoded UTF-8" }]);
  }
}

/** A name from a place that the operator configured, not yet checked. */
export interface GivenName {
  /** The header, or the body's field with dots. */
  readonly field: string;
  readonly from: "header" | "body";
  readonly value: unknown;
}

/** Names from places that the operator configured; null where the request has none. */
export interface GivenIdentity {
  readonly user: GivenName | null;
  readonly agent: GivenName | null;
  readonly conversation: GivenName | null;
  /** Whether the client makes it for itself: a title, tags, suggestions. */
  readonly isSideCall: boolean;
  readonly path: NamedByPath;
}

/**
 * Reads the base URL, and the sources in order: the first nonempty one counts. Throws {@link InvalidRequestError} for an invalid name in a
 * path, and for a repeated header: a gateway's and the client's own would become one name, or the client's would win.
 *
 * @param headers names in lower case; repeated headers are repeated
 */
export function identityIn(
  url: string,
  headers: readonly HeaderPair[],
  body: unknown,
  { user, agent, conversation, sideCall }: IdentitySources,
): GivenIdentity {
  const first = (of: readonly IdentitySource[]): GivenName | null => {
    for (const source of of) {
      const given = nameIn(source, headers, body);
      if (given !== null) return given;
    }
    return null;
  };
  return {
    path: namedByPath(url),
    user: first(user),
    agent: first(agent),
    conversation: first(conversation),
    isSideCall: isYes(first(sideCall)?.value),
  };
}

function nameIn(source: IdentitySource, headers: readonly HeaderPair[], body: unknown): GivenName | null {
  if (source.from === "header") {
    const values = headers.filter(([name]) => name === source.name).map(([, value]) => value);
    if (values.length > 1) throw new InvalidRequestError([{ field: source.name, message: "must be given once" }]);
    return values[0] === undefined || values[0] === ""
      ? null
      : { field: source.name, from: "header", value: values[0] };
  }
  const value = valueAt(body, source.path);
  return value === undefined || value === null || value === ""
    ? null
    : { field: source.path.join("."), from: "body", value };
}

/** Longest text that is parsed as JSON. */
const MAX_INNER_JSON = 10_000;

/** The value at a path of JSON; a text on the way may itself be JSON, as the `metadata.user_id` of coding agents is. */
function valueAt(body: unknown, path: readonly string[]): unknown {
  let value = body;
  for (const name of path) {
    const holder = typeof value === "string" ? objectIn(value) : value;
    if (typeof holder !== "object" || holder === null || !Object.hasOwn(holder, name)) return undefined;
    value = (holder as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

function objectIn(text: string): unknown {
  if (text.length > MAX_INNER_JSON || !text.startsWith("{")) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Clients name the task, or say yes. */
function isYes(value: unknown): boolean {
  return value === true || (typeof value === "string" && !/^(?:false|no|off|0)$/i.test(value));
}
