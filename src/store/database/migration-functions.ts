import type Database from "better-sqlite3";
import { type ChatMessage, type Digest, digestOf, meaningDigest, messageDigest } from "../../core/index.js";
import { DigestSeal } from "./digest-seal.js";

const DIGEST = /^[\w-]{43}$/;

/** Gives a connection what the steps of `migrations` call that SQL itself cannot do. */
export function provideMigrationFunctions(sqlite: Database.Database): void {
  let key: Buffer | undefined;
  const seal = new DigestSeal(() => key as Buffer);
  sqlite.function("sealed", { deterministic: true }, (digest: unknown, digestKey: unknown) => {
    key ??= digestKey as Buffer;
    if (digest === null) return null;
    const text = String(digest);
    // One damaged row is no reason to open nothing: it is found by nobody, as before.
    return seal.seal(DIGEST.test(text) ? (text as Digest) : digestOf(text));
  });
  sqlite.function("message_meaning", { deterministic: true }, (message: unknown) => {
    const read = JSON.parse(message as string) as ChatMessage;
    const exact = messageDigest(read);
    const meant = meaningDigest(read, exact);
    return meant === exact ? null : meant;
  });
  sqlite.function("message_digest", { deterministic: true }, (message: unknown) =>
    messageDigest(JSON.parse(message as string) as ChatMessage),
  );
}
