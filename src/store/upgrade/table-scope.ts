import type Database from "better-sqlite3";
import type { Digest, StoredScope } from "../../core/index.js";
import type { DatabaseConnection } from "../database/connection.js";
import type { SealedDigest } from "../database/digest-seal.js";
import { readScope, type ScopeKey } from "../database/scope-key.js";
import { prepare, prepareValue, type Statement } from "../database/statements.js";
import type { SharedRow } from "../journal/journal-database.js";
import type { SaidTurn } from "../journal/said-codec.js";
import { RepeatedMessages } from "./repeated-messages.js";
import { TableMessages } from "./table-messages.js";
import { readTurn } from "./table-rows.js";
import { readTableState } from "./table-state.js";
import {
  prepareStateReads,
  type RequestRow,
  SELECT_REQUESTS,
  SELECT_TURNS,
  type StateStatements,
  type TurnRow,
} from "./table-statements.js";

/** Turns that are read at once. */
const TURNS_AT_ONCE = 500;

/** A turn in the tables from before the journal, with its requests. */
export interface TableTurn {
  /** In the order of time over all scopes. */
  readonly row: number;
  readonly said: SaidTurn;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly requests: readonly RequestRow[];
}

/** A scope's name and number. */
export type NumberedScope = ScopeKey & { readonly scopeId: number };

interface Page {
  readonly scopeId: number;
  readonly after: number;
}

/** Reads scopes of the tables from before the journal. */
export class TableScopes {
  readonly #state: StateStatements;
  readonly #messages: TableMessages;
  readonly #count: Statement<[], number>;
  readonly #next: Statement<number, NumberedScope>;
  readonly #turns: Statement<Page, TurnRow & { readonly row: number }>;
  readonly #requests: Statement<Page & { readonly upTo: number }, RequestRow>;
  readonly #heads: Statement<number, { readonly digest: SealedDigest; readonly messages: string | null }>;
  readonly #sections: Statement<number, SealedDigest>;

  constructor(private readonly database: DatabaseConnection) {
    const { sqlite } = database;
    this.#state = prepareStateReads(sqlite);
    this.#messages = new TableMessages(database);
    this.#count = prepareValue(sqlite, "select count(*) from users where table_version > 0");
    this.#next = prepare(
      sqlite,
      `select scope_id as scopeId, tenant, user_id as userId, agent_id as agentId from users
       where scope_id > ? and table_version > 0 order by scope_id limit 1`,
    );
    this.#turns = prepare(
      sqlite,
      `${SELECT_TURNS.replace(/^select /, "select rowid as row, ")}
       where scope_id = @scopeId and id > @after order by id limit ${TURNS_AT_ONCE}`,
    );
    this.#requests = prepare(
      sqlite,
      `${SELECT_REQUESTS} where scope_id = @scopeId and turn > @after and turn <= @upTo order by turn, rowid`,
    );
    this.#heads = prepare(sqlite, "select digest, messages from heads where scope_id = ?");
    this.#sections = prepareValue(sqlite, "select digest from sections where scope_id = ?");
  }

  /** How many scopes are still in the tables. */
  count(): number {
    return this.#count.get([]) ?? 0;
  }

  /** The first scope with a higher number that is still in the tables; null: none is. */
  next(after: number): NumberedScope | null {
    return this.#next.get(after) ?? null;
  }

  state(key: ScopeKey): StoredScope {
    return readTableState(this.#state, this.database.digests, readScope(key)).scope;
  }

  /** A scope's turns in order, read in pieces: other statements may run in between. */
  *turns(scopeId: number): Generator<TableTurn> {
    const repeated = new RepeatedMessages(this.#messages, scopeId);
    for (let after = 0; ; ) {
      const rows = this.#turns.all({ scopeId, after });
      const last = rows.at(-1);
      if (last === undefined) return;
      const requests = this.#requests.all({ scopeId, after, upTo: last.id });
      for (const row of rows) {
        const turn = readTurn(row, this.#messages.saidIn(row.given), this.database.digests);
        yield {
          row: row.row,
          said: { turn, given: repeated.saidOf(row.given) },
          at: row.createdAt,
          requests: requests.filter((request) => request.turn === row.id),
        };
      }
      after = last.id;
    }
  }

  /**
   * Instructions, of which those that an earlier version erased as a whole have one erased message, and the messages that several turns
   * were given.
   */
  *shared(scopeId: number): Generator<SharedRow> {
    for (const { digest, messages } of this.#heads.all(scopeId))
      yield {
        digest,
        messages: messages === null ? "[null]" : JSON.stringify(this.#messages.bodiesOf(messages)),
      };
    const { digests } = this.database;
    for (const { key, json } of new RepeatedMessages(this.#messages, scopeId).rows())
      yield { digest: digests.seal(key), messages: json };
  }

  sections(scopeId: number): Digest[] {
    return this.#sections.all(scopeId).map((sealed) => this.database.digests.open(sealed));
  }
}

/** Whether a file still has tables from before the journal. */
export function hasTables(sqlite: Database.Database): boolean {
  const found = sqlite.prepare("select 1 from sqlite_master where type = 'table' and name = 'index_nodes'").get();
  return found !== undefined;
}
