import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AgentId,
  digestOf,
  type MemoryId,
  type RequestId,
  type Scope,
  type UserId,
} from "../../../src/core/index.js";
import { StaleScopeError, type StoredVersion } from "../../../src/store/api/store.js";
import { DigestSeal } from "../../../src/store/database/digest-seal.js";
import {
  CONVERSATION_PAGE,
  type JournalChange,
  type JournalDatabase,
  type JournalUnit,
  type NewRecord,
  type RecordKey,
  type ResponseRow,
  type RewrittenRecord,
  WITH_TURNS,
} from "../../../src/store/journal/journal-database.js";

/** Two handles of one database, as two processes have them, and what damages it. */
export interface OpenedJournal {
  readonly one: JournalDatabase;
  readonly two: JournalDatabase;
  /** Changes stored columns of a record, past its checksum; `snapshot`: of the scope's snapshot. */
  damage(what: { readonly seq: number } | { readonly snapshotOf: number }): Promise<void> | void;
  /** Closes both, and removes the database. */
  end(): Promise<void>;
}

const NONE = { users: 0, memories: 0 };

export const scopeNamed = (userId: string, agentId: string | null = null, tenant = "default"): Scope => ({
  tenant,
  userId: userId as UserId,
  agentId: agentId as AgentId | null,
});

/** A record that composes turn `turn`; anything of it may be another. */
export function composed(turn: number, more: Partial<NewRecord> = {}): NewRecord {
  return {
    kind: "composed",
    turn,
    turns: 1,
    conversation: 7,
    requestId: `r${turn}`,
    leaf: turn,
    at: 1_000 + turn,
    changes: JSON.stringify([1, `block of turn ${turn}`]),
    said: JSON.stringify([1, `question ${turn}`]),
    ...more,
  };
}

/** A unit that appends records. */
export function unitOf(
  scope: Scope,
  version: StoredVersion | null,
  records: readonly NewRecord[],
  more: Partial<Omit<JournalUnit, "changes">> & { readonly changes?: readonly JournalChange[] } = {},
): JournalUnit {
  const { changes = [], ...rest } = more;
  return { scope, version, deletions: null, at: 5, ...rest, changes: [{ kind: "append", records }, ...changes] };
}

/** All of a scope's shared rows. */
const allShared = async (database: JournalDatabase, scopeId: number) =>
  database.shared(scopeId, await database.sharedDigests(scopeId));

const noRecord = (kind: NewRecord["kind"], turn: number): NewRecord =>
  composed(turn, { kind, turns: 0, conversation: null, requestId: null, leaf: null, changes: null, said: null });

/** What every `JournalDatabase` does. `open` gives two handles of a new, empty database. */
export function describeJournal(name: string, open: () => Promise<OpenedJournal>): void {
  describe(`a journal in ${name}`, () => {
    let opened: OpenedJournal;
    let one: JournalDatabase;
    let two: JournalDatabase;
    beforeEach(async () => {
      opened = await open();
      ({ one, two } = opened);
    });
    afterEach(() => opened.end());

    const ana = scopeNamed("ana");
    const bob = scopeNamed("bob");
    const sealed = (text: string) => new DigestSeal(() => one.sealKey).seal(digestOf(text));

    /** Appends `count` composed records, one commit each; gives the scope's version. */
    async function fill(scope: Scope, count: number, from = 1): Promise<StoredVersion> {
      let { version } = await one.load(scope);
      for (let turn = from; turn < from + count; turn++)
        ({ version } = await one.write(unitOf(scope, version, [composed(turn)])));
      if (version === null) throw new Error("nothing was written");
      return version;
    }
    const keys = async (scopeId: number) => one.list(scopeId, { most: 1_000 });
    const only = <T>(all: readonly T[]): T => {
      expect(all).toHaveLength(1);
      return all[0] as T;
    };
    const response = (requestId: string, id: string): ResponseRow => ({ id, requestId: requestId as RequestId });

    describe("records", () => {
      it("are read as they were written, by either process, once the write resolved", async () => {
        const record = composed(1, { conversation: 2 ** 48 - 1, at: 1_795_000_000_000, said: '["ü","\\u0000","😀"]' });
        const { version } = await one.write(unitOf(ana, null, [record]));
        expect(version).toEqual({ scopeId: expect.any(Number), commits: 1, sum: expect.any(Number) });
        const { scopeId } = version as StoredVersion;
        for (const handle of [one, two]) {
          const { changes, said, ...key } = record;
          const listed = only(await handle.list(scopeId, { most: 10 }));
          expect(listed).toEqual({ ...key, seq: expect.any(Number), scopeId, n: 1 });
          expect(await handle.read([listed.seq])).toEqual([{ ...listed, changes, said }]);
          expect(await handle.versionOf(ana)).toEqual(version);
        }
      });

      it("are numbered from 1 without gaps, and their seq grows over all scopes", async () => {
        const first = await one.write(unitOf(ana, null, [composed(1), composed(2)]));
        await one.write(unitOf(bob, null, [composed(1)]));
        const second = await one.write(unitOf(ana, first.version, [composed(3)]));
        expect(second.version?.commits).toBe(3);
        const ofAna = await keys(second.version?.scopeId ?? 0);
        expect(ofAna.map(({ n }) => n)).toEqual([1, 2, 3]);
        const seqs = ofAna.map(({ seq }) => seq);
        expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
        const bobs = only(await keys((await one.versionOf(bob))?.scopeId ?? 0));
        expect(bobs.seq).toBeGreaterThan(seqs[1] ?? 0);
        expect(bobs.seq).toBeLessThan(seqs[2] ?? 0);
      });

      it("are listed by kind, conversation and number, from either end", async () => {
        const records = [
          composed(1),
          composed(2, { conversation: 8 }),
          composed(2, { kind: "reported", turns: 0, requestId: "r2", conversation: null }),
          composed(3),
          noRecord("changed", 3),
        ];
        const { version } = await one.write(unitOf(ana, null, records));
        const list = async (filter: Partial<Parameters<JournalDatabase["list"]>[1]>) =>
          (await two.list(version?.scopeId ?? 0, { most: 10, ...filter })).map(({ n }) => n);
        expect(await list({})).toEqual([1, 2, 3, 4, 5]);
        expect(await list({ kinds: ["reported", "changed"] })).toEqual([3, 5]);
        expect(await list({ kinds: [] })).toEqual([]);
        expect(await list({ conversation: 7 })).toEqual([1, 4]);
        expect(await list({ after: 1, before: 4 })).toEqual([2, 3]);
        expect(await list({ newestFirst: true, most: 2 })).toEqual([5, 4]);
        expect(await list({ newestFirst: true, most: 1, conversation: 7, before: 4 })).toEqual([1]);
      });

      it("are found by the turns that they have, also where others were removed", async () => {
        const records = [
          composed(3, { turns: 3 }),
          noRecord("changed", 3),
          composed(4),
          composed(4, { kind: "reported", turns: 0 }),
          composed(6, { turns: 2 }),
          composed(7),
        ];
        const { version } = await one.write(unitOf(ana, null, records));
        const scopeId = version?.scopeId ?? 0;
        const found = async (...turns: number[]) => (await one.withTurns(scopeId, turns)).map(({ n }) => n);
        expect(await found(1)).toEqual([1]);
        expect(await found(3)).toEqual([1]);
        expect(await found(6, 2, 4, 1)).toEqual([1, 3, 5]);
        expect(await found(0, 8)).toEqual([]);
        const gone = (await keys(scopeId)).filter(({ n }) => n === 1 || n === 3).map(({ seq }) => seq);
        await one.write(unitOf(ana, version, [noRecord("expired", 7)], { changes: [{ kind: "remove", seqs: gone }] }));
        expect(await found(1, 2, 3, 4, 5, 6, 7)).toEqual([5, 6]);
      });

      it("are found by request, in one scope or in all of a tenant", async () => {
        const agent = scopeNamed("ana", "agent");
        const other = scopeNamed("ana", null, "other");
        await fill(ana, 2);
        await fill(agent, 1);
        await fill(other, 1);
        const { version } = await one.write(
          unitOf(ana, await one.versionOf(ana), [composed(2, { kind: "reported", turns: 0, requestId: "r1" })]),
        );
        const scopeId = version?.scopeId ?? 0;
        const ofScope = await two.withRequests({ scopeId }, ["r1", "r9"]);
        expect(ofScope.map(({ kind, n }) => [kind, n])).toEqual([
          ["composed", 1],
          ["reported", 3],
        ]);
        const ofTenant = await two.withRequests({ tenant: "default" }, ["r1", "r2"]);
        const of = [...new Set(ofTenant.map((key) => key.scopeId))];
        expect(of).toEqual([...of].sort((a, b) => a - b));
        const named = await two.scopesById(of);
        const numbers = named.map((row) => [
          row.scope,
          ofTenant.filter((key) => key.scopeId === row.scopeId).map(({ n }) => n),
        ]);
        expect(numbers).toHaveLength(2);
        expect(numbers).toEqual(
          expect.arrayContaining([
            [ana, [1, 2, 3]],
            [agent, [1]],
          ]),
        );
      });

      it("are counted: requests, turns and conversations", async () => {
        const { version } = await one.write(
          unitOf(ana, null, [
            composed(2, { kind: "said", turns: 2, requestId: null }),
            composed(3, { conversation: 8 }),
            composed(4, { conversation: null }),
            composed(4, { kind: "reported", turns: 0, conversation: null }),
          ]),
        );
        expect(await two.counts(version?.scopeId ?? 0)).toEqual({ requests: 2, turns: 4, conversations: 2 });
        expect(await two.counts(999)).toEqual({ requests: 0, turns: 0, conversations: 0 });
      });

      it("are rewritten in their place, what is not named stays", async () => {
        const version = await fill(ana, 3);
        const second = (await keys(version.scopeId))[1] as RecordKey;
        const to: RewrittenRecord = {
          kind: "changed",
          said: null,
          requestId: null,
          turn: 1,
          turns: 0,
          conversation: null,
        };
        const rewrite: JournalChange = { kind: "rewrite", seq: second.seq, to };
        await one.write(unitOf(ana, version, [noRecord("withdrawn", 3)], { changes: [rewrite] }));
        const [before] = await two.read([second.seq]);
        expect(before).toEqual({ ...second, ...to, changes: composed(2).changes });
        expect(await two.withRequests({ scopeId: version.scopeId }, ["r2"])).toEqual([]);
        expect(await two.withTurns(version.scopeId, [2])).toEqual([]);
      });

      it("are removed, but for the last: its number is the version", async () => {
        const version = await fill(ana, 3);
        const [first, , third] = await keys(version.scopeId);
        const remove = (seq: number | undefined): JournalChange => ({ kind: "remove", seqs: [seq ?? 0] });
        await expect(one.write({ ...unitOf(ana, version, []), changes: [remove(third?.seq)] })).rejects.toThrow("last");
        expect(await one.versionOf(ana)).toEqual(version);
        const { version: next } = await one.write({ ...unitOf(ana, version, []), changes: [remove(first?.seq)] });
        expect(next?.commits).toBe(3);
        expect((await keys(version.scopeId)).map(({ n }) => n)).toEqual([2, 3]);
        expect(await one.read([first?.seq ?? 0])).toEqual([]);
      });

      it("of another scope are never touched", async () => {
        const version = await fill(ana, 1);
        await fill(bob, 1);
        const { scopeId } = (await one.versionOf(bob)) as StoredVersion;
        const { seq } = only(await keys(scopeId));
        const before = await one.read([seq]);
        for (const change of [
          { kind: "remove", seqs: [seq] },
          { kind: "rewrite", seq, to: { said: null } },
        ] as const)
          await expect(one.write(unitOf(ana, version, [composed(2)], { changes: [change] }))).rejects.toThrow(
            "not there",
          );
        expect(await one.read([seq])).toEqual(before);
        expect(await one.versionOf(ana)).toEqual(version);
      });

      it("that were damaged are not given out: the error names scope and number, and quotes nothing", async () => {
        const version = await fill(ana, 2);
        const [first, second] = await keys(version.scopeId);
        await opened.damage({ seq: second?.seq ?? 0 });
        const failure = await two.read([second?.seq ?? 0]).catch((error: unknown) => error);
        expect(failure).toMatchObject({ name: "StoreUnavailableError", fault: "damaged" });
        expect(String((failure as Error).cause)).toContain(`record 2 of scope ${version.scopeId}`);
        expect(String((failure as Error).cause)).not.toContain("question");
        await expect(two.load(ana)).rejects.toMatchObject({ fault: "damaged" });
        expect(await two.read([first?.seq ?? 0])).toHaveLength(1);
      });
    });

    describe("a scope", () => {
      it("is loaded as its snapshot and the records behind it that changed it", async () => {
        expect(await one.load(ana)).toEqual({
          version: null,
          snapshot: null,
          behind: [],
          deletions: NONE,
          forgotten: [],
          newestAt: 0,
          conversation: [],
        });
        const { version } = await one.write(
          unitOf(ana, null, [composed(1), composed(2)], { changes: [{ kind: "snapshot", data: "[1]" }] }),
        );
        const records = [composed(3), composed(3, { kind: "reported", changes: null }), noRecord("changed", 3)];
        const { version: next } = await one.write(unitOf(ana, version, [...records, composed(4)]));
        expect(await two.load(ana)).toEqual({
          version: next,
          snapshot: { n: 2, data: "[1]" },
          behind: [
            { n: 3, kind: "composed", changes: composed(3).changes },
            { n: 6, kind: "composed", changes: composed(4).changes },
          ],
          deletions: NONE,
          forgotten: [],
          newestAt: composed(4).at,
          conversation: [],
        });
        await one.write(unitOf(ana, next, [composed(5)], { changes: [{ kind: "snapshot", data: "[2]" }] }));
        expect(await two.load(ana)).toMatchObject({ snapshot: { n: 7, data: "[2]" }, behind: [] });
      });

      it("is loaded with the newest records of a conversation, and when it composed last", async () => {
        const said = (turn: number, conversation: number | null) => composed(turn, { conversation });
        const others = [said(1, 7), said(2, 8), said(3, null), composed(4, { kind: "said", at: 0, requestId: null })];
        const { version } = await one.write(
          unitOf(ana, null, [...others, composed(5), composed(5, { kind: "reported", turns: 0, at: 0 })]),
        );
        const { scopeId } = version as StoredVersion;
        const numbers = async (conversation: number) =>
          (await two.load(ana, conversation)).conversation.map(({ n }) => n);
        expect([await numbers(7), await numbers(8), await numbers(9)]).toEqual([[5, 4, 1], [2], []]);
        const listed = await two.list(scopeId, { kinds: WITH_TURNS, conversation: 7, newestFirst: true, most: 10 });
        const { conversation, newestAt } = await two.load(ana, 7);
        expect(conversation).toEqual(await two.read(listed.map(({ seq }) => seq)));
        expect(newestAt).toBe(composed(5).at);
        const many = Array.from({ length: CONVERSATION_PAGE }, (_, at) => composed(6 + at));
        await one.write(unitOf(ana, version, many));
        expect(await numbers(7)).toEqual(many.map((_, at) => 6 + CONVERSATION_PAGE - at));
      });

      it("with a damaged snapshot is not loaded", async () => {
        const { version } = await one.write(
          unitOf(ana, null, [composed(1)], { changes: [{ kind: "snapshot", data: '[1,"text"]' }] }),
        );
        await opened.damage({ snapshotOf: version?.scopeId ?? 0 });
        await expect(two.load(ana)).rejects.toMatchObject({ fault: "damaged" });
      });

      it("is one agent's of one user of one tenant", async () => {
        const scopes = [ana, scopeNamed("ana", "x"), scopeNamed("ana", "y"), bob, scopeNamed("ana", null, "other")];
        for (const scope of scopes) await one.write(unitOf(scope, null, [composed(1)]));
        const rows = await two.scopesOf("default", "ana" as UserId);
        expect(new Set(rows.map(({ scope }) => scope))).toEqual(new Set(scopes.slice(0, 3)));
        expect(rows.map(({ createdAt }) => createdAt)).toEqual([5, 5, 5]);
        expect(await two.scopesById([rows[1]?.scopeId ?? 0, 999])).toEqual([rows[1]]);
      });

      it("ends with all it has, and its number is never given again", async () => {
        const { version } = await one.write(
          unitOf(ana, null, [composed(1)], {
            changes: [
              { kind: "snapshot", data: "[1]" },
              { kind: "memories", hashes: [5] },
              { kind: "keep-shared", rows: [{ digest: sealed("h"), messages: "[]" }] },
            ],
          }),
        );
        const { scopeId } = version as StoredVersion;
        await one.keepResponse(ana, NONE, response("r1", "a"), null, 10);
        const ended = await one.write({ ...unitOf(ana, version, []), changes: [{ kind: "end" }] });
        expect(ended.version).toBeNull();
        expect(await two.load(ana)).toMatchObject({ version: null, snapshot: null, behind: [] });
        expect(await two.scopesById([scopeId])).toEqual([]);
        expect(await keys(scopeId)).toEqual([]);
        expect(await allShared(two, scopeId)).toEqual([]);
        expect(await two.responsesOf(scopeId)).toEqual([]);
        expect((await two.withMemory("default", 5, 0)).scopes).toEqual([]);
        const again = await one.write(unitOf(ana, null, [composed(1)]));
        expect(again.version?.scopeId).toBeGreaterThan(scopeId);
        await expect(one.write(unitOf(ana, version, [composed(2)]))).rejects.toBeInstanceOf(StaleScopeError);
      });

      it("keeps shared rows once, and removes them", async () => {
        const [h1, h2] = [sealed("one"), sealed("two")];
        const keep: JournalChange = { kind: "keep-shared", rows: [{ digest: h1, messages: '["a"]' }] };
        const first = await one.write(unitOf(ana, null, [composed(1)], { changes: [keep] }));
        const { scopeId } = first.version as StoredVersion;
        const two_ = { digest: h2, messages: '["z"]' };
        const second = await one.write(
          unitOf(ana, first.version, [composed(2)], {
            changes: [{ kind: "keep-shared", rows: [{ digest: h1, messages: '["b"]' }, two_] }],
          }),
        );
        expect(await two.shared(scopeId, [h1])).toEqual([{ digest: h1, messages: '["a"]' }]);
        expect(new Set(await allShared(two, scopeId))).toEqual(new Set([{ digest: h1, messages: '["a"]' }, two_]));
        expect(await two.shared(scopeId, [h1, sealed("unknown")])).toEqual([{ digest: h1, messages: '["a"]' }]);
        await one.write(
          unitOf(ana, second.version, [composed(3)], { changes: [{ kind: "remove-shared", digests: [h1] }] }),
        );
        expect(await allShared(two, scopeId)).toEqual([two_]);
      });
    });

    describe("a unit", () => {
      it("built on another version than the stored one is stale, and changes nothing", async () => {
        const version = await fill(ana, 2);
        const stale: readonly (StoredVersion | null)[] = [
          null,
          { ...version, commits: 1 },
          { ...version, commits: 3 },
          { ...version, sum: (version.sum ?? 0) + 1 },
          { ...version, scopeId: version.scopeId + 1 },
        ];
        for (const base of stale) {
          const unit = unitOf(ana, base, [composed(3)], {
            changes: [{ kind: "snapshot", data: "[9]" }],
            deletion: { memoryId: null, isInSource: true },
          });
          await expect(one.write(unit)).rejects.toBeInstanceOf(StaleScopeError);
          const changes = [
            { kind: "snapshot", data: "[9]" },
            { kind: "memories", hashes: [99] },
            { kind: "keep-shared", rows: [{ digest: sealed("h"), messages: "[]" }] },
          ] as const;
          await expect(one.write(unitOf(ana, base, [composed(3)], { changes }))).rejects.toBeInstanceOf(
            StaleScopeError,
          );
        }
        await expect(one.write(unitOf(bob, version, [composed(3)]))).rejects.toBeInstanceOf(StaleScopeError);
        expect((await two.withMemory("default", 99, 0)).scopes).toEqual([]);
        expect(await two.sharedDigests(version.scopeId)).toEqual([]);
        expect(await two.load(ana)).toMatchObject({ version, snapshot: null, deletions: NONE });
        expect(await two.versionOf(bob)).toBeNull();
        expect(await two.usersPendingInSource()).toEqual([]);
      });

      it("of one process is stale where the other one was first, whoever that is", async () => {
        const version = await fill(ana, 1);
        const outcomes = await Promise.allSettled([
          one.write(unitOf(ana, version, [composed(2)])),
          two.write(unitOf(ana, version, [composed(2)])),
        ]);
        expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
        const lost = outcomes.find((outcome) => outcome.status === "rejected");
        expect(lost?.reason).toBeInstanceOf(StaleScopeError);
        expect((await keys(version.scopeId)).map(({ n }) => n)).toEqual([1, 2]);
      });

      it("creates a scope once, of two processes that try", async () => {
        const outcomes = await Promise.allSettled([
          one.write(unitOf(ana, null, [composed(1)])),
          two.write(unitOf(ana, null, [composed(1)])),
        ]);
        expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
        expect(await one.scopesOf("default", "ana" as UserId)).toHaveLength(1);
      });

      it("is stale where something of the user was deleted since", async () => {
        const version = await fill(ana, 1);
        const forget = unitOf(scopeNamed("ana", "other"), null, [noRecord("forgotten", 0)], {
          changes: [{ kind: "forget", memoryId: "m1" as MemoryId }],
          deletion: { memoryId: "m1" as MemoryId, isInSource: false },
        });
        await two.write(forget);
        const late = unitOf(ana, version, [composed(2)], { deletions: NONE });
        await expect(one.write(late)).rejects.toBeInstanceOf(StaleScopeError);
        const deletions = await one.deletionsOf("default", "ana" as UserId);
        expect(deletions).toEqual({ users: 0, memories: 1 });
        expect(await one.load(ana)).toMatchObject({ version, deletions, forgotten: ["m1"] });
        expect((await one.write({ ...late, deletions })).version?.commits).toBe(2);
      });

      it("that fails changes nothing, and those beside it are stored", async () => {
        const version = await fill(ana, 1);
        const broken = unitOf(ana, version, [composed(2)], {
          changes: [
            { kind: "snapshot", data: "[9]" },
            { kind: "forget", memoryId: "m" as MemoryId },
            { kind: "remove", seqs: [987_654] },
          ],
        });
        const outcomes = await Promise.allSettled([
          one.write(unitOf(bob, null, [composed(1)])),
          one.write(broken),
          one.write(unitOf(scopeNamed("cy"), null, [composed(1)])),
        ]);
        expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
        expect(await two.load(ana)).toMatchObject({ version, snapshot: null, forgotten: [] });
        expect(await two.versionOf(bob)).toMatchObject({ commits: 1 });
      });

      it("together with others is applied with all of them, or none is", async () => {
        const version = await fill(ana, 1);
        const ofBob = unitOf(bob, null, [composed(1)]);
        await expect(
          one.writeTogether([ofBob, unitOf(ana, { ...version, commits: 9 }, [composed(2)])]),
        ).rejects.toBeInstanceOf(StaleScopeError);
        expect(await two.versionOf(bob)).toBeNull();
        const written = await one.writeTogether([ofBob, unitOf(ana, version, [composed(2)])]);
        expect(written.map((unit) => unit.version?.commits)).toEqual([1, 2]);
        expect(await two.versionOf(bob)).toEqual(written[0]?.version);
        expect(await one.writeTogether([])).toEqual([]);
      });

      it("waits for nothing of another scope's, and those of one scope are applied in order", async () => {
        const scopes = Array.from({ length: 100 }, (_, at) => scopeNamed(`user-${at}`));
        const created = await Promise.all(scopes.map((scope) => one.write(unitOf(scope, null, [composed(1)]))));
        // Handed over without waiting: each is built on the one before it.
        const later = scopes.flatMap((scope, at) => {
          const scopeId = created[at]?.version?.scopeId ?? 0;
          return Array.from({ length: 9 }, (_, commit) =>
            one.write(unitOf(scope, { scopeId, commits: commit + 1 }, [composed(commit + 2)])),
          );
        });
        const written = await Promise.all(later);
        expect(written.filter((unit) => unit.version?.commits === 10)).toHaveLength(100);
        for (const { version } of created.slice(0, 3)) {
          const requests = (await two.list(version?.scopeId ?? 0, { most: 100 })).map(({ requestId }) => requestId);
          expect(requests).toEqual(Array.from({ length: 10 }, (_, at) => `r${at + 1}`));
        }
        await one.idle();
      });

      it("is stored when idle resolves, though nobody waited for it", async () => {
        const writing = one.write(unitOf(ana, null, [composed(1)]));
        let isDone = false;
        void writing.then(() => {
          isDone = true;
        });
        await one.idle();
        expect(await two.versionOf(ana)).toMatchObject({ commits: 1 });
        await writing;
        expect(isDone).toBe(true);
      });
    });

    describe("walks through all scopes", () => {
      it("find who has a memory, of one tenant, also where its record is gone", async () => {
        const hashes = (...all: number[]): { changes: JournalChange[] } => ({
          changes: [{ kind: "memories", hashes: all }],
        });
        const first = await one.write(unitOf(ana, null, [composed(1)], hashes(1, 0xffff_fffe)));
        const second = await one.write(unitOf(ana, first.version, [composed(2)], hashes(2, 256)));
        await one.write(unitOf(bob, null, [composed(1)], hashes(2)));
        await one.write(unitOf(scopeNamed("eve", null, "other"), null, [composed(1)], hashes(2)));
        const holders = async (hash: number, tenant = "default") => {
          const found: string[] = [];
          for (let after: number | null = 0; after !== null; ) {
            const page: Awaited<ReturnType<JournalDatabase["withMemory"]>> = await two.withMemory(tenant, hash, after);
            found.push(...page.scopes.map(({ scope }) => scope.userId));
            after = page.next;
          }
          return [...new Set(found)].sort();
        };
        expect(await holders(2)).toEqual(["ana", "bob"]);
        expect(await holders(2, "other")).toEqual(["eve"]);
        expect(await holders(0xffff_fffe)).toEqual(["ana"]);
        // Bytes of two neighbours are no hash.
        expect(await holders(0x0002_0000)).toEqual([]);
        const seqs = (await keys(first.version?.scopeId ?? 0)).map(({ seq }) => seq);
        const { version } = await one.write(
          unitOf(ana, second.version, [noRecord("expired", 2)], { changes: [{ kind: "remove", seqs }] }),
        );
        for (const hash of [1, 2, 256, 0xffff_fffe]) expect(await holders(hash)).toContain("ana");
        await one.write({ ...unitOf(ana, version, []), changes: [{ kind: "end" }] });
        expect(await holders(2)).toEqual(["bob"]);
        expect(await holders(1)).toEqual([]);
      });

      it("find scopes with turns from before a time", async () => {
        const at = (time: number, scope: Scope, kind: NewRecord["kind"] = "composed") =>
          one.write(unitOf(scope, null, [composed(1, { at: time, kind, turns: kind === "composed" ? 1 : 0 })]));
        await at(10, ana);
        await at(20, bob);
        await at(25, scopeNamed("dee"), "changed");
        await at(30, scopeNamed("cy"));
        const found = async (before: number) => {
          const { scopes, next } = await two.writtenBefore(before, 0);
          expect(next).toBeNull();
          return scopes.map(({ scope }) => scope.userId);
        };
        expect(await found(10)).toEqual([]);
        expect(await found(20)).toEqual(["ana"]);
        expect(await found(31)).toEqual(["ana", "bob", "cy"]);
      });

      it("go on page by page", async () => {
        for (let user = 0; user < 6; user++) {
          const records = Array.from({ length: 150 }, (_, turn) => composed(turn + 1, { at: 10 }));
          await one.write(unitOf(scopeNamed(`u${user}`), null, records));
        }
        const found = new Set<string>();
        let pages = 0;
        for (let after: number | null = 0; after !== null; pages++) {
          const page: Awaited<ReturnType<JournalDatabase["writtenBefore"]>> = await two.writtenBefore(11, after);
          for (const { scope } of page.scopes) found.add(scope.userId);
          after = page.next;
        }
        expect([...found].sort()).toEqual(["u0", "u1", "u2", "u3", "u4", "u5"]);
        expect(pages).toBeGreaterThan(1);
      });
    });

    describe("deleting", () => {
      it("a user removes every agent's scope, and counts it", async () => {
        const agent = scopeNamed("ana", "agent");
        await fill(ana, 2);
        await fill(agent, 1);
        await fill(bob, 1);
        await one.write(
          unitOf(ana, await one.versionOf(ana), [composed(3)], {
            changes: [{ kind: "forget", memoryId: "m" as MemoryId }],
          }),
        );
        const gone = await two.deleteUser("default", "ana" as UserId, true);
        expect(gone).toBe(2);
        expect(await one.scopesOf("default", "ana" as UserId)).toEqual([]);
        expect(await one.forgottenOf("default", "ana" as UserId)).toEqual([]);
        expect(await one.deletionsOf("default", "ana" as UserId)).toEqual({ users: 1, memories: 0 });
        expect(await one.pendingInSource("default", "ana" as UserId)).toEqual({ everything: true, memoryIds: [] });
        expect(await one.usersPendingInSource()).toEqual([{ tenant: "default", userId: "ana" }]);
        expect(await one.versionOf(bob)).toMatchObject({ commits: 1 });
        await one.deletedFromSource("default", "ana" as UserId, null);
        expect(await two.pendingInSource("default", "ana" as UserId)).toBeNull();
        expect(await two.deleteUser("default", "zoe" as UserId, false)).toBe(0);
        await two.erased();
      });

      it("a memory keeps its id as forgotten, and owes the source its deletion", async () => {
        const id = "m1" as MemoryId;
        const unit = unitOf(ana, null, [noRecord("forgotten", 0)], {
          changes: [{ kind: "forget", memoryId: id }],
          deletion: { memoryId: id, isInSource: true },
          erased: ["Ana hides the key"],
        });
        const { version } = await one.write(unit);
        expect(await two.forgottenOf("default", "ana" as UserId)).toEqual([id]);
        expect(await two.pendingInSource("default", "ana" as UserId)).toEqual({ everything: false, memoryIds: [id] });
        expect((await two.load(scopeNamed("ana", "new"))).forgotten).toEqual([id]);
        await one.write({ ...unit, version });
        expect(await two.deletionsOf("default", "ana" as UserId)).toEqual({ users: 0, memories: 2 });
        await one.erased();
        await one.emptyLog();
      });
    });

    describe("responses", () => {
      it("are kept with a composed request, found by id, and replaced", async () => {
        const { scopeId } = await fill(ana, 2);
        await one.keepResponse(ana, NONE, response("r1", "a"), null, 10);
        await one.keepResponse(ana, NONE, response("r2", "a"), "a", 10);
        await one.keepResponse(ana, NONE, response("r9", "b"), null, 10);
        expect(await two.findResponse(scopeId, "a")).toBe("r2");
        expect(await two.findResponse(scopeId, "b")).toBeNull();
        expect(await two.responsesOf(scopeId)).toEqual([response("r2", "a")]);
      });

      it("are not kept where something of the user was deleted since", async () => {
        const { scopeId } = await fill(ana, 1);
        await one.keepResponse(ana, { users: 0, memories: 1 }, response("r1", "a"), null, 10);
        expect(await two.responsesOf(scopeId)).toEqual([]);
      });

      it("go with their request's record, with its withdrawal, and all but those that a unit keeps", async () => {
        const version = await fill(ana, 3);
        for (const n of [1, 2, 3]) await one.keepResponse(ana, NONE, response(`r${n}`, `a${n}`), null, 10);
        await one.keepResponse(ana, NONE, response("r3", "b3"), null, 10);
        const [first, second] = await keys(version.scopeId);
        const left = async () => (await two.responsesOf(version.scopeId)).map(({ id }) => id);
        const { version: next } = await one.write(
          unitOf(ana, version, [noRecord("expired", 3)], { changes: [{ kind: "remove", seqs: [first?.seq ?? 0] }] }),
        );
        expect(await left()).toEqual(["a2", "a3", "b3"]);
        const withdraw: JournalChange = {
          kind: "rewrite",
          seq: second?.seq ?? 0,
          to: { kind: "changed", requestId: null },
        };
        const { version: last } = await one.write(
          unitOf(ana, next, [noRecord("withdrawn", 3)], { changes: [withdraw] }),
        );
        expect(await left()).toEqual(["a3", "b3"]);
        const keep = (ids: readonly string[]): JournalChange => ({ kind: "keep-responses", ids });
        const kept = await one.write(unitOf(ana, last, [noRecord("forgotten", 3)], { changes: [keep(["b3", "b4"])] }));
        expect(await left()).toEqual(["b3"]);
        await one.write(unitOf(ana, kept.version, [noRecord("forgotten", 3)], { changes: [keep([])] }));
        expect(await left()).toEqual([]);
      });

      it("are bounded for a tenant: the least recently used go first", async () => {
        const { scopeId } = await fill(ana, 1);
        for (let n = 0; n < 64; n++)
          await one.keepResponse(ana, NONE, response("r1", `a${n}`), n === 0 ? null : "a0", 10);
        const ids = (await two.responsesOf(scopeId)).map(({ id }) => id);
        expect(ids.length).toBeLessThanOrEqual(10);
        expect(ids).toContain("a0");
        expect(ids).toContain("a63");
        expect(ids).not.toContain("a1");
      });
    });

    describe("first-token times", () => {
      it("are counted for an engine, and the last few are kept", async () => {
        for (let ms = 1; ms <= 5; ms++)
          await one.keepFirstTokenTime("vllm", { uncachedTokens: ms, cachedTokens: 0, ms: ms / 2 }, 3);
        expect(await two.countFirstTokenTimes("vllm")).toBe(5);
        expect(await two.countFirstTokenTimes("other")).toBe(0);
        expect((await two.firstTokenTimes("vllm", 5, 2)).map(({ ms }) => ms)).toEqual([2, 2.5]);
        expect((await two.firstTokenTimes("vllm", 4, 10)).map(({ ms }) => ms)).toEqual([1.5, 2]);
      });
    });

    it("answers that it is there", async () => {
      await expect(one.ping()).resolves.toBeUndefined();
      expect(one.sealKey).toHaveLength(32);
      expect(Buffer.from(one.sealKey).equals(Buffer.from(two.sealKey))).toBe(true);
    });

    it("takes a thousand concurrent units of as many users, from two processes", async () => {
      const written = await Promise.all(
        Array.from({ length: 1_000 }, (_, at) =>
          (at % 2 === 0 ? one : two).write(unitOf(scopeNamed(`u${at}`), null, [composed(1), composed(2)])),
        ),
      );
      expect(new Set(written.map(({ version }) => version?.scopeId)).size).toBe(1_000);
      const counts = await Promise.all(written.map(({ version }) => two.counts(version?.scopeId ?? 0)));
      expect(counts.every(({ requests }) => requests === 2)).toBe(true);
    });
  });
}
