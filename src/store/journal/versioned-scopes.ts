import { LruMap, type Scope } from "../../core/index.js";
import { isSameVersion, type StoredVersion } from "../api/store.js";

/**
 * What is known of scopes, each at one version of it: our commits advance it, another process's commit invalidates it. In memory only, and
 * bounded: the scope that was used longest ago goes first.
 */
export class VersionedScopes<T> {
  readonly #scopes = new LruMap<string, { version: StoredVersion; readonly value: T; readonly size: number }>();
  #size = 0;

  /** @param most scopes, and the sum of their sizes */
  constructor(private readonly most: { readonly scopes: number; readonly size?: number }) {}

  /** Counts as a use. */
  at(scope: Scope, version: StoredVersion | null): T | undefined {
    const name = scopeName(scope);
    const known = this.#scopes.peek(name);
    if (known === undefined || version === null || !isSameVersion(known.version, version)) return undefined;
    this.#scopes.get(name);
    return known.value;
  }

  set(scope: Scope, version: StoredVersion, value: T, size = 0): void {
    const name = scopeName(scope);
    this.#drop(name);
    this.#scopes.set(name, { version, value, size });
    this.#size += size;
    const { scopes, size: mostSize = Number.POSITIVE_INFINITY } = this.most;
    while (this.#size > mostSize || this.#scopes.size > scopes) this.#drop(this.#scopes.oldest ?? name);
  }

  /** After a commit that changed nothing of what is known. */
  advance(scope: Scope, before: StoredVersion | null, next: StoredVersion): void {
    const name = scopeName(scope);
    const known = this.at(scope, before) === undefined ? undefined : this.#scopes.peek(name);
    if (known === undefined) this.#drop(name);
    else known.version = next;
  }

  delete(scope: Scope): void {
    this.#drop(scopeName(scope));
  }

  #drop(name: string): void {
    this.#size -= this.#scopes.peek(name)?.size ?? 0;
    this.#scopes.delete(name);
  }
}

/** A scope in one text. */
function scopeName({ tenant, userId, agentId }: Scope): string {
  return JSON.stringify([tenant, userId, agentId]);
}
