import { StoreUnavailableError } from "../api/store.js";
import { DigestSeal } from "../database/digest-seal.js";
import { DamagedRecordError } from "./damaged-record.js";
import type { JournalDatabase, JournalRecord } from "./journal-database.js";
import { type ComposedRecord, SaidCodec, type SaidTurn } from "./said-codec.js";
import { ScopeCodec } from "./scope-codec.js";

/** What the journal's questions and commits are made of. */
export interface JournalParts {
  readonly database: JournalDatabase;
  readonly digests: DigestSeal;
  readonly states: ScopeCodec;
  readonly said: SaidCodec;
}

export function journalParts(database: JournalDatabase): JournalParts {
  const digests = new DigestSeal(() => database.sealKey);
  return { database, digests, states: new ScopeCodec(digests), said: new SaidCodec(digests) };
}

/** What a record of kind `said` or `composed` says. */
export function composedIn({ said }: JournalParts, record: JournalRecord): ComposedRecord {
  return decodedOf(record, () => said.decodeComposed(bodyOf(record)));
}

/** Only the turns of such a record. */
export function turnsIn({ said }: JournalParts, record: JournalRecord): readonly SaidTurn[] {
  return decodedOf(record, () => said.decodeTurns(bodyOf(record)));
}

/** What an engine reported, by its record. */
export function reportIn({ said }: JournalParts, record: JournalRecord) {
  return decodedOf(record, () => said.decodeReported(bodyOf(record)));
}

/** Decodes something of a record, or its scope's snapshot; a damaged one is a fault of the store that names the record. */
export function decodedOf<T>({ scopeId, n }: Pick<JournalRecord, "scopeId" | "n">, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof DamagedRecordError)) throw error;
    const cause = new Error(`record ${n} of scope ${scopeId}: ${error.message}`, { cause: error });
    throw new StoreUnavailableError("damaged", { cause });
  }
}

function bodyOf({ said }: JournalRecord): string {
  if (said === null) throw new DamagedRecordError("it says nothing");
  return said;
}
