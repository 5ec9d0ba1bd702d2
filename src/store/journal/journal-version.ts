import type { StoredVersion } from "../api/store.js";
import type { BehindSnapshot } from "./snapshot-policy.js";

/** What a process knows of a scope's records beyond its version: when a snapshot is due. */
export interface ScopeBook {
  readonly behind: BehindSnapshot;
}

const NOTHING_KNOWN: ScopeBook = { behind: { records: 0, length: 0, snapshotLength: 0 } };

/** A version with its {@link ScopeBook}, which no comparison of versions sees. */
export class JournalVersion implements StoredVersion {
  readonly scopeId: number;
  readonly commits: number;
  readonly sum: number | undefined;
  readonly #book: ScopeBook;

  constructor({ scopeId, commits, sum }: StoredVersion, book: ScopeBook) {
    this.scopeId = scopeId;
    this.commits = commits;
    this.sum = sum;
    this.#book = book;
  }

  /** The book of a version; an empty one where it comes from elsewhere. */
  static bookOf(version: StoredVersion | null): ScopeBook {
    return version instanceof JournalVersion ? version.#book : NOTHING_KNOWN;
  }
}
