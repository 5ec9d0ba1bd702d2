import { hash, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";

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
