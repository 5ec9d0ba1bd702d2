import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Tenant } from "./tenant.js";

/*
 * An API key is `mst_<id>_<secret>`: the id finds it, the secret proves it. The secret is 256 random bits, so one round of SHA-256 keeps
 * it: slow hashes are for secrets that can be guessed.
 */

const ID_BYTES = 6;
const SECRET_BYTES = 32;
const FORM = /^mst_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/;

/** What is kept of a key. */
export interface KeptApiKey {
  readonly tenant: string;
  /** SHA-256 of the secret, base64url. */
  readonly secretDigest: string;
  /** Milliseconds since the epoch; null while it holds. */
  readonly revokedAt: number | null;
  readonly cacheSecret: string;
}

/** Where keys are kept. What another process changes there holds at once. */
export interface ApiKeys {
  /** The key that the service was started with; absent for none. */
  readonly configured?: ConfiguredApiKey | undefined;
  /** Null where there is none of this id. */
  find(id: string): KeptApiKey | null;
  /** Whether there ever was a key. */
  any(): boolean;
}

/** A key of any form that is configured rather than kept: it holds for as long as the process that was given it. */
export interface ConfiguredApiKey {
  /** SHA-256 of the whole key. */
  readonly digest: Buffer;
  readonly tenant: Tenant;
}

/** What a configured key is called where others have their ids; none of those is this. */
export const CONFIGURED_KEY_ID = "configured";

/** These keys, and one that is configured. Its tenant gets in even while the others cannot be read. */
export function withConfiguredKey(keys: ApiKeys, key: string, tenant: Tenant): ApiKeys {
  return { configured: { digest: digest(key), tenant }, find: (id) => keys.find(id), any: () => true };
}

/** A key that was just made; nobody can tell it again. */
export interface NewApiKey {
  readonly id: string;
  readonly key: string;
  readonly secretDigest: string;
}

/** Makes a key. */
export function newApiKey(): NewApiKey {
  const id = randomBytes(ID_BYTES).toString("hex");
  const secret = newSecret();
  return { id, key: `mst_${id}_${secret}`, secretDigest: digest(secret).toString("base64url") };
}

/** 256 random bits, base64url. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

/** The beginning of a key, as it may stand in a text. */
const IN_A_TEXT = /mst_[0-9a-f]{12}_/;

/** Whether something in a text has a key's form, whosever it is. */
export function holdsApiKey(text: string): boolean {
  return IN_A_TEXT.test(text);
}

/** A caller with a key that holds. */
export interface Admitted {
  readonly keyId: string;
  readonly tenant: Tenant;
}

/** Stands in for a digest where there is no key, so that the same work is done. */
const NO_DIGEST = Buffer.alloc(32);

/** Who holds this key; null where nobody does, or does no more. How long it takes says nothing about how much of a secret was right. */
export function admit(key: string, keys: ApiKeys): Admitted | null {
  const { configured } = keys;
  if (configured !== undefined && timingSafeEqual(digest(key), configured.digest))
    return { keyId: CONFIGURED_KEY_ID, tenant: configured.tenant };
  const [, id, secret] = FORM.exec(key) ?? [];
  if (id === undefined || secret === undefined) return null;
  const kept = keys.find(id);
  const expected = kept === null ? NO_DIGEST : Buffer.from(kept.secretDigest, "base64url");
  const given = digest(secret);
  const isRight = expected.length === given.length && timingSafeEqual(given, expected);
  if (kept === null || !isRight || kept.revokedAt !== null) return null;
  return { keyId: id, tenant: { name: kept.tenant, cacheSecret: kept.cacheSecret } };
}

function digest(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}
