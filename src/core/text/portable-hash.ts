import { sha256 } from "@noble/hashes/sha2.js";

/** Core's use of `hash` of `node:crypto`, for browsers and workers, by package.json's `imports`. Web Crypto's digest is asynchronous; composing is not. */
export function hash(_algorithm: "sha256", text: string, _encoding: "base64url"): string {
  const bytes = sha256(new TextEncoder().encode(text));
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  // Without padding (RFC 4648, section 5).
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace("=", "");
}
