import type Database from "better-sqlite3";

/** Statements of one connection by their text, each prepared once. */
export class KeptStatements {
  readonly #statements = new Map<string, Database.Statement>();

  constructor(private readonly sqlite: Database.Database) {}

  get<T>(sql: string, values: readonly unknown[]): T | undefined {
    return this.of(sql).get(values) as T | undefined;
  }

  all<T>(sql: string, values: readonly unknown[] | object): T[] {
    return this.of(sql).all(values) as T[];
  }

  run(sql: string, values: readonly unknown[] | object): Database.RunResult {
    return this.of(sql).run(values);
  }

  of(sql: string): Database.Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const made = this.sqlite.prepare(sql);
    this.#statements.set(sql, made);
    return made;
  }
}
