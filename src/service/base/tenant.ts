import { hash, randomBytes, timingSafeEqual } from "node:crypto";

/** The owner of state: callers read and change their tenant's only. */
export interface Tenant {
  readonly name: string;
  /** Secret that the tenant's cache salts are derived from. A name could be guessed from a salt. */
  readonly cacheSecret: string;
}

/** The tenant of an installation without API keys. Its salts are not secret. */
export const DEFAULT_TENANT: Tenant = { name: "default", cacheSecret: "default" };

/* An API key is `mst_<id>_<secret>`: the id finds it, the secret proves it. One SHA-256 is enough for a secret of 256 random bits. */

const ID_BYTES = 6;
const SECRET_BYTES = 32;
const FORM = /^mst_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/;

export interface KeptApiKey {
  readonly tenant: string;
  /** SHA-256 of the secret, base64url. */
  readonly secretDigest: string;
  readonly revokedAt: number | null;
  readonly cacheSecret: string;
}

export interface ApiKeys {
  /** The key that the service was started with. */
  readonly configured?: ConfiguredApiKey | undefined;
  find(id: string): Promise<KeptApiKey | null>;
  /** Whether any key was ever created. */
  any(): Promise<boolean>;
}

/** A key of any form that is configured, not stored. Valid until the process ends. */
export interface ConfiguredApiKey {
  /** SHA-256 of the whole key. */
  readonly digest: Buffer;
  readonly tenant: Tenant;
}

/** A configured key's id; no stored key has it. */
export const CONFIGURED_KEY_ID = "configured";

/**
 * Adds a configured key of the default tenant, whose keys then all have its salts. It gives access even while the stored keys cannot be read.
 */
export function withConfiguredKey(keys: ApiKeys, key: string): ApiKeys {
  const tenant = { name: DEFAULT_TENANT.name, cacheSecret: digest(`cache ${key}`).toString("base64url") };
  const find = async (id: string) => {
    const kept = await keys.find(id);
    return kept?.tenant === tenant.name ? { ...kept, cacheSecret: tenant.cacheSecret } : kept;
  };
  return { configured: { digest: digest(key), tenant }, find, any: async () => true };
}

/** A new key. It is shown once: only its digest is stored. */
export function newApiKey() {
  const id = randomBytes(ID_BYTES).toString("hex");
  const secret = newSecret();
  return { id, key: `mst_${id}_${secret}`, secretDigest: digest(secret).toString("base64url") };
}

export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

const IN_A_TEXT = /mst_[0-9a-f]{12}_/;

/** Whether a text contains anything in a key's form, valid or not. */
export function holdsApiKey(text: string): boolean {
  return IN_A_TEXT.test(text);
}

export interface AuthenticatedKey {
  readonly keyId: string;
  readonly tenant: Tenant;
}

/** Compared in place of an unknown key's digest, so that timing reveals nothing. */
const NO_DIGEST = Buffer.alloc(32);

/** The key's tenant; null for an unknown, wrong or revoked key. Compares in constant time. */
export async function authenticate(key: string, keys: ApiKeys): Promise<AuthenticatedKey | null> {
  const { configured } = keys;
  if (configured !== undefined && timingSafeEqual(digest(key), configured.digest))
    return { keyId: CONFIGURED_KEY_ID, tenant: configured.tenant };
  const [, id, secret] = FORM.exec(key) ?? [];
  if (id === undefined || secret === undefined) return null;
  const kept = await keys.find(id);
  const expected = kept === null ? NO_DIGEST : Buffer.from(kept.secretDigest, "base64url");
  const given = digest(secret);
  const isRight = expected.length === given.length && timingSafeEqual(given, expected);
  if (kept === null || !isRight || kept.revokedAt !== null) return null;
  return { keyId: id, tenant: { name: kept.tenant, cacheSecret: kept.cacheSecret } };
}

function digest(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}
