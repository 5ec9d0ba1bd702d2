import type { MiddlewareHandler } from "hono";
import { secureHeaders } from "hono/secure-headers";

/**
 * Says to browsers that nothing here is to be framed, sniffed, run or kept. An engine's own headers stay as they are. Whether clients must
 * come by TLS is for what ends it to say, so there is no `Strict-Transport-Security`.
 */
export function securityHeaders(): MiddlewareHandler {
  const secure = secureHeaders({
    contentSecurityPolicy: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    strictTransportSecurity: false,
    // For pages that show something, of which there is none.
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
    xFrameOptions: "DENY",
    overwrite: false,
  });
  return async function securityHeaders(c, next) {
    await secure(c, next);
    if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
  };
}
