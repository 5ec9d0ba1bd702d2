import type Database from "better-sqlite3";
import { and, asc, eq, lte, sql } from "drizzle-orm";
import type { FirstTokenTime } from "../core/index.js";
import type { OpenDatabase } from "./open-database.js";
import { firstTokenTimes as times } from "./schema.js";

/** What engines reported of their first-token times. Each engine's are numbered from 1. */
export class FirstTokenTimes {
  /** Asked with every compose, so past the query builder. */
  readonly #last: Database.Statement<[string], number>;
  readonly #orm: OpenDatabase["orm"];

  constructor({ sqlite, orm }: OpenDatabase) {
    this.#orm = orm;
    this.#last = sqlite
      .prepare<[string], number>("select number from first_token_times where engine = ? order by number desc limit 1")
      .pluck();
  }

  count(engine: string): number {
    return this.#last.get(engine) ?? 0;
  }

  upTo(engine: string, count: number, most: number): FirstTokenTime[] {
    return this.#orm
      .select({ uncachedTokens: times.uncachedTokens, cachedTokens: times.cachedTokens, ms: times.ms })
      .from(times)
      .where(and(eq(times.engine, engine), lte(times.number, count), sql`${times.number} > ${count - most}`))
      .orderBy(asc(times.number))
      .all();
  }

  keep(engine: string, time: FirstTokenTime, most: number): void {
    this.#orm.transaction(
      (transaction) => {
        const number = this.count(engine) + 1;
        transaction
          .insert(times)
          .values({ engine, number, ...time })
          .run();
        transaction
          .delete(times)
          .where(and(eq(times.engine, engine), lte(times.number, number - most)))
          .run();
      },
      { behavior: "immediate" },
    );
  }
}
