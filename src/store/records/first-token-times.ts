import type Database from "better-sqlite3";
import { and, asc, eq, lte, sql } from "drizzle-orm";
import type { FirstTokenTime } from "../../core/index.js";
import type { OpenDatabase } from "../database/open-database.js";
import { firstTokenTimes as times } from "../database/schema.js";
import { type WriteStatement, writeStatement } from "../database/write-statement.js";

const p = sql.placeholder;

/** What engines reported of their first-token times. Each engine's are numbered from 1. */
export class FirstTokenTimes {
  /** Asked with every compose that needs the cost, so past the query builder. */
  readonly #last: Database.Statement<[string], number>;
  readonly #add: WriteStatement;
  readonly #drop: WriteStatement;

  constructor(private readonly database: OpenDatabase) {
    const { sqlite, orm } = database;
    this.#last = sqlite
      .prepare<[string], number>("select number from first_token_times where engine = ? order by number desc limit 1")
      .pluck();
    this.#add = writeStatement(
      sqlite,
      orm.insert(times).values({
        engine: p("engine"),
        number: p("number"),
        uncachedTokens: p("uncachedTokens"),
        cachedTokens: p("cachedTokens"),
        ms: p("ms"),
      }),
    );
    this.#drop = writeStatement(
      sqlite,
      orm.delete(times).where(and(eq(times.engine, p("engine")), lte(times.number, p("upTo")))),
    );
  }

  count(engine: string): number {
    return this.#last.get(engine) ?? 0;
  }

  upTo(engine: string, count: number, most: number): FirstTokenTime[] {
    return this.database.orm
      .select({ uncachedTokens: times.uncachedTokens, cachedTokens: times.cachedTokens, ms: times.ms })
      .from(times)
      .where(and(eq(times.engine, engine), lte(times.number, count), sql`${times.number} > ${count - most}`))
      .orderBy(asc(times.number))
      .all();
  }

  keep(engine: string, time: FirstTokenTime, most: number): void {
    this.database.sqlite
      .transaction(() => {
        const number = this.count(engine) + 1;
        this.#add.run({ engine, number, ...time });
        this.#drop.run({ engine, upTo: number - most });
      })
      .immediate();
  }
}
