import { setImmediate as setImmediateAsync, setTimeout as setTimeoutAsync } from "node:timers/promises";
import {
  canonicalText,
  KEEPS_ALL,
  type Label,
  MAX_MEMORY_CHARACTERS,
  type MemoryId,
  type Scope,
  type UserId,
} from "../../core/index.js";
import type { FoundQuotes, ScopesFound } from "../../store/api/store.js";
import type { Forgetting } from "../base/answers.js";
import type { MemstemParts } from "../base/memstem-parts.js";
import type { UserTurns } from "../scopes/user-turns.js";
import { whileBusy } from "../scopes/while-busy.js";
import type { WorkingScopes } from "../scopes/working-scopes.js";
import { Expiring } from "./expiring.js";
import { exportUser, type UserExport } from "./exporting.js";
import { forgetIn } from "./forgetting.js";
import { type MemoryEvent, updateIn } from "./memory-events.js";

/** Milliseconds between two pieces while what nobody used is dropped, of one user or of the next. */
const PAUSE_BETWEEN_PIECES_MS = 2;
/** Turns in a piece. */
const MAX_EXPIRED_AT_ONCE = 20;

/** What is held on a tenant's users beside what prompts need: given out, forgotten, brought up to date, dropped with age. */
export class UserRecords {
  constructor(
    private readonly parts: MemstemParts,
    private readonly turns: UserTurns,
    private readonly scopes: WorkingScopes,
  ) {}

  /**
   * Forgets a memory of a user for good, with every agent: its text is gone from everything memstem keeps, replay included, and its id is
   * never sent again. Rejects with `MemorySourceError` where the source that memstem keeps fails; what it has done by then stays.
   */
  async forgetMemory(userId: UserId, memoryId: MemoryId): Promise<Forgetting> {
    const forgetting = await this.turns.run(userId, async () => {
      const own = this.turns.scopeOf(userId, null);
      const quotes = await this.#quotesOf(own, memoryId);
      const scopes = this.parts.store.scopesOf(this.turns.tenant, userId);
      const labels = new Set<Label>();
      for (const scope of scopes.some(({ agentId }) => agentId === null) ? scopes : [...scopes, own]) {
        const { store, now, source } = this.parts;
        const isInSource = source?.owned === true;
        const gone = await whileBusy(() =>
          this.scopes.use(scope, (working) => forgetIn(working, store, scope, memoryId, quotes, isInSource, now())),
        );
        for (const label of gone) labels.add(label);
      }
      // An agent's scope that was looked at but never stored would else go on without knowing.
      this.scopes.dropUser(this.turns.tenant, userId);
      const { source } = this.parts;
      const deletedFromSource = source?.owned ? await source.delete(own, memoryId, this.turns.closing) : null;
      return { memoryId, labels: [...labels], deletedFromSource };
    });
    await this.parts.store.erased();
    return forgetting;
  }

  /** Where a memory is quoted, of which all is erased already where there are several agents. */
  async #quotesOf(own: Scope, memoryId: MemoryId): Promise<FoundQuotes> {
    const { store, source } = this.parts;
    // What the source says may be in no prompt yet. Where it fails, deleting will say so.
    const listed = source?.owned ? await source.list?.(own, this.turns.closing).catch(() => []) : [];
    const kept = (listed ?? []).filter(({ id }) => id === memoryId).map(({ text }) => canonicalText(text));
    const quotes = await store.findQuotes(own.tenant, own.userId, memoryId, kept, () => setImmediateAsync());
    if (quotes.scopes.size > 1) await whileBusy(() => store.eraseQuotes(quotes));
    return quotes;
  }

  /** Forgets a user with everything memstem keeps of them, with every agent. */
  async forgetUser(userId: UserId): Promise<{ readonly userId: UserId; readonly scopes: number }> {
    const forgotten = await this.turns.run(userId, async () => {
      const scopes = await whileBusy(() => {
        const isInSource = this.parts.source?.owned === true;
        const deleted = this.parts.store.deleteUser(this.turns.tenant, userId, isInSource);
        this.scopes.dropUser(this.turns.tenant, userId);
        return deleted;
      });
      if (this.parts.source?.owned)
        await this.parts.source.deleteUser({ tenant: this.turns.tenant, userId }, this.turns.closing);
      return { userId, scopes };
    });
    await this.parts.store.erased();
    return forgotten;
  }

  /**
   * Finishes what processes before this one deleted and did not come to delete from the source as well: every tenant's users, one after the
   * other, each in its turn.
   */
  async finishDeletions(onFault: (error: unknown) => void, signal: AbortSignal): Promise<void> {
    const { store, source } = this.parts;
    if (source === null || !source.owned) return;
    for (const user of store.usersPendingInSource()) {
      if (signal.aborted) return;
      // Whatever is asked of the source for this user finishes them first.
      await this.turns.runOf(user, () => source.list?.(user, this.turns.closing)).catch(onFault);
    }
    await store.erased();
  }

  /** Everything held on a user, with every agent. Rejects with `MemorySourceError` where the source that memstem keeps fails. */
  exportUser(userId: UserId, signal?: AbortSignal): Promise<UserExport> {
    const { store, source } = this.parts;
    this.turns.refuseIfBusy(userId);
    return this.turns.run(userId, async () => {
      await store.settled;
      return this.turns.untilClosing(signal, (stop) => exportUser(store, source, this.turns.tenant, userId, stop));
    });
  }

  /**
   * The owner of a memory says what happened to it: a deleted one is forgotten for every user of the tenant that has it, and an updated one
   * has its new text. Looks through all users' memories, while others have their turn. Gives the number of users that it changed something
   * for.
   */
  async takeMemoryEvent(event: MemoryEvent, signal: AbortSignal): Promise<number> {
    const { store, maxMemoryCharacters = MAX_MEMORY_CHARACTERS } = this.parts;
    const changed = new Set<UserId>();
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      const found: ScopesFound = store.scopesWithMemory(this.turns.tenant, event.memoryId, after);
      for (const scope of found.scopes) {
        if (event.kind === "updated") {
          const isChanged = await this.turns.run(scope.userId, () =>
            whileBusy(() =>
              this.scopes.use(scope, (working) => updateIn(working, store, scope, event, maxMemoryCharacters)),
            ),
          );
          if (isChanged) changed.add(scope.userId);
        } else if (!changed.has(scope.userId)) {
          await this.forgetMemory(scope.userId, event.memoryId);
          changed.add(scope.userId);
        }
      }
      after = found.next;
      await setImmediateAsync();
    }
    return changed.size;
  }

  /**
   * Drops what nobody used since a time (milliseconds since the epoch), of every tenant's users, one after the other, each in its turn.
   * Gives the number of turns that went.
   */
  async dropUnused(before: number, signal: AbortSignal): Promise<number> {
    const { store } = this.parts;
    let dropped = 0;
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      const found: ScopesFound = store.scopesWithOldTurns(before, after);
      for (const scope of found.scopes) {
        if (signal.aborted) break;
        dropped += await this.#dropUnusedOf(scope, before, signal);
      }
      after = found.next;
      await setImmediateAsync();
    }
    if (dropped > 0) store.emptyLog();
    await store.erased();
    return dropped;
  }

  /** Between two pieces others have their turn, those of the same user too. */
  async #dropUnusedOf(scope: Scope, before: number, signal: AbortSignal): Promise<number> {
    const { store, residency = KEEPS_ALL, maxExpiredAtOnce = MAX_EXPIRED_AT_ONCE } = this.parts;
    const expiring = new Expiring(store, scope, before, residency);
    while (this.scopes.use(scope, (working) => expiring.look(working))) await setImmediateAsync();
    let dropped = 0;
    while (expiring.left > 0 && !signal.aborted) {
      dropped += await this.turns.runOf(scope, () =>
        whileBusy(() => {
          const settle = this.scopes.use(scope, (working) => expiring.expireIn(working, maxExpiredAtOnce));
          // The scope itself may have gone.
          if (expiring.left <= maxExpiredAtOnce) this.scopes.drop(scope);
          return settle();
        }),
      );
      // As long as a compose takes or two: others come first.
      await setTimeoutAsync(PAUSE_BETWEEN_PIECES_MS);
    }
    return dropped;
  }
}
