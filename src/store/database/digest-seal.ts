import { type Cipher, createCipheriv, createDecipheriv, type Decipher, hash } from "node:crypto";
import type Database from "better-sqlite3";
import { type ConversationId, type Digest, digestOf, type MemoryId, type Scope } from "../../core/index.js";

/** A digest as it is stored: encrypted. */
export type SealedDigest = string & { readonly __sealed: never };

/** Bytes of SHA-256. */
const DIGEST_BYTES = 32;

/**
 * Encrypts digests for storage, and decrypts them. A short text can be guessed from its SHA-256, so stored digests are encrypted with a
 * random key of the database, which leaves it only in a copy of the whole file. Equal digests stay equal, for look-ups.
 *
 * AES-256-ECB on both halves: it reveals only which halves are equal, and no two halves of different SHA-256 digests are. The ciphers are
 * set up once, as that takes longer than one use, a microsecond.
 */
export class DigestSeal {
  /** Bytes of a block, of which a digest has two. */
  static readonly BLOCK_BYTES = 16;

  #ciphers: { readonly seal: Cipher; readonly open: Decipher } | null = null;

  /** @param readKey 32 bytes; called once, at the first use: a file that is checked may have no key yet */
  constructor(private readonly readKey: () => Buffer) {}

  /** The seal of a database whose schema is up to date. */
  static of(sqlite: Database.Database): DigestSeal {
    return new DigestSeal(() => sqlite.prepare<[], Buffer>("select key from digest_keys").pluck().get() as Buffer);
  }

  /** 32 bytes. */
  get key(): Buffer {
    return this.readKey();
  }

  seal(digest: Digest): SealedDigest {
    const bytes = Buffer.from(digest, "base64url");
    if (bytes.length !== DIGEST_BYTES) throw new Error(`not a digest: ${bytes.length} bytes`);
    return this.#keyed().seal.update(bytes).toString("base64url") as SealedDigest;
  }

  /** A keyed hash of a name, 32 bytes: it names nobody, and no tenant can choose a name whose parts are another's. */
  hashOf(name: string): Buffer {
    return Buffer.from(this.seal(digestOf(name)), "base64url");
  }

  /** The same for whole blocks, each on its own: a digest's first one becomes its sealed digest's first. */
  sealBlocks(blocks: Buffer): Buffer {
    return this.#keyed().seal.update(blocks);
  }

  open(sealed: SealedDigest): Digest {
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length !== DIGEST_BYTES) throw new Error(`damaged digest: ${bytes.length} bytes`);
    return this.#keyed().open.update(bytes).toString("base64url") as Digest;
  }

  /** The digests of many in their order, by one use of the cipher. */
  openAll(sealed: readonly SealedDigest[]): Digest[] {
    // With one byte more, or the last one would be cut where it is too long.
    const bytes = Buffer.allocUnsafe(sealed.length * DIGEST_BYTES + 1);
    sealed.forEach((one, at) => {
      const written = bytes.write(one, at * DIGEST_BYTES, "base64url");
      if (written !== DIGEST_BYTES) throw new Error(`damaged digest: ${written} bytes`);
    });
    const opened = this.#keyed().open.update(bytes.subarray(0, -1));
    return sealed.map((_, at) => opened.toString("base64url", at * DIGEST_BYTES, (at + 1) * DIGEST_BYTES) as Digest);
  }

  #keyed() {
    if (this.#ciphers === null) {
      const key = this.readKey();
      this.#ciphers = {
        // Without padding `update` returns every whole block at once, and `final` is never needed.
        seal: createCipheriv("aes-256-ecb", key, null).setAutoPadding(false),
        open: createDecipheriv("aes-256-ecb", key, null).setAutoPadding(false),
      };
    }
    return this.#ciphers;
  }
}

const CONVERSATION_BYTES = 6;

/** The number of a conversation in its records' keys: 48 bits of a keyed hash, so that two conversations of one scope hardly share one. */
export function conversationNumber(id: ConversationId, digests: DigestSeal): number {
  return keyedBlocks([id], digests).readUIntBE(0, CONVERSATION_BYTES);
}

/** The hash of a memory's id by which walks find scopes: 32 bits, keyed. Different memories may share one. */
export function memoryHash(id: MemoryId, digests: DigestSeal): number {
  return keyedBlocks([id], digests).readUInt32BE(0);
}

/** The same of several, in their order. */
export function memoryHashes(ids: Iterable<MemoryId>, digests: DigestSeal): number[] {
  const blocks = keyedBlocks([...ids], digests);
  return Array.from({ length: blocks.length / DigestSeal.BLOCK_BYTES }, (_, at) =>
    blocks.readUInt32BE(at * DigestSeal.BLOCK_BYTES),
  );
}

/**
 * What a user's deletions are counted under: 16 bits of a keyed hash. Collisions are too rare to cost anything, and frequent enough that a
 * bucket identifies nobody. See `DeletionCounts`.
 */
export function bucketOf({ tenant, userId }: Pick<Scope, "tenant" | "userId">, digests: DigestSeal): number {
  return digests.hashOf(JSON.stringify([tenant, userId])).readUInt16BE(0);
}

/** The first block of each name's sealed digest. All are sealed at once: a new user's first compose names every memory. */
function keyedBlocks(names: readonly string[], digests: DigestSeal): Buffer {
  const blocks = Buffer.allocUnsafe(names.length * DigestSeal.BLOCK_BYTES);
  for (const [at, name] of names.entries()) {
    // A digest as a string of bytes takes a third of the time of one as a buffer.
    blocks.write(hash("sha256", name, "binary"), at * DigestSeal.BLOCK_BYTES, DigestSeal.BLOCK_BYTES, "latin1");
  }
  return digests.sealBlocks(blocks);
}
