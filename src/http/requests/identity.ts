import { InvalidRequestError } from "../../service/base/errors.js";
import {
  type IdentitySource,
  type IdentitySources,
  isPromptOfSideCall,
  type SideCallSource,
} from "../../service/chat/identity-sources.js";
import { type NamedByPath, NOBODY_NAMED, namedByPath } from "./base-url.js";

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
