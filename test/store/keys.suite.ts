import { beforeEach, describe, expect, it } from "vitest";
import { authenticate, newApiKey } from "../../src/service/base/tenant.js";
import { StoredApiKeys } from "../../src/store/keys.js";
import { type OpenDatabase, SuiteStore } from "./suite-database.js";

export function describeKeys(open: OpenDatabase): void {
  describe("API keys", () => {
    const suite = new SuiteStore(open);
    let keys: StoredApiKeys;
    beforeEach(() => {
      keys = new StoredApiKeys(suite.database);
    });

    const add = async (tenant: string, cacheSecret: string, createdAt = 1) => {
      const { id, key, secretDigest } = newApiKey();
      await keys.add({ id, tenant, secretDigest, label: null, createdAt }, cacheSecret);
      return { id, key };
    };

    it("are none at first", async () => {
      expect(await Promise.all([keys.any(), keys.list(), keys.find("0")])).toEqual([false, [], null]);
    });

    it("let in who has one, as their tenant, with what its first key drew for its salts", async () => {
      const first = await add("acme", "drawn first");
      const second = await add("acme", "drawn later");
      const other = await add("other", "another");
      const acme = { name: "acme", cacheSecret: "drawn first" };
      expect(await authenticate(first.key, keys)).toEqual({ keyId: first.id, tenant: acme });
      expect(await authenticate(second.key, keys)).toEqual({ keyId: second.id, tenant: acme });
      expect((await authenticate(other.key, keys))?.tenant).toEqual({ name: "other", cacheSecret: "another" });
    });

    it("stay when they are revoked, and let nobody in", async () => {
      const { id, key } = await add("acme", "drawn");
      expect(await keys.revoke(id, 2)).toBe(true);
      expect(await authenticate(key, keys)).toBeNull();
      expect(await keys.any()).toBe(true);
      expect(await keys.list()).toMatchObject([{ id, tenant: "acme", revokedAt: 2 }]);
      expect(await keys.revoke(id, 3)).toBe(false);
      expect(await keys.revoke("0", 3)).toBe(false);
      expect(await keys.list()).toMatchObject([{ revokedAt: 2 }]);
    });

    it("let nobody in where what is kept of one is damaged", async () => {
      const { id, key } = await add("acme", "drawn");
      await suite.database.write([{ text: "update keys set secret_digest = 'AAAA' where id = $1", values: [id] }]);
      expect(await authenticate(key, keys)).toBeNull();
    });

    it("are listed oldest first", async () => {
      const ids = [await add("a", "s", 30), await add("b", "s", 10), await add("c", "s", 20)].map(({ id }) => id);
      expect((await keys.list()).map(({ id }) => id)).toEqual([ids[1], ids[2], ids[0]]);
    });

    it("are refused under an id that is taken", async () => {
      const { id, key } = await add("acme", "drawn");
      await expect(
        keys.add({ id, tenant: "other", secretDigest: "AAAA", label: null, createdAt: 2 }, "s"),
      ).rejects.toThrow();
      expect(await authenticate(key, keys)).toMatchObject({ keyId: id });
    });

    it("are known everywhere when a call that changes them returns, where requests share what was read", async () => {
      expect(await keys.any()).toBe(false);
      const { id, key } = await add("acme", "drawn");
      expect(await authenticate(key, keys)).not.toBeNull();
      await keys.revoke(id, 2);
      expect(await authenticate(key, keys)).toBeNull();
    });
  });
}
