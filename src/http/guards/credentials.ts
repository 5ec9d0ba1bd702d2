import { hash, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import { holdsApiKey } from "../../service/base/api-key.js";
import type { HeaderPair } from "../../service/chat/chat.js";

/**
 * The token of an `Authorization` header whose scheme is Bearer, in whatever case it is written (RFC 9110 §11.1); null where there is none.
 * A token may hold what RFC 6750 does not let it, such as a space: what it is compared with says whether it is right.
 */
export function bearerToken(authorization: string | undefined): string | null {
  return /^bearer +(\S|\S.*\S) *$/i.exec(authorization ?? "")?.[1] ?? null;
}

/** The API key of a request, whichever way it is shown; null for none. */
export function givenKey(c: Context): string | null {
  return c.req.header("x-api-key")?.trim() ?? bearerToken(c.req.header("authorization"));
}

/** Whether a request shows the token: as `?token=`, or as a bearer's. How long it takes says nothing about how much of it was right. */
export function showsWebhookToken(c: Context, token: string): boolean {
  const given = c.req.query("token") ?? bearerToken(c.req.header("authorization")) ?? "";
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return Buffer.from(hash("sha256", text, "hex"), "hex");
}

/** Headers in which clients and gateways put a key. */
const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
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
/** Query parameters in which they do. */
const CREDENTIAL_PARAMETERS: ReadonlySet<string> = new Set([
  "api_key",
  "api-key",
  "apikey",
  "key",
  "token",
  "access_token",
  "auth_token",
  "subscription-key",
]);

/** How a request's sender got in. */
export interface AdmittedBy {
  /** Null: without a key, because none are in use. */
  readonly keyId: string | null;
  /** The key itself where it is the configured one, which cannot be told from other text. */
  readonly configuredKey?: string | undefined;
}

function holdsKey(text: string, { configuredKey }: AdmittedBy): boolean {
  return holdsApiKey(text) || (configuredKey !== undefined && text.includes(configuredKey));
}

/**
 * A request's headers as the engine may see them. With keys in use the client's credentials are memstem's, and end here, wherever they
 * stand; without, they are the engine's. A key of memstem's is nobody else's even then.
 */
export function withoutCredentials(headers: readonly HeaderPair[], by: AdmittedBy): HeaderPair[] {
  return headers.filter(
    ([name, value]) => !holdsKey(value, by) && (by.keyId === null || !CREDENTIAL_HEADERS.has(name.toLowerCase())),
  );
}

/** A request's query as the engine may see it, `?` included; what stays is byte for byte what it was. */
export function queryWithoutCredentials(query: string, by: AdmittedBy): string {
  if (query.length <= 1) return query;
  const kept = query
    .slice(1)
    .split("&")
    .filter((part) => {
      const [name, value] = [...new URLSearchParams(part)][0] ?? ["", ""];
      if (holdsKey(value, by) || holdsKey(name, by)) return false;
      return by.keyId === null || !CREDENTIAL_PARAMETERS.has(name.toLowerCase());
    });
  return kept.length === 0 ? "" : `?${kept.join("&")}`;
}
