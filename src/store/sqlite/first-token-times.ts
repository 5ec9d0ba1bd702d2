import type Database from "better-sqlite3";
import type { FirstTokenTime } from "../../core/index.js";
import type { firstTokenTimes } from "../database/schema.js";
import type { SqliteRow } from "../database/statements.js";

interface Asked {
  readonly engine: string;
  readonly count: number;
  readonly most: number;
}

/** What engines reported of their first-token times. Each engine's are numbered from 1. */
export class FirstTokenTimes {
  readonly #last: Database.Statement<[string], number>;
  readonly #upTo: Database.Statement<[Asked], FirstTokenTime>;
  readonly #add: Database.Statement<[SqliteRow<typeof firstTokenTimes>]>;
  readonly #drop: Database.Statement<[{ readonly engine: string; readonly upTo: number }]>;

  constructor(private readonly sqlite: Database.Database) {
    this.#last = sqlite
      .prepare<[string], number>("select number from first_token_times where engine = ? order by number desc limit 1")
      .pluck();
    this.#upTo = sqlite.prepare(
      `select uncached_tokens as uncachedTokens, cached_tokens as cachedTokens, ms from first_token_times
       where engine = @engine and number <= @count and number > @count - @most order by number`,
    );
    this.#add = sqlite.prepare(
      `insert into first_token_times (engine, number, uncached_tokens, cached_tokens, ms)
       values (@engine, @number, @uncachedTokens, @cachedTokens, @ms)`,
    );
    this.#drop = sqlite.prepare("delete from first_token_times where engine = @engine and number <= @upTo");
  }

  /** See `Store.countFirstTokenTimes`. */
  count(engine: string): number {
    return this.#last.get(engine) ?? 0;
  }

  /** See `Store.firstTokenTimes`. */
  upTo(engine: string, count: number, most: number): FirstTokenTime[] {
    return this.#upTo.all({ engine, count, most });
  }

  /** See `Store.keepFirstTokenTime`. */
  keep(engine: string, time: FirstTokenTime, most: number): void {
    this.sqlite
      .transaction(() => {
        const number = this.count(engine) + 1;
        this.#add.run({ engine, number, ...time });
        this.#drop.run({ engine, upTo: number - most });
      })
      .immediate();
  }
}
