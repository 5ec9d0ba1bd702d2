import Database from "better-sqlite3";
import pg from "pg";
import { describe, expect, it } from "vitest";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { composeWith } from "../compose/service-fixture.js";
import { SHARED, sharedDatabase } from "../shared-database.js";

/** What a backup of that moment does not have, or a standby had not received. */
const LOSE_ALL_BUT_THE_FIRST = "delete from journal where n > 1";

describe.each(SHARED)(
  "a database in $name that goes back to an earlier state while an instance runs",
  ({ name, skip }) => {
    const database = sharedDatabase(name);
    async function lose(): Promise<void> {
      if (name === "a file") {
        const sqlite = new Database(database.file);
        sqlite.exec(LOSE_ALL_BUT_THE_FIRST);
        sqlite.close();
        return;
      }
      const client = new pg.Client(database.url);
      await client.connect();
      await client.query(`set search_path to memprefix; ${LOSE_ALL_BUT_THE_FIRST}`);
      await client.end();
    }
    const tell = (service: Memprefix, fact: string, requestId = `r-${fact}`) =>
      composeWith(service, {
        userId: "ana",
        requestId,
        query: "?",
        memories: [{ id: `m-${fact}`, memory: `Fact ${fact}` }],
        // They are written with labels, which show whose numbers an instance goes on from.
        annotations: "paper",
      });
    const textOf = async (telling: ReturnType<typeof tell>) => JSON.stringify((await telling).messages);

    it.skipIf(skip)("is read again by an instance that has as many commits in memory as there are since", async () => {
      const one = await database.start();
      for (const fact of ["first", "lost", "gone", "away"]) await tell(one, fact);
      await lose();
      const other = await database.start();
      for (const fact of ["new", "next", "last"]) await tell(other, fact);
      expect(await textOf(tell(one, "next", "again"))).toContain("3 Fact next");
      expect(await textOf(tell(one, "lost", "lost-again"))).toContain("5 Fact lost");
      expect(await textOf(tell(other, "lost", "lost-there"))).toContain("5 Fact lost");
    });

    it.skipIf(skip)("is read again before something of it is sent without a commit", async () => {
      const one = await database.start();
      for (const fact of ["first", "lost"]) await tell(one, fact);
      await lose();
      const other = await database.start();
      const answered = await textOf(tell(other, "new"));
      expect(answered).toContain("2 Fact new");
      expect(await textOf(tell(one, "new"))).toBe(answered);
    });
  },
);
