import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { MemoryId, UserId } from "../../../src/core/index.js";
import { StaleScopeError } from "../../../src/store/api/store.js";
import type { JournalDatabase, RecordKey } from "../../../src/store/journal/journal-database.js";
import { type OpenPostgres, openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { composed, scopeNamed, unitOf } from "../journal/journal-database.suite.js";

const server = await testServer();

const INSTANCES = 3;
const COMMITS = 60;

describe.skipIf(server.url === null)("three instances that write to few scopes", () => {
  let opened: OpenPostgres[] = [];
  beforeAll(async () => {
    const url = await newDatabase(server.url ?? "");
    opened = await Promise.all(Array.from({ length: INSTANCES }, () => openPostgres(url)));
  });
  afterAll(async () => {
    await Promise.all(opened.map(({ journal }) => journal.close()));
  });

  const scopes = ["a", "b", "c"].flatMap((agent) => [scopeNamed("ana", agent), scopeNamed("bob", agent)]);

  /** Commits on what it has just read, over and over; gives what it won, as `scope:n` with the state that it built on. */
  async function write(journal: JournalDatabase, name: string): Promise<{ won: string[]; stale: number }> {
    const won: string[] = [];
    let stale = 0;
    for (let commit = 0; commit < COMMITS; commit++) {
      const scope = scopes[Math.floor(Math.random() * scopes.length)] as (typeof scopes)[number];
      const { version, deletions } = await journal.load(scope);
      const isForgetting = Math.random() < 0.2;
      const requestId = `${name}-${commit}`;
      const memoryId = requestId as MemoryId;
      const base = version?.commits ?? 0;
      const record = composed(base + 1, {
        kind: isForgetting ? "forgotten" : "composed",
        requestId,
        said: JSON.stringify({ base, memories: deletions.memories }),
      });
      const more = isForgetting ? { deletion: { memoryId, isInSource: false } } : {};
      try {
        const written = await journal.write(unitOf(scope, version, [record], { deletions, ...more }));
        won.push(`${requestId}:${written.version?.commits}`);
      } catch (error) {
        if (!(error instanceof StaleScopeError)) throw error;
        stale++;
      }
    }
    return { won, stale };
  }

  it("never both win on one state, and never build on a state before a deletion", async () => {
    const outcomes = await Promise.all(
      opened.flatMap(({ journal }, at) => [
        write(journal, `${at}x`),
        write(journal, `${at}y`),
        write(journal, `${at}z`),
      ]),
    );
    const won = outcomes.flatMap((outcome) => outcome.won);
    expect(outcomes.reduce((sum, { stale }) => sum + stale, 0)).toBeGreaterThan(0);

    const journal = opened[0]?.journal as JournalDatabase;
    const stored: string[] = [];
    for (const userId of ["ana", "bob"] as UserId[]) {
      const keys: RecordKey[] = [];
      for (const { scopeId } of await journal.scopesOf("default", userId)) {
        const ofScope = await journal.list(scopeId, { most: 10_000 });
        expect(ofScope.map(({ n }) => n)).toEqual(ofScope.map((_, at) => at + 1));
        keys.push(...ofScope);
      }
      // A deletion's numbers are drawn while it holds the user's lock alone: so the order of `seq` is that of the locks.
      keys.sort((a, b) => a.seq - b.seq);
      const records = await journal.read(keys.map(({ seq }) => seq));
      let forgotten = 0;
      for (const { n, kind, requestId, said } of records) {
        expect(JSON.parse(said ?? "")).toEqual({ base: n - 1, memories: forgotten });
        if (kind === "forgotten") forgotten++;
        stored.push(`${requestId}:${n}`);
      }
      expect(forgotten).toBeGreaterThan(0);
      expect(await journal.deletionsOf("default", userId)).toEqual({ users: 0, memories: forgotten });
    }
    expect(stored.sort()).toEqual(won.sort());
  });
});
