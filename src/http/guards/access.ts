import type { MiddlewareHandler } from "hono";
import { type ApiKeys, admit, CONFIGURED_KEY_ID } from "../../service/base/api-key.js";
import { StoreUnavailableError } from "../../service/base/errors.js";
import { DEFAULT_TENANT } from "../../service/base/tenant.js";
import type { MemstemOfAll } from "../../service/library/memstem.js";
import { answerProblem } from "../problems/openai-problem.js";
import { notFound, problem } from "../problems/problem.js";
import type { OnRefused } from "../problems/refusal.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { OPEN_PATHS, WEBHOOK_PATH } from "../requests/paths.js";
import { givenKey, showsWebhookToken } from "./credentials.js";
import { isLoopbackHost } from "./loopback.js";

/** What deciding who may come in needs. */
export interface AccessParts {
  readonly memstem: MemstemOfAll;
  readonly keys: ApiKeys;
  /** Other sites whose pages may call. */
  readonly corsOrigins: readonly string[];
  /** What Mem0 shows for its events; absent: they do not come here. */
  readonly webhookToken?: string | undefined;
  readonly onRefused: OnRefused;
}

/**
 * Says whose request it is. Once there was a key, a key that holds is needed, and gives its tenant. Without keys everybody who reaches the
 * loopback is the default tenant, so what a browser could be talked into is refused: a `Host` that is not the loopback's (DNS rebinding),
 * and an `Origin` of another site.
 */
export function access({
  memstem,
  keys,
  corsOrigins,
  webhookToken,
  onRefused,
}: AccessParts): MiddlewareHandler<HttpEnvironment> {
  const origins = new Set(corsOrigins);
  let areKeysUsed = false;
  let wasAsked = false;
  const anyKeys = () => {
    try {
      const any = keys.any();
      wasAsked = true;
      return any;
    } catch (error) {
      // Where keys cannot be read now, there are none that were not there when they could be. Keys that are in use are not done without.
      if (wasAsked && error instanceof StoreUnavailableError) return false;
      throw error;
    }
  };
  return async function access(c, next) {
    if (OPEN_PATHS.has(c.req.path)) return next();
    if (c.req.path === WEBHOOK_PATH) {
      if (webhookToken === undefined) return answerProblem(c, notFound(c));
      if (!showsWebhookToken(c, webhookToken)) {
        onRefused("no_key");
        return answerProblem(c, problem(401, "MEMSTEM_WEBHOOK_TOKEN is needed, as ?token= or as a bearer's"));
      }
      c.set("keyId", null);
      c.set("memstem", memstem.forTenant(DEFAULT_TENANT));
      return next();
    }
    // Keys are never deleted, so this does not change back.
    areKeysUsed ||= anyKeys();
    if (areKeysUsed) {
      const given = givenKey(c);
      const admitted = given === null ? null : admit(given, keys);
      if (admitted === null) {
        onRefused("no_key");
        const challenge = `Bearer realm="memstem"${given === null ? "" : ', error="invalid_token"'}`;
        const detail =
          given === null
            ? "an API key is needed: `authorization: Bearer …` or `x-api-key`"
            : "this API key does not hold: it is unknown or was revoked";
        return answerProblem(c, problem(401, detail), { headers: { "www-authenticate": challenge } });
      }
      c.set("keyId", admitted.keyId);
      if (given !== null && admitted.keyId === CONFIGURED_KEY_ID) c.set("configuredKey", given);
      c.set("memstem", memstem.forTenant(admitted.tenant));
      return next();
    }
    const host = c.req.header("host") ?? "";
    if (!isLoopbackHost(host)) {
      onRefused("host");
      return answerProblem(
        c,
        problem(421, "without API keys only requests to the loopback by its own name are served"),
      );
    }
    const origin = c.req.header("origin");
    if (origin !== undefined && origin !== `http://${host}` && !origins.has(origin)) {
      onRefused("origin");
      return answerProblem(c, problem(403, "pages of other sites may not call: see MEMSTEM_CORS_ORIGINS"));
    }
    c.set("keyId", null);
    c.set("memstem", memstem.forTenant(DEFAULT_TENANT));
    return next();
  };
}
