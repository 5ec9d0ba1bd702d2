/*
 * requests: what a request carries through the app, and how its path is read.
 * Enters: Node's request and response. Leaves: the typed Hono environment, the log's entry, and paths that
 * several folders name. Knows no guard and no route.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Context } from "hono";
import { z } from "zod";
import type { AgentId, ConversationId, UserId } from "../../core/index.js";
import type { ComposeAnswer } from "../../service/base/call-types.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import {
  type IdentitySource,
  type IdentitySources,
  isPromptOfSideCall,
  type SideCallSource,
} from "../../service/chat/chat-request.js";
import type { NotComposedReason } from "../../service/chat/compose-with-timeout.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/fields.js";
import type { Memprefix } from "../../service/library/memprefix.js";

/** A composed prompt as the log sees it. */
export interface ComposedEntry {
  readonly requestId?: string;
  readonly totalTokens?: number;
  readonly expectedCachedTokens?: number;
  readonly warnings?: readonly string[];
  /** Why a chat went to its engine unmodified; absent where it was composed. */
  readonly notComposed?: NotComposedReason;
}

/** What the log says of a composed prompt. */
export function entryOf({ requestId, plan, warnings }: ComposeAnswer): ComposedEntry {
  const { totalTokens, expectedCachedTokens } = plan;
  return { requestId, totalTokens, expectedCachedTokens, warnings: warnings.map(({ code }) => code) };
}

/** Hono's environment: what a request carries from one handler to the next. */
export interface HttpEnvironment {
  /** Node's request and response. */
  Bindings: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse };
  Variables: {
    /** The caller's tenant: the only way from a route to any state. */
    memprefix: Memprefix;
    /** Id of the caller's API key; null where keys are not in use. */
    keyId: string | null;
    /** The name of the key's tenant; absent where keys are not in use. */
    tenant?: string;
    /** The key itself where it is the configured one, which has a form of its own; absent for others. */
    configuredKey?: string;
    composed?: ComposedEntry;
  };
}

/** One request as the log sees it. Never memory text, never a query. */
export interface RequestLog extends ComposedEntry {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  /** Milliseconds from its arrival to its answer's head. */
  readonly ms: number;
}

/** Composes a prompt. */
export const COMPOSE_PATH = "/compose";

/** Composes a batch. */
export const BATCH_PATH = "/compose/batch";

/** The media types of JSON lines. */
const NDJSON_TYPE = /^application\/(x-ndjson|ndjson|jsonl|x-jsonlines)\s*(;|$)/i;

/** Whether a media type is JSON lines. */
export function isLinesType(type: string | undefined): boolean {
  return NDJSON_TYPE.test(type ?? "");
}

/** Whether a request is a batch in lines, which is read while it is answered. */
export function isStreamed({ req }: Pick<Context, "req">): boolean {
  return req.path === BATCH_PATH && isLinesType(req.header("content-type"));
}

/** Takes Mem0's events. */
export const WEBHOOK_PATH = "/webhooks/mem0";

/** The dashboard's page and its parts: the same bytes for everybody, without data. */
const PAGE_PATHS = ["/dashboard", "/dashboard/page.js", "/dashboard/page.css", "/dashboard/icon.svg"];

/** Open without a key, and under no key's limits: health, the OpenAPI document, and the dashboard's page. */
export const OPEN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/livez", "/openapi.json", ...PAGE_PATHS]);

/** Answered even when the service is overloaded or stopping: what an operator reads then. */
export const ALWAYS_ANSWERED: ReadonlySet<string> = new Set(["/healthz", "/livez", "/metrics"]);

/** Prefix of the OpenAI-compatible paths. */
export const OPENAI_PATHS = "/v1/";

/** Whether a path is OpenAI-compatible. */
export function isOpenAiPath(path: string): boolean {
  return path.startsWith(OPENAI_PATHS);
}

/** Anthropic's path of messages; its others are below. */
const ANTHROPIC_PATH = "/v1/messages";

/** Whether a path is Anthropic-compatible. */
export function isAnthropicPath(path: string): boolean {
  return path === ANTHROPIC_PATH || path.startsWith(`${ANTHROPIC_PATH}/`);
}

/** Splits a request target (RFC 9112 §3.2) into path and query. The query starts with `?`, or is empty. */
export function cutTarget(target: string): { readonly path: string; readonly query: string } {
  const at = target.indexOf("?");
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at) };
}

/*
 * Base URLs of the proxy, for clients that can set nothing else: `/users/{user}/v1`, with an agent and a conversation where there are any,
 * and `/plain/v1`, which never composes. The paths of `/v1` follow them. Of eviction hooks, which can send no header: `/keys/{key}`, with the
 * API key, which `/evict` follows.
 */

/** Who a base URL names; null where it does not say. */
export interface NamedByPath {
  readonly user: UserId | null;
  readonly agent: AgentId | null;
  readonly conversation: ConversationId | null;
  /** Whether its requests go to the engine as they are. */
  readonly isPlain: boolean;
}

/** A path below one of the base URLs: escaped names, and the path below `/v1` that it stands for. */
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

/** The path by which a request is routed and answered: what follows its base URL, which may end with a slash. */
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
/** URL parsers take such a segment for another path, also where it is escaped. */
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

/** Whom the base URL of a request names. Throws {@link InvalidRequestError} naming what cannot be a name. */
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

/** A name that a request gives in a place of the operator's choice; not yet checked. */
export interface GivenName {
  /** The header, or the body's field with dots. */
  readonly field: string;
  readonly from: "header" | "body";
  readonly value: unknown;
}

/** What a request says of itself in places of the operator's choice; null where it says nothing there. */
export interface GivenIdentity {
  readonly user: GivenName | null;
  readonly agent: GivenName | null;
  readonly conversation: GivenName | null;
  /** Whether its client makes it for itself: a title, tags, suggestions. */
  readonly isSideCall: boolean;
  /** Whom its base URL names. */
  readonly path: NamedByPath;
}

export const NOTHING_GIVEN: GivenIdentity = {
  user: null,
  agent: null,
  conversation: null,
  isSideCall: false,
  path: NOBODY_NAMED,
};

/** A request as far as it can say who it is. */
export interface IdentifiedRequest {
  readonly url: string;
  /** Every header with its value, names in lower case. */
  readonly headers: Iterable<readonly [name: string, value: string]>;
  readonly body: unknown;
}

/**
 * Reads the base URL, and the sources in their order; the first that says something counts, an empty text is nothing. Throws
 * {@link InvalidRequestError} for what cannot be a name in a path, and for a header that comes twice: a gateway's and the client's own would
 * become one name, or the client's would win.
 */
export function identityIn(request: IdentifiedRequest, sources: IdentitySources): GivenIdentity {
  const { user, agent, conversation, sideCall } = sources;
  const headers = [...request.headers];
  const first = (of: readonly IdentitySource[]): GivenName | null => {
    for (const source of of) {
      const given = nameIn(source, headers, request.body);
      if (given !== null) return given;
    }
    return null;
  };
  return {
    path: namedByPath(request.url),
    user: first(user),
    agent: first(agent),
    conversation: first(conversation),
    isSideCall:
      isYes(first(sideCall.filter(isPlace))?.value) ||
      (sideCall.some(({ from }) => from === "prompt") && isPromptOfSideCall(request.body)),
  };
}

function nameIn(
  source: IdentitySource,
  headers: readonly (readonly [name: string, value: string])[],
  body: unknown,
): GivenName | null {
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

/** Longest text that is read as JSON. */
const MAX_INNER_JSON = 10_000;

/** The value at a path of JSON; a text on the way may be JSON itself, as the `metadata.user_id` of coding agents is. */
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

function isPlace(source: SideCallSource): source is IdentitySource {
  return source.from !== "prompt";
}

/** Clients name the task, or say yes. */
function isYes(value: unknown): boolean {
  return value === true || (typeof value === "string" && !/^(?:false|no|off|0)$/i.test(value));
}
