import type { MiddlewareHandler } from "hono";
import type { HttpEnvironment } from "../requests/environment.js";

/**
 * Says to browsers that nothing here is to be framed, sniffed, run or kept (OWASP's secure headers for an API). Whether clients must come by
 * TLS is for what ends it to say, so there is no `Strict-Transport-Security`.
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

/** Gives every answer the {@link SECURITY_HEADERS} that it does not have itself: an engine's own stay as they are. */
export function securityHeaders(): MiddlewareHandler<HttpEnvironment> {
  return async function securityHeaders(c, next) {
    const outgoing = c.env?.outgoing;
    if (outgoing !== undefined) {
      // What the answer has itself takes their place. Asking it for its headers would build them once more.
      for (const [name, value] of SECURITY_HEADERS) outgoing.setHeader(name, value);
      return next();
    }
    await next();
    for (const [name, value] of SECURITY_HEADERS) if (!c.res.headers.has(name)) c.res.headers.set(name, value);
    return undefined;
  };
}
