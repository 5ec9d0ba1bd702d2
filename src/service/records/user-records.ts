/* records: what is stored of users: forgotten, exported, updated, expired, added, explained. Every change is a job in its user's queue. */

import { setImmediate as setImmediateAsync } from "node:timers/promises";
import {
  canonicalText,
  cutText,
  ENDED,
  MAX_MEMORY_CHARACTERS,
  type MemoryEnd,
  type MemoryId,
  type UserId,
} from "../../core/index.js";
import type { KeptMemory } from "../../memory/memory-source.js";
import { type ExportedUser, StoreUnavailableError, type User, type UsersFound } from "../../store/store.js";
import type { Forgetting } from "../base/call-types.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import type { TenantQueues } from "../scopes/user-queues.js";
import { deltaOf, type WorkingScope, type WorkingScopes } from "../scopes/working-scopes.js";

/** What a memory's owner did with it. */
export type MemoryEvent =
  | { readonly kind: "deleted"; readonly memoryId: MemoryId }
  | {
      readonly kind: "updated";
      readonly memoryId: MemoryId;
      /** Null: unchanged. */
      readonly text: string | null;
      readonly end?: MemoryEnd | undefined;
      readonly origin?: string;
    };

export class UserRecords {
  constructor(
    private readonly parts: MemprefixParts,
    private readonly jobs: TenantQueues,
    private readonly scopes: WorkingScopes,
  ) {}

  /** Forgets a memory with every agent: see `Store.forget`. Rejects with `MemorySourceError`; what was forgotten by then stays forgotten. */
  forgetMemory(userId: UserId, memoryId: MemoryId): Promise<Forgetting> {
    return this.jobs.run(userId, () => this.#forgetMemory(userId, memoryId));
  }

  /** The same for memories that an external source no longer has. Call it from the user's queue. */
  async forgetGone(userId: UserId, memoryIds: readonly MemoryId[]): Promise<void> {
    for (const memoryId of memoryIds) await this.#forgetMemory(userId, memoryId);
  }

  async #forgetMemory(userId: UserId, memoryId: MemoryId): Promise<Forgetting> {
    const { source, store, now, residency } = this.parts;
    const own = this.jobs.scopeOf(userId, null);
    const isInSource = source?.owned === true;
    const texts = await this.#textsInSource(own, memoryId);
    const { newestAt, ...forgotten } = await store.forget(own, memoryId, { texts, isInSource, at: now() });
    this.scopes.dropUser(this.jobs.tenant, userId);
    const ttlMs = residency?.ttlMs ?? null;
    const cachedUntil = newestAt !== null && ttlMs !== null ? newestAt + ttlMs : null;
    const deletedFromSource = isInSource ? await source.delete(own, memoryId, this.jobs.closing) : null;
    return {
      memoryId,
      ...forgotten,
      engineCache: { mayHold: newestAt !== null, until: cachedUntil },
      deletedFromSource,
    };
  }

  /** No prompt may have had the source's text yet. If the source fails, the deletion reports it. */
  async #textsInSource(own: User, memoryId: MemoryId): Promise<readonly string[]> {
    const { source } = this.parts;
    const listed = source?.owned ? await source.list?.(own, this.jobs.closing).catch(() => []) : [];
    return (listed ?? []).filter(({ id }) => id === memoryId).map(({ text }) => canonicalText(text));
  }

  forgetUser(userId: UserId): Promise<{ readonly userId: UserId; readonly scopes: number }> {
    return this.jobs.run(userId, async () => {
      const { source, store, now } = this.parts;
      const user = { tenant: this.jobs.tenant, userId };
      const isInSource = source?.owned === true;
      const scopes = await store.deleteUser(user, isInSource, now());
      this.scopes.dropUser(this.jobs.tenant, userId);
      if (isInSource) await source.deleteUser(user, this.jobs.closing);
      // Running additions find the user deleted, and remove what they added.
      await this.jobs.runAside(userId, () => undefined);
      return { userId, scopes };
    });
  }

  /** Finishes deletions that earlier processes left pending in the source, for every tenant's users, one at a time. */
  async finishDeletions(onFault: (error: unknown) => void, signal: AbortSignal): Promise<void> {
    const { store, source } = this.parts;
    if (source === null || !source.owned) return;
    await this.#walk<number>(
      signal,
      0,
      (after) => store.usersPendingInSource(after),
      async (user) => {
        // Any call to the source for this user finishes them first.
        await this.jobs.runOf(user, () => source.list?.(user, this.jobs.closing)).catch(onFault);
      },
    );
  }

  /** Everything stored of a user, with every agent. Rejects with `MemorySourceError` if memprefix's own source fails. */
  exportUser(userId: UserId, signal?: AbortSignal): Promise<UserExport> {
    const { store, source } = this.parts;
    const user = { tenant: this.jobs.tenant, userId };
    this.jobs.rejectIfBusy(userId);
    return this.jobs.run(userId, async () => {
      const stored = await store.exportUser(user);
      if (source === null) return { userId, ...stored, source: null };
      const list = source.owned ? source.list?.bind(source) : undefined;
      const memories = list === undefined ? null : await this.jobs.untilClosing(signal, (stop) => list(user, stop));
      return { userId, ...stored, source: { name: source.name, memories } };
    });
  }

  /** Applies an owner's event to every user of the tenant who has the memory. Other requests run meanwhile. Gives how many users changed. */
  async takeMemoryEvent(event: MemoryEvent, signal: AbortSignal): Promise<number> {
    const { store } = this.parts;
    let changed = 0;
    const withMemory = (after: string) => store.usersWithMemory(this.jobs.tenant, event.memoryId, after);
    await this.#walk<string>(signal, "", withMemory, async ({ userId }) => {
      const isChanged = await this.jobs.run(userId, async () => {
        if (event.kind === "updated") return this.#update(userId, event);
        await this.#forgetMemory(userId, event.memoryId);
        return true;
      });
      if (isChanged) changed++;
    });
    return changed;
  }

  async #update(userId: UserId, event: Extract<MemoryEvent, { readonly kind: "updated" }>): Promise<boolean> {
    let isChanged = false;
    for (const scope of await this.parts.store.scopesOf({ tenant: this.jobs.tenant, userId }))
      if (await this.scopes.use(scope, (working) => updateIn(working, event))) isChanged = true;
    return isChanged;
  }

  /** Removes what was unused since `before`, of all tenants. Gives the number of turns. Damaged scopes do not stop it: it rejects at the end. */
  async dropUnused(before: number, signal: AbortSignal): Promise<number> {
    const { store } = this.parts;
    let dropped = 0;
    let damage: StoreUnavailableError | null = null;
    await this.#walk<number>(
      signal,
      0,
      (after) => store.usersWithOldTurns(before, after),
      async (user) => {
        try {
          dropped += await this.jobs.runOf(user, async () => {
            const count = await store.expire(user, before);
            if (count > 0) this.scopes.dropUser(user.tenant, user.userId);
            return count;
          });
        } catch (error) {
          // Any other fault affects the whole store.
          if (!(error instanceof StoreUnavailableError && error.fault === "damaged")) throw error;
          damage ??= error;
        }
      },
    );
    if (damage !== null) throw damage;
    return dropped;
  }

  dropFigures(before: number, most: number): Promise<void> {
    return this.parts.store.prompts.sweep(before, most);
  }

  /** Works on users page by page; other requests run in between. */
  async #walk<Cursor extends number | string>(
    signal: AbortSignal,
    begin: Cursor,
    find: (after: Cursor) => Promise<UsersFound<Cursor>>,
    work: (user: User) => Promise<void>,
  ): Promise<void> {
    for (let after: Cursor | null = begin; after !== null && !signal.aborted; ) {
      const { users, next }: UsersFound<Cursor> = await find(after);
      for (const user of users) {
        if (signal.aborted) return;
        await work(user);
      }
      after = next;
      await setImmediateAsync();
    }
  }
}

/** Gives a known memory a new text or an end, for later prompts. False if the scope does not know it, or nothing changes. */
async function updateIn(
  working: WorkingScope,
  { kind: _, memoryId, text, end, ...said }: Extract<MemoryEvent, { readonly kind: "updated" }>,
): Promise<boolean> {
  const { state } = working;
  const { register } = state;
  if (register.textsOf(memoryId).size === 0) return false;
  const until = end?.until ?? register.memories.factsOf(memoryId).until;
  if (text !== null) register.resolve([{ ...said, id: memoryId, text: cutText(text, MAX_MEMORY_CHARACTERS) }]);
  if (end?.until === ENDED) register.withdraw([{ id: memoryId, replacedBy: end.replacedBy }]);
  else register.setUntil(memoryId, until);
  const delta = deltaOf(state);
  if (delta.changes.register.versions.length === 0) return false;
  await working.commit((held) => held.commitChanges(delta));
  return true;
}

export interface UserExport extends ExportedUser {
  readonly userId: UserId;
  readonly source: {
    readonly name: string;
    /** Null: another system owns and exports them. */
    readonly memories: readonly KeptMemory[] | null;
  } | null;
}
