import type { StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type { BehindSnapshot } from "./snapshot-policy.js";

/** Instructions remembered as stored: an agent has few; of one whose instructions change with every prompt, the newest. */
const MOST_KNOWN_HEADS = 64;

/** What a process knows of a scope's records beyond its version: when a snapshot is due, and what need not be written again. */
export interface ScopeBook {
  readonly behind: BehindSnapshot;
  /** Instructions that are known to be stored. */
  readonly heads: ReadonlySet<SealedDigest>;
}

const NOTHING_KNOWN: ScopeBook = { behind: { records: 0, length: 0, snapshotLength: 0 }, heads: new Set() };

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

/** The known heads with one more. */
export function withHead(heads: ReadonlySet<SealedDigest>, head: SealedDigest): ReadonlySet<SealedDigest> {
  if (heads.has(head)) return heads;
  return new Set([...[...heads].slice(1 - MOST_KNOWN_HEADS), head]);
}
