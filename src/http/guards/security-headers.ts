import type { MiddlewareHandler } from "hono";
import type { HttpEnvironment } from "../requests/request.js";

/**
 * OWASP's secure headers for an API: no framing, sniffing, scripts or caching. `Strict-Transport-Security` is missing on purpose: it is for
 * whatever terminates TLS.
 */
export const SECURITY_HEADERS = [
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["cross-origin-resource-policy", "same-origin"],
  ["cross-origin-opener-policy", "same-origin"],
  ["referrer-policy", "no-referrer"],
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"],
  ["cache-control", "no-store"],
] as const;

/** Adds the {@link SECURITY_HEADERS} to every answer; an answer's own values win. */
export function securityHeaders(): MiddlewareHandler<HttpEnvironment> {
  return async function securityHeaders(c, next) {
    const outgoing = c.env?.outgoing;
    if (outgoing !== undefined) {
      // The answer's own headers overwrite these. Reading them here would build them twice.
      for (const [name, value] of SECURITY_HEADERS) outgoing.setHeader(name, value);
      return next();
    }
    await next();
    for (const [name, value] of SECURITY_HEADERS) if (!c.res.headers.has(name)) c.res.headers.set(name, value);
    return undefined;
  };
}
