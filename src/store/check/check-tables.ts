import type { DatabaseConnection } from "../database/connection.js";
import { ScopeCodec } from "../journal/scope-codec.js";
import { messagesInRow } from "../journal/shared-message.js";
import { TableRecords } from "../upgrade/table-records.js";
import { type NumberedScope, TableScopes } from "../upgrade/table-scope.js";
import { checkRows } from "./check-scope.js";

/**
 * Checks scopes that are still in the tables from before the journal, in the caller's transaction: each is read as it will be when it is
 * moved. What its records say is checked once they are written.
 */
export class TableCheck {
  readonly #tables: TableScopes;
  readonly #records: TableRecords;
  readonly #states: ScopeCodec;

  constructor(database: DatabaseConnection) {
    this.#tables = new TableScopes(database);
    this.#records = new TableRecords(this.#tables, database.digests);
    this.#states = new ScopeCodec(database.digests);
  }

  /** Throws where it cannot be moved. */
  check({ scopeId, ...key }: NumberedScope): { readonly requests: number; readonly problems: readonly string[] } {
    const state = this.#tables.state(key);
    let requests = 0;
    for (const { record } of this.#records.of(scopeId, state)) if (record.kind === "composed") requests++;
    for (const { messages } of this.#tables.shared(scopeId)) messagesInRow(messages);
    this.#states.encodeState(state);
    return { requests, problems: [...checkRows(state)] };
  }
}
