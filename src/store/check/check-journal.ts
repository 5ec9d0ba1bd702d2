import type { DatabaseConnection } from "../database/connection.js";
import type { ScopeRow } from "../journal/journal-database.js";
import { JournalReads } from "../sqlite/journal-reads.js";
import { type CheckedScope, RECORDS_AT_ONCE, ScopeRecords } from "./scope-records.js";

/** Checks scopes of the journal in a file, in the caller's transaction. */
export class JournalCheck {
  readonly #reads: JournalReads;

  constructor(private readonly database: DatabaseConnection) {
    this.#reads = new JournalReads(database);
  }

  /** Reads every record of a scope, folds its state, and compares them. Throws where a record or snapshot is damaged. */
  check({ scopeId, scope }: ScopeRow): CheckedScope {
    const reads = this.#reads;
    const records = new ScopeRecords(scopeId, reads.load(scope), this.database.digests);
    for (let after = 0; ; ) {
      const keys = reads.list(scopeId, { after, most: RECORDS_AT_ONCE });
      records.takeRecords(reads.read(keys.map(({ seq }) => seq)), keys.length);
      const last = keys.at(-1);
      if (last === undefined) break;
      after = last.n;
    }
    for (const piece of records.referred) records.takeShared(piece, reads.shared(scopeId, piece));
    const found = records.requestIds.flatMap((ids) => reads.withRequests({ scopeId }, ids));
    return records.finish({ memories: reads.memoriesOf(scopeId), responses: reads.responsesOf(scopeId), found });
  }
}
