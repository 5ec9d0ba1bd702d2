import { type Cipher, createCipheriv, createDecipheriv, type Decipher } from "node:crypto";
import type Database from "better-sqlite3";
import type { Digest } from "../../core/index.js";

/** A digest as the file holds it. */
export type SealedDigest = string & { readonly __sealed: never };

/** Bytes of SHA-256. */
const DIGEST_BYTES = 32;

/**
 * Digests as the file holds them, and back. SHA-256 of a short text tells the text to whoever tries all of them; so what is written is
 * encrypted with a random key of the database, which leaves it nowhere but in a copy of the whole file. Equal digests stay equal, to be
 * looked up by.
 *
 * AES-256 on each half by itself: it tells nothing but which halves are equal, and no two halves of different SHA-256 digests are.
 * The cipher is set up once: that takes longer than to use it, which is a microsecond.
 */
export class DigestSeal {
  #ciphers: { readonly seal: Cipher; readonly open: Decipher } | null = null;

  /** @param readKey 32 bytes; asked for once, at the first use, as a file of an earlier schema has none */
  constructor(private readonly readKey: () => Buffer) {}

  /** The seal of a database whose schema is up to date. */
  static of(sqlite: Database.Database): DigestSeal {
    return new DigestSeal(() => sqlite.prepare<[], Buffer>("select key from digest_keys").pluck().get() as Buffer);
  }

  seal(digest: Digest): SealedDigest {
    const bytes = Buffer.from(digest, "base64url");
    if (bytes.length !== DIGEST_BYTES) throw new Error(`not a digest: ${bytes.length} bytes`);
    return this.#keyed().seal.update(bytes).toString("base64url") as SealedDigest;
  }

  open(sealed: SealedDigest): Digest {
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length !== DIGEST_BYTES) throw new Error(`damaged digest: ${bytes.length} bytes`);
    return this.#keyed().open.update(bytes).toString("base64url") as Digest;
  }

  #keyed() {
    if (this.#ciphers === null) {
      const key = this.readKey();
      this.#ciphers = {
        // Without padding every whole block that goes in comes out at once, and none is the end.
        seal: createCipheriv("aes-256-ecb", key, null).setAutoPadding(false),
        open: createDecipheriv("aes-256-ecb", key, null).setAutoPadding(false),
      };
    }
    return this.#ciphers;
  }
}
