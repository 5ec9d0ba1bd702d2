import { type Digest, type Scope, UseOrderMap } from "../../core/index.js";
import { isSameVersion, type StoredVersion } from "../api/store.js";
import { scopeName } from "./known-sections.js";

/** Rows that are remembered, of all scopes: some 20 MB, … */
const MOST_ROWS = 200_000;
/** … of one, … */
const MOST_OF_SCOPE = 20_000;
/** … and scopes, which take half a kilobyte each. */
const MOST_SCOPES = 10_000;

/** Rows that a scope had at a version, those used last at the end. */
interface RememberedRows {
  version: StoredVersion;
  readonly rows: Set<Digest>;
}

/**
 * Which shared rows are stored, so that they are not written again with every prompt that refers to them. A row is remembered from the
 * commit that wrote it, at the version that this made. Whatever removes rows makes another version, and is not told here; a commit on a
 * version that is not the stored one is rejected. So no record refers to a row that was removed.
 */
export class KnownRows {
  readonly #scopes = new UseOrderMap<string, RememberedRows>();
  #size = 0;

  constructor(
    private readonly mostRows = MOST_ROWS,
    private readonly mostOfScope = MOST_OF_SCOPE,
  ) {}

  /** The rows of a scope that are known to be stored at a version. */
  at(scope: Scope, version: StoredVersion | null): ReadonlySet<Digest> {
    return this.#at(scopeName(scope), version)?.rows ?? new Set();
  }

  /** A commit that removed no row has taken a scope to its next version; with these rows, used by it. */
  committed(scope: Scope, before: StoredVersion | null, next: StoredVersion, used: Iterable<Digest> = []): void {
    const name = scopeName(scope);
    const rows = this.#at(name, before)?.rows ?? new Set();
    this.#drop(name);
    for (const row of used) {
      rows.delete(row);
      rows.add(row);
    }
    if (rows.size > this.mostOfScope)
      for (const oldest of rows) {
        if (rows.size <= this.mostOfScope) break;
        rows.delete(oldest);
      }
    if (rows.size === 0) return;
    this.#scopes.set(name, { version: next, rows });
    this.#size += rows.size;
    while (this.#size > this.mostRows || this.#scopes.size > MOST_SCOPES) this.#drop(this.#scopes.oldest ?? name);
  }

  #at(name: string, version: StoredVersion | null): RememberedRows | undefined {
    const remembered = this.#scopes.get(name);
    return version !== null && remembered !== undefined && isSameVersion(remembered.version, version)
      ? remembered
      : undefined;
  }

  #drop(name: string): void {
    this.#size -= this.#scopes.get(name)?.rows.size ?? 0;
    this.#scopes.delete(name);
  }
}
