import { and, asc, desc, eq, lte, sql } from "drizzle-orm";
import type { FirstTokenTime } from "../core/index.js";
import type { OpenDatabase } from "./open-database.js";
import { firstTokenTimes as times } from "./schema.js";

const p = sql.placeholder;

/** What engines reported of their first-token times. Each engine's are numbered from 1. */
export class FirstTokenTimes {
  /** Asked with every compose, the others with every report: prepared once. */
  readonly #last;
  readonly #add;
  readonly #drop;

  constructor(private readonly database: OpenDatabase) {
    const { orm } = database;
    this.#last = orm
      .select({ number: times.number })
      .from(times)
      .where(eq(times.engine, p("engine")))
      .orderBy(desc(times.number))
      .limit(1)
      .prepare();
    this.#add = orm
      .insert(times)
      .values({
        engine: p("engine"),
        number: p("number"),
        uncachedTokens: p("uncachedTokens"),
        cachedTokens: p("cachedTokens"),
        ms: p("ms"),
      })
      .prepare();
    this.#drop = orm
      .delete(times)
      .where(and(eq(times.engine, p("engine")), lte(times.number, p("upTo"))))
      .prepare();
  }

  count(engine: string): number {
    return this.#last.get({ engine })?.number ?? 0;
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
