/** A header; names in lower case, a name may occur more than once. */
export type HeaderPair = readonly [name: string, value: string];

/** Node's flat list of headers as pairs. */
export function headerPairs(raw: readonly string[]): HeaderPair[] {
  return Array.from({ length: raw.length / 2 }, (_, at) => [(raw[2 * at] ?? "").toLowerCase(), raw[2 * at + 1] ?? ""]);
}

/** Hop-by-hop headers (RFC 9110, 7.6.1), and those of the body's length. */
const OF_THE_CONNECTION = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** memstem's own headers: not sent to the engine, and dropped from its answers. */
const OWN_PREFIX = "x-memstem-";

/** The end-to-end headers, unmodified. */
export function passedOn(headers: Iterable<HeaderPair>): HeaderPair[] {
  const pairs = [...headers].map(([name, value]): HeaderPair => [name.toLowerCase(), value]);
  const named = pairs
    .filter(([name]) => name === "connection")
    .flatMap(([, value]) => value.split(",").map((name) => name.trim().toLowerCase()));
  const dropped = new Set([...OF_THE_CONNECTION, ...named]);
  return pairs.filter(([name]) => !dropped.has(name) && !name.startsWith(OWN_PREFIX));
}

/** Headers in which clients and gateways put a key. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "api-key",
  "apikey",
  "x-goog-api-key",
  "ocp-apim-subscription-key",
  "x-auth-token",
  "x-access-token",
  "cookie",
]);

/** A client's headers that hold its credentials. */
export function credentialsIn(headers: readonly HeaderPair[]): HeaderPair[] {
  return headers.filter(([name]) => CREDENTIAL_HEADERS.has(name.toLowerCase()));
}

/** Headers that identify one request: a provider would answer a second one with the same id from the first. */
const NAMING_A_REQUEST: ReadonlySet<string> = new Set(["x-request-id", "idempotency-key"]);

/** A client's headers for another request made on its behalf. */
export function forAnotherRequest(headers: readonly HeaderPair[]): HeaderPair[] {
  return headers.filter(([name]) => !NAMING_A_REQUEST.has(name.toLowerCase()));
}

/** A client's headers, and those of memstem's that the client did not set itself. */
export function withAdded(own: readonly HeaderPair[], added: Readonly<Record<string, string>>): HeaderPair[] {
  const named = new Set(own.map(([name]) => name.toLowerCase()));
  return [...own, ...Object.entries(added).filter(([name]) => !named.has(name.toLowerCase()))];
}

/** For the logs of whoever runs the engine: no client of theirs makes this call. */
export const OWN_NAME: HeaderPair = ["user-agent", "memstem"];
