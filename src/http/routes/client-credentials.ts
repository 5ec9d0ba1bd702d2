import { holdsApiKey } from "../../service/base/tenant.js";
import { CREDENTIAL_HEADERS, type HeaderPair } from "../../service/chat/chat.js";

/** Query parameters in which clients and gateways put a key; the headers are {@link CREDENTIAL_HEADERS}. */
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
  /** The key itself where it is the configured one, which has no form of its own. */
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
