import { hash, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";

/**
 * The token of a bearer `Authorization` header; null where there is none. The scheme is case-insensitive (RFC 9110 §11.1). Characters that
 * RFC 6750 forbids in a token are let through: the comparison decides.
 */
export function bearerToken(authorization: string | undefined): string | null {
  return /^bearer +(\S|\S.*\S) *$/i.exec(authorization ?? "")?.[1] ?? null;
}

/** A request's API key, from `x-api-key` or as a bearer token; null for none. */
export function givenKey(c: Context): string | null {
  return c.req.header("x-api-key")?.trim() ?? bearerToken(c.req.header("authorization"));
}

/** Whether a request carries the token, as `?token=` or as a bearer token. Compares in constant time. */
export function showsWebhookToken(c: Context, token: string): boolean {
  const given = c.req.query("token") ?? bearerToken(c.req.header("authorization")) ?? "";
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return Buffer.from(hash("sha256", text, "hex"), "hex");
}
