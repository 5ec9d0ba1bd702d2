import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { authenticate, newApiKey } from "../../../src/service/base/tenant.js";
import { type DatabaseConnection, openDatabase } from "../../../src/store/database/open-database.js";
import { StoredApiKeys } from "../../../src/store/sqlite/api-keys.js";

describe("stored API keys", () => {
  let database: DatabaseConnection;
  let keys: StoredApiKeys;
  beforeEach(() => {
    database = openDatabase(":memory:");
    keys = new StoredApiKeys(database);
  });
  afterEach(() => database.sqlite.close());

  const add = (tenant: string, cacheSecret: string, createdAt = 1) => {
    const { id, key, secretDigest } = newApiKey();
    keys.add({ id, tenant, secretDigest, label: null, createdAt }, cacheSecret);
    return { id, key };
  };

  it("are none at first", () => {
    expect([keys.any(), keys.list(), keys.find("0")]).toEqual([false, [], null]);
  });

  it("let in who has one, as their tenant, with what its first key drew for its salts", async () => {
    const [first, second, other] = [add("acme", "drawn first"), add("acme", "drawn later"), add("other", "another")];
    const acme = { name: "acme", cacheSecret: "drawn first" };
    expect(authenticate(first.key, keys)).toEqual({ keyId: first.id, tenant: acme });
    expect(authenticate(second.key, keys)).toEqual({ keyId: second.id, tenant: acme });
    expect((await authenticate(other.key, keys))?.tenant).toEqual({ name: "other", cacheSecret: "another" });
  });

  it("are never the same", () => {
    const made = Array.from({ length: 1_000 }, newApiKey);
    expect(new Set(made.map(({ key }) => key.slice(-43))).size).toBe(1_000);
    expect(new Set(made.map(({ id }) => id)).size).toBe(1_000);
  });

  it("stay when they are revoked, and let nobody in", () => {
    const { id, key } = add("acme", "drawn");
    expect(keys.revoke(id, 2)).toBe(true);
    expect(authenticate(key, keys)).toBeNull();
    expect(keys.any()).toBe(true);
    expect(keys.list()).toMatchObject([{ id, tenant: "acme", revokedAt: 2 }]);
    expect(keys.revoke(id, 3)).toBe(false);
    expect(keys.revoke("0", 3)).toBe(false);
    expect(keys.list()).toMatchObject([{ revokedAt: 2 }]);
  });

  it("let nobody in where what is kept of one is damaged", () => {
    const { id, key } = add("acme", "drawn");
    database.sqlite.prepare("update api_keys set secret_digest = 'AAAA' where id = ?").run(id);
    expect(authenticate(key, keys)).toBeNull();
  });

  it("are listed oldest first", () => {
    const ids = [add("a", "s", 30), add("b", "s", 10), add("c", "s", 20)].map(({ id }) => id);
    expect(keys.list().map(({ id }) => id)).toEqual([ids[1], ids[2], ids[0]]);
  });
});
