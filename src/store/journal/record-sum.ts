import { crc32 } from "node:zlib";
import { StoreUnavailableError } from "../api/store.js";
import type { JournalRecord, NewRecord, Snapshot } from "./journal-database.js";

/** CRC-32 of a record, but for its `seq`. The lengths stand in it so that no body's end can be taken for the next one's beginning. */
export function sumOfRecord(record: NewRecord, { scopeId, n }: Pick<JournalRecord, "scopeId" | "n">): number {
  const { kind, at, turn, turns, conversation, requestId, leaf, changes, said } = record;
  const lengths = [changes?.length ?? null, said?.length ?? null];
  const key = crc32(JSON.stringify([scopeId, n, kind, at, turn, turns, conversation, requestId, leaf, ...lengths]));
  return crc32(said ?? "", crc32(changes ?? "", key));
}

/** CRC-32 of a snapshot. */
export function sumOfSnapshot(scopeId: number, { n, data }: Snapshot): number {
  return crc32(data, crc32(JSON.stringify([scopeId, n])));
}

/** The error for a record, or a snapshot, that is not what was written. Its message quotes nothing stored. */
export function damagedRecord(
  { scopeId, n }: Pick<JournalRecord, "scopeId" | "n">,
  what: string,
): StoreUnavailableError {
  return new StoreUnavailableError("damaged", { cause: new Error(`record ${n} of scope ${scopeId}: ${what}`) });
}
