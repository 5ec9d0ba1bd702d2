import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newApiKey } from "../../../src/service/base/tenant.js";
import { StoreUnavailableError } from "../../../src/store/api/store.js";
import { type KeyDatabase, StoredApiKeys } from "../../../src/store/database/api-keys.js";
import { type OpenPostgres, openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";

const server = await testServer();

describe.skipIf(server.url === null)("API keys in PostgreSQL", () => {
  let one: OpenPostgres;
  let two: OpenPostgres;
  beforeEach(async () => {
    const url = await newDatabase(server.url ?? "");
    [one, two] = await Promise.all([openPostgres(url), openPostgres(url)]);
  });
  afterEach(async () => {
    await Promise.all([one.journal.close(), two.journal.close()]);
  });

  const add = async (tenant: string, cacheSecret: string, createdAt = 1) => {
    const { id, secretDigest } = newApiKey();
    await one.keys.add({ id, tenant, secretDigest, label: null, createdAt }, cacheSecret);
    return { id, secretDigest };
  };

  it("are none at first", async () => {
    expect(await one.keys.any()).toBe(false);
    expect(await one.keys.list()).toEqual([]);
    expect(await one.keys.find("0")).toBeNull();
  });

  it("are every instance's at once, with what the tenant's first key drew for its salts", async () => {
    const first = await add("acme", "drawn first");
    const second = await add("acme", "drawn later");
    const other = await add("other", "another");
    const found = (secretDigest: string, tenant: string, cacheSecret: string) => ({
      tenant,
      secretDigest,
      revokedAt: null,
      cacheSecret,
    });
    expect(await Promise.all([first, second, other].map(({ id }) => two.keys.find(id)))).toEqual([
      found(first.secretDigest, "acme", "drawn first"),
      found(second.secretDigest, "acme", "drawn first"),
      found(other.secretDigest, "other", "another"),
    ]);
  });

  it("that were revoked in one instance hold in none, though questions were under way", async () => {
    const { id } = await add("acme", "drawn");
    // What is asked before says what it will; what is asked after the revocation knows of it.
    const before = Array.from({ length: 20 }, () => two.keys.find(id));
    expect(await one.keys.revoke(id, 2)).toBe(true);
    const after = await Promise.all(Array.from({ length: 20 }, () => two.keys.find(id)));
    expect(after.map((key) => key?.revokedAt)).toEqual(Array(20).fill(2));
    await Promise.all(before);
    expect(await two.keys.any()).toBe(true);
    expect(await one.keys.revoke(id, 3)).toBe(false);
    expect(await one.keys.revoke("0", 3)).toBe(false);
    expect(await two.keys.list()).toMatchObject([{ id, tenant: "acme", revokedAt: 2 }]);
  });

  it("are listed oldest first, and no id is taken twice", async () => {
    const ids = [await add("a", "s", 30), await add("b", "s", 10), await add("c", "s", 20)].map(({ id }) => id);
    expect((await two.keys.list()).map(({ id }) => id)).toEqual([ids[1], ids[2], ids[0]]);
    const taken = { id: ids[0] ?? "", tenant: "d", secretDigest: "x", label: null, createdAt: 1 };
    await expect(two.keys.add(taken, "s")).rejects.toThrow();
    // Nothing of what failed is stored.
    expect(await one.keys.cacheSecretOf("d", "drawn now", 5)).toBe("drawn now");
  });

  it("share a tenant's secret, whichever instance drew it first", async () => {
    const secrets = await Promise.all([
      one.keys.cacheSecretOf("acme", "ours", 1),
      two.keys.cacheSecretOf("acme", "theirs", 1),
    ]);
    expect(new Set(secrets).size).toBe(1);
  });
});

describe("questions for API keys", () => {
  it("are asked once for all requests of some milliseconds, and again where one failed", async () => {
    let asked = 0;
    let isAway = false;
    const read = async () => {
      asked++;
      if (isAway) throw new StoreUnavailableError("unreachable");
      return asked > 1 ? [{ id: "a" }] : [];
    };
    const keys = new StoredApiKeys({ sharedMs: 50, read, change: read } as KeyDatabase);
    for (let nth = 0; nth < 20; nth++) expect(await keys.any()).toBe(false);
    expect(asked).toBe(1);
    await pause(60);
    expect(await keys.any()).toBe(true);
    await pause(60);
    isAway = true;
    await expect(keys.any()).rejects.toThrow(StoreUnavailableError);
    isAway = false;
    expect(await keys.any()).toBe(true);
    expect(asked).toBe(4);
  });
});
