import type { Digest, Scope, ScopeState } from "../../core/index.js";
import {
  type CommitBase,
  isSameVersion,
  type LoadedScope,
  type ScopeDelta,
  StaleScopeError,
  type Store,
  type StoredVersion,
} from "../../store/api/store.js";
import { inSpan } from "../base/spans.js";
import { DeletionWatch, isSameCount } from "./deletion-watch.js";
import { OpenRequests } from "./open-requests.js";

/**
 * A scope in memory, and what its next commit builds on. It may be older than what is stored: a commit finds out, and whatever leaves
 * without one needs {@link check}.
 */
export class WorkingScope {
  readonly requests: OpenRequests;
  /** Digest of the instructions of its newest single prompt, if by this process. */
  newestHead: Digest | null = null;
  #base: CommitBase;

  constructor(
    readonly scope: Scope,
    readonly state: ScopeState,
    { version, deletions, newestAt }: Pick<LoadedScope, "version" | "deletions" | "newestAt">,
    private readonly store: Store,
  ) {
    this.#base = { version, deletions };
    this.requests = new OpenRequests(store, scope, newestAt);
  }

  /** Another object after each commit. */
  get base(): CommitBase {
    return this.#base;
  }

  /** Notices what was deleted of the user since the state that this builds on. */
  watch(): DeletionWatch {
    return new DeletionWatch(this.store, this.scope.tenant, this.scope.userId, this.#base.deletions);
  }

  /** Waits until a commit is durable, and builds on it. Rejects as the commit does; then the scope in memory is ahead of the stored one. */
  async commit(write: (base: CommitBase) => Promise<StoredVersion>): Promise<void> {
    const { deletions } = this.#base;
    const version = await inSpan("memstem.commit", {}, () => write(this.#base));
    this.#base = { version, deletions };
  }

  /**
   * Rejects with {@link StaleScopeError} where another process has changed the scope since it was loaded. Otherwise everything that was read
   * of it in the store before belongs to this state.
   */
  async check(): Promise<void> {
    const { version, deletions } = this.#base;
    const { tenant, userId } = this.scope;
    const [stored, deleted] = await Promise.all([
      this.store.versionOf(this.scope),
      this.store.deletionsOf(tenant, userId),
    ]);
    if (!isSameVersion(stored, version) || !isSameCount(deleted, deletions))
      throw new StaleScopeError("the scope was changed by another process");
  }
}

/** What changed in a scope since the last commit, for the next one. */
export function deltaOf(state: ScopeState): ScopeDelta {
  return { changes: state.drain(), whole: () => state.stored() };
}
