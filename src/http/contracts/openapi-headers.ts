/*
 * The response headers of the OpenAPI document. Standard ones (`content-type`, CORS, browser security) are not described.
 */

const ORIGINS: string[] = ["memstem", "upstream"];

/** Every described header by its wire name, with its component. */
export const HEADERS = {
  ratelimit: {
    component: "RateLimit",
    header: {
      description:
        "What is left of the caller's rate: `r` requests now, one more in `t` seconds (draft-ietf-httpapi-ratelimit-headers-10). Present where `MEMSTEM_RATE_PER_SECOND` is set.",
      schema: { type: "string" },
      example: '"key";r=39;t=1',
    },
  },
  "ratelimit-policy": {
    component: "RateLimitPolicy",
    header: {
      description:
        "The caller's rate: `q` requests at once, refilled within `w` seconds. Present where `MEMSTEM_RATE_PER_SECOND` is set.",
      schema: { type: "string" },
      example: '"key";q=40;w=2',
    },
  },
  "retry-after": {
    component: "RetryAfter",
    header: {
      description: "Seconds to wait before a retry.",
      schema: { type: "integer", minimum: 1 },
      example: 1,
    },
  },
  "www-authenticate": {
    component: "WwwAuthenticate",
    header: {
      description: "The accepted scheme; `error` if a key was given.",
      schema: { type: "string" },
      example: 'Bearer realm="memstem", error="invalid_token"',
    },
  },
  "x-memstem-request-id": {
    component: "MemstemRequestId",
    header: {
      description: "Names the composed request for `/evict` and `/feedback`.",
      schema: { type: "string" },
      example: "0b6c2d9e-5a43-4c7d-9a57-0f4a2f0f7a11",
    },
  },
  "x-memstem-expected-cached-tokens": {
    component: "MemstemExpectedCachedTokens",
    header: {
      description: "Prompt tokens expected in the engine's prefix cache; estimated.",
      schema: { type: "integer", minimum: 0 },
      example: 412,
    },
  },
  "x-memstem-cached-tokens": {
    component: "MemstemCachedTokens",
    header: {
      description: "Cached prompt tokens that the engine reported. Absent: not reported, or the answer is a stream.",
      schema: { type: "integer", minimum: 0 },
      example: 384,
    },
  },
  "x-memstem-depth": {
    component: "MemstemDepth",
    header: {
      description:
        "With adaptive depth: how many of the retrieved memories the prompt got, and why. A dictionary of structured fields (RFC 9651); entropies are in nats.",
      schema: { type: "string" },
      example: "given=10, retrieved=20, outcome=sure, entropies=(1.823 0.412)",
    },
  },
  "x-memstem-worker": {
    component: "MemstemWorker",
    header: {
      description: "The worker that the prompt was routed to. Absent: no workers were named.",
      schema: { type: "string" },
      example: "gpu-0",
    },
  },
  "x-memstem-warnings": {
    component: "MemstemWarnings",
    header: {
      description: "Codes of warnings, separated by commas. Absent: none.",
      schema: { type: "string" },
      example: "memory_source_failed",
    },
  },
  "x-memstem-source-failure": {
    component: "MemstemSourceFailure",
    header: {
      description:
        "Why memories could not be searched for, with what the source says itself; characters other than printable ASCII are `?`. Absent: they were, or came with the request.",
      schema: { type: "string" },
      example: 'memory source "mem0-rest" could not be reached: ECONNREFUSED; composed from 0 memories known already',
    },
  },
  "x-memstem-not-composed": {
    component: "MemstemNotComposed",
    header: {
      description: "Why the client's messages went to the engine unmodified. Absent: they were composed.",
      schema: { type: "string" },
      example: "timeout",
    },
  },
  "x-memstem-error-origin": {
    component: "MemstemErrorOrigin",
    header: {
      description: "Of an error: whether memstem or the upstream engine caused it.",
      schema: { type: "string", enum: ORIGINS },
      example: "upstream",
    },
  },
} as const;

/** A header's name on the wire. */
export type HeaderName = keyof typeof HEADERS;

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
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${HEADERS[name].component}` }]));
}
