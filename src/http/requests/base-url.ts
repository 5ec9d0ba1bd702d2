import { z } from "zod";
import type { AgentId, ConversationId, UserId } from "../../core/index.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/fields.js";
import { cutTarget } from "./request.js";

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

/** The path by which a request is routed and answered: what follows its base URL. */
export function pathAfterBase(path: string): string {
  return basedPath(path)?.path ?? KEYED.exec(path)?.groups?.["path"] ?? path;
}

/** The API key in a request's base URL; null for none. */
export function keyInBase(url: string): string | null {
  const { path } = cutTarget(url);
  const key = KEYED.exec(path.startsWith("/") ? path : new URL(path).pathname)?.groups?.["key"];
  try {
    return key === undefined ? null : decodeURIComponent(key);
  } catch {
    return key ?? null;
  }
}

export const NOBODY_NAMED: NamedByPath = { user: null, agent: null, conversation: null, isPlain: false };
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

/**
 * Whom the base URL of a request names. Throws {@link InvalidRequestError} naming what cannot be a name.
 *
 * @param url a request's, or its target
 */
export function namedByPath(url: string): NamedByPath {
  const { path } = cutTarget(url);
  const based = basedPath(path.startsWith("/") ? path : new URL(path).pathname);
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
