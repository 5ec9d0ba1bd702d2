/** What has come since a scope's last snapshot. */
export interface BehindSnapshot {
  /** Records, … */
  readonly records: number;
  /** … and the length of their changes. */
  readonly length: number;
  /** The length of the last snapshot; 0: there is none. */
  readonly snapshotLength: number;
}

/** Records that are cheaper to read than a snapshot is to write. */
const FEWEST_RECORDS = 32;

/** Records whose number alone makes a load slow, as it reads them whole: what was said is much longer than what changed. */
const MOST_RECORDS = 256;

/**
 * Whether the next commit writes a snapshot. A load reads at most about twice the state. Snapshots that the length of changes makes due are
 * together at most twice as long as the changes, because a state is at most as long as its last snapshot and the changes since. Those that
 * the number of records makes due add at most a 256th of the state to each commit.
 */
export function snapshotIsDue({ records, length, snapshotLength }: BehindSnapshot): boolean {
  return records >= MOST_RECORDS || (records >= FEWEST_RECORDS && length >= snapshotLength);
}
