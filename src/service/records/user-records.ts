/*
 * records: the data held on users, beside what prompts need.
 * Enters: a user, a memory, or an event of a memory's owner. Leaves: data exported, explained, added, updated, forgotten for good, or
 * expired with age, in the store and in a source of memprefix's own. Deletions by several processes end in the same state.
 */

import { setImmediate as setImmediateAsync, setTimeout as setTimeoutAsync } from "node:timers/promises";
import { KEEPS_ALL, type MemoryId, type Scope, type UserId } from "../../core/index.js";
import type { KeptMemory, MemorySource } from "../../memory/memory-source.js";
import { type ExportedUser, type ScopesFound, type Store, StoreUnavailableError } from "../../store/api/store.js";
import type { KeptUsage } from "../../store/api/usage-log.js";
import type { Forgetting } from "../base/call-types.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import type { WorkingScopes } from "../scopes/working-scopes.js";
import { ScopeExpiry } from "./expiry.js";
import { type MemoryEvent, MemoryForgetting, updateIn } from "./memory-forgetting.js";

/** Milliseconds between two transactions of expiry. */
const PAUSE_BETWEEN_PIECES_MS = 2;
/** Turns per transaction of expiry. */
const MAX_EXPIRED_AT_ONCE = 20;
/** Milliseconds for another process that expires the same scope, before it is scanned again. */
const PAUSE_BETWEEN_SCANS_MS = 100;
/** Scans of a scope in one sweep. What is left after them, the other process or the next sweep expires. */
const MAX_SCANS = 10;

/**
 * Milliseconds between a deletion and its answer, at least: another process may have asked the store right before it, and sends what it had
 * planned when the answer reaches it. No lock is held while something is sent, so this has to be longer than that takes.
 */
const SETTLING_MS = 50;

/** What is recorded of the prompts of a tenant's users. */
export interface UserUsage {
  forget(userId: UserId): Promise<void>;
  exported(userId: UserId): Promise<readonly KeptUsage[]>;
}

/** The records of a tenant's users: exported, forgotten, updated, expired. */
export class UserRecords {
  constructor(
    private readonly parts: MemprefixParts,
    private readonly jobs: TenantQueues,
    private readonly scopes: WorkingScopes,
    private readonly usage: UserUsage,
  ) {}

  /**
   * Forgets a user's memory for good, with every agent: its text is erased from everything memprefix stores, replayed turns included, and its
   * id is never sent again. Rejects with `MemorySourceError` where memprefix's own source fails; what was erased by then stays erased.
   */
  async forgetMemory(userId: UserId, memoryId: MemoryId): Promise<Forgetting> {
    const forgetting = await this.jobs.run(userId, () => this.#forgetMemory(userId, memoryId, setTimeoutAsync));
    await this.parts.store.erased();
    return forgetting;
  }

  /** The same for memories that a source of another's no longer has. Call it from the user's queue. */
  async forgetGone(userId: UserId, memoryIds: readonly MemoryId[]): Promise<void> {
    for (const memoryId of memoryIds) await this.#forgetMemory(userId, memoryId, async () => {});
  }

  /** @param settle waits so many milliseconds */
  async #forgetMemory(
    userId: UserId,
    memoryId: MemoryId,
    settle: (ms: number) => Promise<unknown>,
  ): Promise<Forgetting> {
    const own = this.jobs.scopeOf(userId, null);
    const forgotten = await new MemoryForgetting(this.parts, this.jobs, this.scopes, own, memoryId).run();
    // A scope in memory that was never stored is not among those of the store.
    this.scopes.dropUser(this.jobs.tenant, userId);
    const { source } = this.parts;
    const deleting = source?.owned ? source.delete(own, memoryId, this.jobs.closing) : null;
    const [deletedFromSource] = await Promise.all([deleting, settle(SETTLING_MS)]);
    return { memoryId, ...forgotten, deletedFromSource };
  }

  /**
   * Forgets a user with everything memprefix stores of them, with every agent. Rejects where the recorded usage cannot be deleted, once
   * everything else is; a repeated call tries again.
   */
  async forgetUser(userId: UserId): Promise<{ readonly userId: UserId; readonly scopes: number }> {
    const { scopes, usage } = await this.jobs.run(userId, async () => {
      // First: once the user is deleted here, nobody looks again.
      const [usage] = await Promise.allSettled([this.usage.forget(userId)]);
      const { source, store } = this.parts;
      const isInSource = source?.owned === true;
      const scopes = await retryWhileLocked(() => store.deleteUser(this.jobs.tenant, userId, isInSource));
      this.scopes.dropUser(this.jobs.tenant, userId);
      const deleting = isInSource ? source.deleteUser({ tenant: this.jobs.tenant, userId }, this.jobs.closing) : null;
      // Additions that go on find the user deleted, and remove what they added.
      const added = this.jobs.runAside(userId, () => undefined);
      await Promise.all([deleting, added, setTimeoutAsync(SETTLING_MS)]);
      return { scopes, usage };
    });
    await this.parts.store.erased();
    if (usage.status === "rejected") throw usage.reason;
    return { userId, scopes };
  }

  /**
   * Finishes deletions that earlier processes left pending in the source: for every tenant's users, one at a time, from each user's queue.
   */
  async finishDeletions(onFault: (error: unknown) => void, signal: AbortSignal): Promise<void> {
    const { store, source } = this.parts;
    if (source === null || !source.owned) return;
    for (const user of await store.usersPendingInSource()) {
      if (signal.aborted) return;
      // Any call of the source for this user finishes them first.
      await this.jobs.runOf(user, () => source.list?.(user, this.jobs.closing)).catch(onFault);
    }
    await store.erased();
  }

  /** Everything held on a user, with every agent. Rejects with `MemorySourceError` where memprefix's own source fails. */
  exportUser(userId: UserId, signal?: AbortSignal): Promise<UserExport> {
    const { store, source } = this.parts;
    this.jobs.rejectIfBusy(userId);
    return this.jobs.run(userId, async () => {
      const usage = await this.usage.exported(userId);
      const exported = await this.jobs.untilClosing(signal, (stop) =>
        exportUser(store, source, this.jobs.tenant, userId, stop),
      );
      return { ...exported, usage };
    });
  }

  /**
   * Applies an event of a memory's owner: a deleted memory is forgotten for every user of the tenant that has it, an updated one gets its new
   * text. Scans all users' memories, in steps between which other requests run. Gives the number of users that it changed.
   */
  async takeMemoryEvent(event: MemoryEvent, signal: AbortSignal): Promise<number> {
    const { store } = this.parts;
    const changed = new Set<UserId>();
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      const found: ScopesFound = await store.scopesWithMemory(this.jobs.tenant, event.memoryId, after);
      for (const scope of found.scopes) {
        if (event.kind === "updated") {
          const isChanged = await this.jobs.run(scope.userId, () =>
            retryWhileLocked(() => this.scopes.use(scope, (working) => updateIn(working, store, event))),
          );
          if (isChanged) changed.add(scope.userId);
        } else if (!changed.has(scope.userId)) {
          // Once for all of them.
          await this.jobs.run(scope.userId, () => this.#forgetMemory(scope.userId, event.memoryId, async () => {}));
          changed.add(scope.userId);
        }
      }
      after = found.next;
      await setImmediateAsync();
    }
    if (event.kind === "deleted" && changed.size > 0)
      await Promise.all([this.parts.store.erased(), setTimeoutAsync(SETTLING_MS)]);
    return changed.size;
  }

  /**
   * Expires what was not used since a time (milliseconds since the epoch), for every tenant's users, one at a time, from each user's queue.
   * Gives the number of expired turns. Where scopes are damaged, all others expire before it rejects with the first one's error.
   */
  async dropUnused(before: number, signal: AbortSignal): Promise<number> {
    const { store } = this.parts;
    let dropped = 0;
    let damage: StoreUnavailableError | null = null;
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      const found: ScopesFound = await store.scopesWithOldTurns(before, after);
      for (const scope of found.scopes) {
        if (signal.aborted) break;
        try {
          dropped += await this.#dropUnusedOf(scope, before, signal);
        } catch (error) {
          // Any other fault is the whole store's.
          if (!(error instanceof StoreUnavailableError && error.fault === "damaged")) throw error;
          damage ??= error;
        }
      }
      after = found.next;
      await setImmediateAsync();
    }
    // A damaged scope may have lost turns before the damage was met.
    if (dropped > 0 || damage !== null) await store.emptyLog();
    await store.erased();
    if (damage !== null) throw damage;
    return dropped;
  }

  /** Other requests, the same user's too, run between two transactions. */
  async #dropUnusedOf(scope: Scope, before: number, signal: AbortSignal): Promise<number> {
    const { store, residency = KEEPS_ALL } = this.parts;
    let dropped = 0;
    for (let scans = 0; scans < MAX_SCANS; scans++) {
      const expiry = new ScopeExpiry(store, scope, before, residency);
      dropped += await this.#dropBy(expiry, scope, signal);
      if (!expiry.isOutdated || signal.aborted) break;
      await setTimeoutAsync(PAUSE_BETWEEN_SCANS_MS);
    }
    return dropped;
  }

  async #dropBy(expiry: ScopeExpiry, scope: Scope, signal: AbortSignal): Promise<number> {
    const { maxExpiredAtOnce = MAX_EXPIRED_AT_ONCE } = this.parts;
    while (await this.scopes.read(scope, (working) => expiry.scan(working))) await setImmediateAsync();
    let dropped = 0;
    while (expiry.left > 0 && !signal.aborted) {
      dropped += await this.jobs.runOf(scope, () =>
        retryWhileLocked(async () => {
          const settle = await this.scopes.use(scope, (working) => expiry.expireIn(working, maxExpiredAtOnce));
          // The scope itself may have expired.
          if (expiry.left <= maxExpiredAtOnce) this.scopes.drop(scope);
          return settle();
        }),
      );
      // About as long as a compose takes: other requests come first.
      await setTimeoutAsync(PAUSE_BETWEEN_PIECES_MS);
    }
    return dropped;
  }
}

/** Everything that is held on a user. */
export interface UserExport extends ExportedUser {
  readonly userId: UserId;
  /** What was recorded of the user's prompts. */
  readonly usage: readonly KeptUsage[];
  /** Null: no source is configured. */
  readonly source: {
    readonly name: string;
    /** Null: another system owns the memories, and exports them itself. */
    readonly memories: readonly KeptMemory[] | null;
  } | null;
}

/** Collects a user's data from the store and from memprefix's own source. Rejects with `MemorySourceError` where that source fails. */
async function exportUser(
  store: Store,
  source: MemorySource | null,
  tenant: string,
  userId: UserId,
  signal: AbortSignal,
): Promise<Omit<UserExport, "usage">> {
  const stored = await store.exportUser(tenant, userId, () => setImmediateAsync());
  if (source === null) return { userId, ...stored, source: null };
  const memories = (source.owned ? await source.list?.({ tenant, userId }, signal) : null) ?? null;
  return { userId, ...stored, source: { name: source.name, memories } };
}
