import type Database from "better-sqlite3";

/** Rows of one statement, most first. */
const SIZES = [16, 8, 4, 2, 1] as const;

/** An insert of any number of rows: a statement of many rows takes half as long as as many statements. */
export class ManyRows<Row extends object> {
  readonly #statements: readonly { readonly rows: number; readonly insert: Database.Statement<unknown[]> }[];

  /**
   * @param into `insert into TABLE (COLUMNS)`
   * @param fields of a row, in the order of the columns
   * @param conflict what follows the values
   */
  constructor(
    sqlite: Database.Database,
    into: string,
    private readonly fields: readonly (keyof Row)[],
    conflict: string,
  ) {
    const row = `(${fields.map(() => "?").join(", ")})`;
    this.#statements = SIZES.map((rows) => ({
      rows,
      insert: sqlite.prepare(`${into} values ${Array<string>(rows).fill(row).join(", ")} ${conflict}`),
    }));
  }

  run(row: Row): void {
    this.runAll([row]);
  }

  /** Inserts rows in their order. */
  runAll(rows: readonly Row[]): void {
    let at = 0;
    for (const { rows: size, insert } of this.#statements) {
      for (; rows.length - at >= size; at += size) {
        const values: unknown[] = [];
        for (let next = at; next < at + size; next++) {
          const row = rows[next] as Row;
          for (const field of this.fields) values.push(row[field]);
        }
        insert.run(values);
      }
    }
  }
}
