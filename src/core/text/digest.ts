import { hash } from "node:crypto";
import type { Digest } from "./ids.js";

/** SHA-256 of the text's UTF-8 bytes, base64url (43 characters). */
export function digestOf(text: string): Digest {
  return hash("sha256", text, "base64url") as Digest;
}
