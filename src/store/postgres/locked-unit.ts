import type { JournalUnit, WrittenUnit } from "../journal/journal-database.js";

/** A unit with what it is locked by; see `LockKeys`. */
export interface LockedUnit {
  readonly unit: JournalUnit;
  readonly bucket: number;
  readonly lock: string;
  /** Whether it may be stored already: the connection was lost when its outcome was under way. */
  isUncertain: boolean;
}

/** The outcome of a unit; `stale`: it does not build on what is stored, and changed nothing. */
export type UnitOutcome = WrittenUnit | "stale";
