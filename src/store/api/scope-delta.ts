import type { ScopeChanges, StoredScope } from "../../core/index.js";

/** What a commit changed in a scope, and the scope as it is now. */
export interface ScopeDelta {
  readonly changes: ScopeChanges;
  /** The whole state, `changes` included, for a snapshot. Called at most once, before the commit returns its promise. */
  readonly whole: () => StoredScope;
}
