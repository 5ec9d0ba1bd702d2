import { createHash } from "node:crypto";
import type { Digest } from "./ids.js";

/** SHA-256 of the text's UTF-8 bytes, base64url (43 characters). */
export function digestOf(text: string): Digest {
  return createHash("sha256").update(text).digest("base64url") as Digest;
}
