/*
 * guards: the checks that every request passes before a route.
 * Enters: a request, and the limits. Leaves: the request with its tenant, key and body, or a rejection: no valid key, size, silent
 * body, too many in flight, ambiguous or unsafe input. Order: stopping, access, target, body, in flight.
 */

import { hash, timingSafeEqual } from "node:crypto";
import { BlockList, isIP } from "node:net";
import type { Context } from "hono";
import { StoreUnavailableError } from "../../service/base/errors.js";
import { type ApiKeys, authenticate, CONFIGURED_KEY_ID, DEFAULT_TENANT } from "../../service/base/tenant.js";
import type { MemprefixOfAll } from "../../service/library/memprefix.js";
import { answerProblem, notFound, type OnRejected, problem, type RejectionReason } from "../problems/problem.js";
import { type HttpEnvironment, keyInBase, OPEN_PATHS, WEBHOOK_PATH } from "../requests/request.js";
import { type Guard, type GuardVerdict, PASSED } from "./guard.js";

export interface AccessParts {
  readonly memprefix: MemprefixOfAll;
  readonly keys: ApiKeys;
  /** Token of Mem0's events; absent: no webhook. */
  readonly webhookToken?: string | undefined;
  readonly onRejected: OnRejected;
}

/**
 * Authenticates a request and sets its tenant. After the first key was created, every request needs one. Without keys every loopback caller
 * is the default tenant, so a web page must not reach it through a browser: a `Host` other than the loopback (DNS rebinding) and a foreign
 * `Origin` are rejected.
 */
export function access({ memprefix, keys, webhookToken, onRejected }: AccessParts): Guard {
  /** Keys are revoked, never deleted: once true, this stays true. Null: not known yet. */
  let areKeysUsed: boolean | null = null;
  const anyKeys = async (): Promise<boolean> => {
    try {
      // A slower, older query must not overwrite true.
      areKeysUsed = (await keys.any()) || areKeysUsed === true;
      return areKeysUsed;
    } catch (error) {
      // If the store fails, its last answer holds. Before a first answer there may be keys.
      if (areKeysUsed === false && error instanceof StoreUnavailableError) return false;
      throw error;
    }
  };
  const reject = (
    c: Context<HttpEnvironment>,
    reason: RejectionReason,
    status: number,
    detail: string,
    headers: Readonly<Record<string, string>> = {},
  ): GuardVerdict => {
    onRejected(reason);
    return { rejection: answerProblem(c, problem(status, detail), { headers }) };
  };
  const admittedAsDefault = (c: Context<HttpEnvironment>): GuardVerdict => {
    c.set("keyId", null);
    c.set("memprefix", memprefix.forTenant(DEFAULT_TENANT));
    return PASSED;
  };
  const withKey = async (c: Context<HttpEnvironment>): Promise<GuardVerdict> => {
    const given = givenKey(c);
    const admitted = given === null ? null : await authenticate(given, keys);
    if (given === null || admitted === null) {
      const challenge = `Bearer realm="memprefix"${given === null ? "" : ', error="invalid_token"'}`;
      const detail =
        given === null
          ? "an API key is needed: `authorization: Bearer …` or `x-api-key`"
          : "this API key is not valid: it is unknown or was revoked";
      return reject(c, "no_key", 401, detail, { "www-authenticate": challenge });
    }
    c.set("keyId", admitted.keyId);
    c.set("tenant", admitted.tenant.name);
    if (admitted.keyId === CONFIGURED_KEY_ID) c.set("configuredKey", given);
    c.set("memprefix", memprefix.forTenant(admitted.tenant));
    return PASSED;
  };
  const withoutKey = (c: Context<HttpEnvironment>): GuardVerdict => {
    const host = c.req.header("host") ?? "";
    if (!isLoopbackHost(host))
      return reject(c, "host", 421, "without API keys only requests whose host is the loopback are served");
    const origin = c.req.header("origin");
    if (origin !== undefined && origin !== `http://${host}`)
      return reject(c, "origin", 403, "without API keys requests from other origins are rejected");
    return admittedAsDefault(c);
  };
  return async function access(c) {
    if (OPEN_PATHS.has(c.req.path)) return PASSED;
    if (c.req.path === WEBHOOK_PATH) {
      if (webhookToken === undefined) return { rejection: answerProblem(c, notFound(c)) };
      return showsWebhookToken(c, webhookToken)
        ? admittedAsDefault(c)
        : reject(c, "no_key", 401, "MEMPREFIX_WEBHOOK_TOKEN is needed, as ?token= or as a bearer token");
    }
    return areKeysUsed === true || (await anyKeys()) ? withKey(c) : withoutKey(c);
  };
}

/**
 * The token of a bearer `Authorization` header, else null. The scheme is case-insensitive (RFC 9110 §11.1). Characters that RFC 6750 forbids
 * in a token are accepted: the comparison decides.
 */
function bearerToken(authorization: string | undefined): string | null {
  return /^bearer +(\S|\S.*\S) *$/i.exec(authorization ?? "")?.[1] ?? null;
}

function givenKey(c: Context<HttpEnvironment>): string | null {
  return c.req.header("x-api-key")?.trim() ?? bearerToken(c.req.header("authorization")) ?? keyInBase(c.req.url);
}

/** Whether a request carries the token, as `?token=` or as a bearer token. Compares in constant time. */
function showsWebhookToken(c: Context<HttpEnvironment>, token: string): boolean {
  const given = c.req.query("token") ?? bearerToken(c.req.header("authorization")) ?? "";
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return Buffer.from(hash("sha256", text, "hex"), "hex");
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

export function isLoopbackAddress(host: string): boolean {
  // The usual spellings first: this runs for every request.
  if (host === "127.0.0.1" || host.toLowerCase() === "localhost") return true;
  const version = isIP(host);
  return version !== 0 && LOOPBACK.check(host, version === 4 ? "ipv4" : "ipv6");
}

/** Whether a `Host` header, with or without a port, names the loopback. */
function isLoopbackHost(header: string): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(header) ?? [];
  return isLoopbackAddress(bracketed ?? plain ?? "");
}
