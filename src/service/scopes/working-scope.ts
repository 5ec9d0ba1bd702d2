import type { Digest, RequestId, Scope, ScopeState, UserId } from "../../core/index.js";
import {
  type CommitBase,
  type DeletionCounts,
  isSameVersion,
  type LoadedScope,
  type ScopeDelta,
  StaleScopeError,
  type Store,
  type StoredVersion,
} from "../../store/api/store.js";
import { inSpan } from "../base/spans.js";

/** Watches one user's deletions, by any process, since some counts: work that began then must not restore what was deleted since. */
export class DeletionWatch {
  /** @param since what is known to have been deleted when the work began, or before */
  constructor(
    private readonly store: Pick<Store, "deletionsOf">,
    private readonly tenant: string,
    private readonly userId: UserId,
    readonly since: DeletionCounts,
  ) {}

  /** Watches from now on. */
  static async begin(store: Pick<Store, "deletionsOf">, tenant: string, userId: UserId): Promise<DeletionWatch> {
    return new DeletionWatch(store, tenant, userId, await store.deletionsOf(tenant, userId));
  }

  /** Whether the user or a memory of theirs was deleted since. */
  async isDeleted(): Promise<boolean> {
    return !this.covers(await this.store.deletionsOf(this.tenant, this.userId));
  }

  /** Whether what was planned then may still be sent: nothing was deleted since, as far as the store says. Never rejects. */
  async isSendable(): Promise<boolean> {
    return this.isDeleted().then(
      (isDeleted) => !isDeleted,
      () => false,
    );
  }

  /** Whether the whole user was deleted since. */
  async isUserDeleted(): Promise<boolean> {
    return this.since.users !== (await this.store.deletionsOf(this.tenant, this.userId)).users;
  }

  /** Whether something was deleted between what this knows and these counts; not where it knows more than they do. */
  isBehind({ users, memories }: DeletionCounts): boolean {
    return users > this.since.users || memories > this.since.memories;
  }

  /** Whether nothing had been deleted since by the time of these counts. */
  covers(counts: DeletionCounts): boolean {
    return isSameCount(this.since, counts);
  }
}

/** Whether nothing was deleted between two counts. */
function isSameCount(a: DeletionCounts, b: DeletionCounts): boolean {
  return a.users === b.users && a.memories === b.memories;
}

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

  /** Detects deletions of the user's data since the state that this builds on. */
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

/** How many of a scope's last requests are looked at; as many as a store looks at. */
const MOST_REQUESTS = 32;

/** One request that was composed since the scope was loaded. */
interface ComposedRequest {
  readonly id: RequestId;
  /** Milliseconds since the epoch. */
  readonly at: number;
  isOpen: boolean;
}

/**
 * The requests of a scope in memory that its engine may still be computing: `Store.underWaySince`, of which the store is asked only for what
 * was composed before the scope was loaded. Valid for as long as the scope's version is the stored one: any other process's commit loads the
 * scope again.
 */
class OpenRequests {
  /** Oldest first. */
  #composed: ComposedRequest[] = [];
  /** When the oldest open request from before the first of those was composed; null: none. Undefined: to be read. */
  #before: number | null | undefined;

  /** @param loadedAt when the newest request was composed that was stored before the scope was loaded; 0: none was */
  constructor(
    private readonly store: Pick<Store, "underWaySince">,
    private readonly scope: Scope,
    private readonly loadedAt: number,
  ) {}

  /** A request was composed and stored. */
  composed(id: RequestId, at: number): void {
    this.#composed.push({ id, at, isOpen: true });
    if (this.#composed.length > MOST_REQUESTS) this.#composed.shift();
  }

  /** Requests were reported, evicted or withdrawn. */
  ended(ids: readonly RequestId[]): void {
    for (const id of ids) {
      const known = this.#composed.find((request) => request.id === id);
      if (known !== undefined) known.isOpen = false;
      // Another one may be the oldest now.
      else this.#before = undefined;
    }
  }

  /** See `Store.underWaySince`. */
  async since(since: number): Promise<number | null> {
    const later = this.#composed.filter(({ at }) => at > since);
    if (later.length >= MOST_REQUESTS) return since;
    const own = later.find(({ isOpen }) => isOpen)?.at ?? null;
    // What is older than the first of them is before `since`, too.
    if (later.length < this.#composed.length) return own;
    if (this.loadedAt <= since) this.#before = null;
    else if (this.#before === undefined || (this.#before !== null && this.#before <= since)) {
      const oldest = await this.store.underWaySince(this.scope, since);
      this.#before = oldest === own ? null : oldest;
    }
    return this.#before ?? own;
  }
}
