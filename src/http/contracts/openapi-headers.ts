import document from "./openapi.json" with { type: "json" };

/*
 * The response headers of the OpenAPI document; `openapi.json` describes them. Standard ones (`content-type`, CORS, browser security) are
 * not described.
 */

/** A header's name on the wire. */
export type HeaderName = keyof typeof document.headers;

/** Sent with every answer to a caller whose rate is limited. */
export const RATE_HEADERS = ["ratelimit", "ratelimit-policy"] as const satisfies readonly HeaderName[];

/** What the chat proxy adds to the engine's answer. */
export const CHAT_HEADERS = [
  "x-memstem-request-id",
  "x-memstem-expected-cached-tokens",
  "x-memstem-cached-tokens",
  "x-memstem-depth",
  "x-memstem-worker",
  "x-memstem-warnings",
  "x-memstem-source-failure",
  "x-memstem-not-composed",
] as const satisfies readonly HeaderName[];

/** References to headers, for a response. */
export function headerReferences(names: readonly HeaderName[]): Record<string, { readonly $ref: string }> {
  return Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${document.headers[name].component}` }]),
  );
}
