import { z } from "zod";
import type { UserId } from "../core/index.js";
import { sharedUserName } from "../memory/mem0-identity.js";
import { NotFoundError } from "../service/base/errors.js";
import { DEFAULT_TENANT, newApiKey, newSecret } from "../service/base/tenant.js";
import { readOptions } from "../service/fields/fields.js";
import { StoredApiKeys } from "../store/keys.js";
import { openBesideService } from "./assemble.js";
import { withDatabase } from "./data-directory.js";
import type { Environment, Invocation } from "./invocation.js";
import type { Settings } from "./setting-list.js";
import { readSettings } from "./settings.js";

/** Restricted characters: it becomes part of names at Mem0 and of stored rows. */
const tenant = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit");
const label = z
  .string()
  .max(200, "must have at most 200 characters")
  .regex(/^\P{Cc}*$/u, "must have no control characters");
const newKey = z.object({ tenant, label: label.optional() });

/** Creates a tenant's key and prints it, the only time. Notes what tenants other than the default cannot see. Throws `InvalidRequestError`. */
export async function addKey(
  options: { tenant: string; label?: string },
  { env, print, note }: Pick<Invocation, "env" | "print" | "note">,
): Promise<void> {
  const named = readOptions(newKey, options);
  await withKeys(readSettings(env), async (keys) => {
    const { id, key, secretDigest } = newApiKey();
    const { tenant, label = null } = named;
    await keys.add({ id, tenant, secretDigest, label, createdAt: Date.now() }, newSecret());
    print(key);
    if (tenant !== DEFAULT_TENANT.name) for (const line of effectOf(tenant)) note(line);
  });
}

function effectOf(tenant: string): readonly string[] {
  const scope = { tenant, userId: "ana" as UserId };
  return [
    `the tenant ${tenant} has users of its own: in a Mem0 that is not memprefix's own, ana is searched for as ${sharedUserName("mem0", scope)}`,
    "memories that are there under plain user ids, and what the tenant default has, are not found with this key",
    "for a key that finds them: memprefix keys add, without --tenant",
  ];
}

/** Prints every key, oldest first, without its secret. */
export async function listKeys({ env, print }: Pick<Invocation, "env" | "print">): Promise<void> {
  await withKeys(withDatabase(readSettings(env)), async (keys) => {
    for (const { id, tenant, createdAt, revokedAt, label } of await keys.list()) {
      const state = revokedAt === null ? "valid" : `revoked ${timeOf(revokedAt)}`;
      print([id, tenant, `made ${timeOf(createdAt)}`, state, ...(label === null ? [] : [label])].join("  "));
    }
  });
}

/** Revokes a key: a running service rejects it from the next request on. Throws `NotFoundError`. */
export async function revokeKey(id: string, env: Environment): Promise<void> {
  await withKeys(withDatabase(readSettings(env)), async (keys) => {
    if (!(await keys.revoke(id, Date.now()))) throw new NotFoundError("id", "no such key, or it is revoked already");
  });
}

async function withKeys(settings: Settings, work: (keys: StoredApiKeys) => Promise<void>): Promise<void> {
  const database = await openBesideService(settings);
  await work(new StoredApiKeys(database)).finally(() => database.close());
}

function timeOf(at: number): string {
  return new Date(at).toISOString();
}
