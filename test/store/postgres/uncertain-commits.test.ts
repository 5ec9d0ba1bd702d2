import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { MemoryId, UserId } from "../../../src/core/index.js";
import { StaleScopeError } from "../../../src/store/api/store.js";
import { type OpenPostgres, openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { type CuttingProxy, startCuttingProxy } from "../../postgres/cutting-proxy.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { composed, scopeNamed, unitOf } from "../journal/journal-database.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)("a commit whose connection is lost at its end", () => {
  let proxy: CuttingProxy;
  /** Behind the proxy. */
  let cut: OpenPostgres;
  let other: OpenPostgres;
  beforeEach(async () => {
    const url = await newDatabase(server.url ?? "");
    proxy = await startCuttingProxy(url);
    cut = await openPostgres(proxy.url);
    other = await openPostgres(url);
  });
  afterEach(async () => {
    await Promise.all([cut.journal.close(), other.journal.close()]);
    await proxy.stop();
  });

  const ana = scopeNamed("ana");
  const bob = scopeNamed("bob");
  const requestsOf = async (scopeId: number | undefined) =>
    (await other.journal.list(scopeId ?? 0, { most: 100 })).map(({ requestId }) => requestId);

  it.each(["before the server hears of it", "before its client hears of it"] as const)(
    "%s, is stored once, with the others of its group",
    async (where) => {
      const first = await cut.journal.write(unitOf(ana, null, [composed(1)]));
      proxy.cut(where);
      const [second, created] = await Promise.all([
        cut.journal.write(unitOf(ana, first.version, [composed(2)])),
        cut.journal.write(unitOf(bob, null, [composed(1, { requestId: null }), composed(2)])),
      ]);
      expect(proxy.count()).toBe(1);
      expect(second.version).toEqual(await other.journal.versionOf(ana));
      expect(created.version).toEqual(await other.journal.versionOf(bob));
      expect([second.version?.commits, created.version?.commits]).toEqual([2, 2]);
      expect(await requestsOf(second.version?.scopeId)).toEqual(["r1", "r2"]);
      expect(await requestsOf(created.version?.scopeId)).toEqual([null, "r2"]);
    },
  );

  it("is stored once where that happens again and again", async () => {
    let { version } = await cut.journal.write(unitOf(ana, null, [composed(1)]));
    for (const where of ["before its client hears of it", "before the server hears of it"] as const) {
      proxy.cut(where, 3);
      const { turn } = composed((version?.commits ?? 0) + 1);
      ({ version } = await cut.journal.write(unitOf(ana, version, [composed(turn)])));
    }
    expect(proxy.count()).toBe(4);
    expect(await requestsOf(version?.scopeId)).toEqual(["r1", "r2", "r3"]);
  });

  it("is stale where it was not stored and another instance was first", async () => {
    const { version } = await cut.journal.write(unitOf(ana, null, [composed(1)]));
    proxy.cut("before the server hears of it", Number.POSITIVE_INFINITY);
    const losing = cut.journal.write(unitOf(ana, version, [composed(2, { requestId: "mine" })]));
    const verdict = expect(losing).rejects.toBeInstanceOf(StaleScopeError);
    // Waits for the locks that a cut transaction holds until the server notices.
    await other.journal.write(unitOf(ana, version, [composed(2, { requestId: "theirs" })]));
    proxy.cut("nothing");
    await verdict;
    expect(await requestsOf(version?.scopeId)).toEqual(["r1", "theirs"]);
  });

  it("ends a scope, and rewrites, all the same", async () => {
    const { version } = await cut.journal.write(unitOf(ana, null, [composed(1)]));
    const [key] = await cut.journal.list(version?.scopeId ?? 0, { most: 1 });
    proxy.cut("before its client hears of it");
    const rewritten = await cut.journal.write({
      ...unitOf(ana, version, []),
      changes: [{ kind: "rewrite", seq: key?.seq ?? 0, to: { said: null } }],
    });
    expect((await other.journal.read([key?.seq ?? 0]))[0]?.said).toBeNull();
    proxy.cut("before its client hears of it");
    const ended = await cut.journal.write({ ...unitOf(ana, rewritten.version, []), changes: [{ kind: "end" }] });
    expect(ended).toEqual({ version: null });
    expect(await other.journal.versionOf(ana)).toBeNull();
    expect(proxy.count()).toBe(2);
  });

  it("counts a deletion once", async () => {
    const { version } = await cut.journal.write(unitOf(ana, null, [composed(1)]));
    proxy.cut("before its client hears of it");
    const memoryId = "m" as MemoryId;
    const forgotten = composed(1, { kind: "forgotten", turns: 0, requestId: null });
    await cut.journal.write(
      unitOf(ana, version, [forgotten], {
        deletion: { memoryId, isInSource: false },
        changes: [{ kind: "forget", memoryId }],
      }),
    );
    expect(await other.journal.deletionsOf("default", "ana" as UserId)).toEqual({ users: 0, memories: 1 });
  });

  it.each(["before the server hears of it", "before its client hears of it"] as const)(
    "deletes a user all the same, and says of how many scopes, where it is lost %s",
    async (where) => {
      await cut.journal.write(unitOf(ana, null, [composed(1)]));
      await cut.journal.write(unitOf(scopeNamed("ana", "coach"), null, [composed(1)]));
      await cut.journal.write(unitOf(bob, null, [composed(1)]));
      proxy.cut(where);
      expect(await cut.journal.deleteUser("default", "ana" as UserId, true)).toBe(2);
      expect(proxy.count()).toBe(1);
      expect(await other.journal.scopesOf("default", "ana" as UserId)).toEqual([]);
      expect(await other.journal.versionOf(bob)).not.toBeNull();
      expect((await other.journal.deletionsOf("default", "ana" as UserId)).users).toBeGreaterThan(0);
      expect(await other.journal.pendingInSource("default", "ana" as UserId)).toEqual({
        everything: true,
        memoryIds: [],
      });
    },
  );
});
