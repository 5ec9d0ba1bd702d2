import type { Digest, Scope } from "../../core/index.js";
import type { StoredVersion } from "../api/store.js";
import { VersionedScopes } from "./versioned-scopes.js";

/** Rows that are remembered, of all scopes: some 20 MB, … */
const MOST_ROWS = 200_000;
/** … of one, … */
const MOST_OF_SCOPE = 20_000;
/** … and scopes, which take half a kilobyte each. */
const MOST_SCOPES = 10_000;

/**
 * Which shared rows are stored, so that they are not written again with every prompt that refers to them. A row is remembered from the
 * commit that wrote it, at the version that this made. Whatever removes rows makes another version, and is not reported here; a commit on a
 * version that is not the stored one is rejected. So no record refers to a row that was removed.
 */
export class KnownRows {
  /** Of each scope, those used last at the end. */
  readonly #scopes: VersionedScopes<Set<Digest>>;

  constructor(
    mostRows = MOST_ROWS,
    private readonly mostOfScope = MOST_OF_SCOPE,
  ) {
    this.#scopes = new VersionedScopes({ scopes: MOST_SCOPES, size: mostRows });
  }

  /** The rows of a scope that are known to be stored at a version. */
  at(scope: Scope, version: StoredVersion | null): ReadonlySet<Digest> {
    return this.#scopes.at(scope, version) ?? new Set();
  }

  /** A commit that removed no row has taken a scope to its next version; with these rows, used by it. */
  committed(scope: Scope, before: StoredVersion | null, next: StoredVersion, used: Iterable<Digest> = []): void {
    const rows = this.#scopes.at(scope, before) ?? new Set();
    for (const row of used) {
      rows.delete(row);
      rows.add(row);
    }
    for (const oldest of rows) {
      if (rows.size <= this.mostOfScope) break;
      rows.delete(oldest);
    }
    if (rows.size === 0) this.#scopes.delete(scope);
    else this.#scopes.set(scope, next, rows, rows.size);
  }
}
