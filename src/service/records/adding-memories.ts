import type { AgentId, RetrievedMemory, UserId } from "../../core/index.js";
import { type MemorySource, MemorySourceError, type NewMemory } from "../../memory/memory-source.js";
import type { Store } from "../../store/api/store.js";
import { DeletedMeanwhileError } from "../base/errors.js";
import { DeletionWatch } from "../scopes/deletions-meanwhile.js";
import type { UserTurns } from "../scopes/user-turns.js";

/** Adds memories of a tenant's users to the source, each in its user's turn, and none to what was deleted meanwhile. */
export class MemoryAdditions {
  constructor(
    private readonly source: MemorySource | null,
    private readonly store: Pick<Store, "deletionsOf">,
    private readonly turns: UserTurns,
  ) {}

  /** Watches, from now on, whether a user or a memory of theirs is deleted. */
  watch(userId: UserId): DeletionWatch {
    return new DeletionWatch(this.store, this.turns.tenant, userId);
  }

  /**
   * Rejects with {@link MemorySourceError}, with {@link BusyUserError} like `compose`, and with {@link DeletedMeanwhileError} where another
   * process deleted the user meanwhile; then nothing of it stays.
   */
  async add(
    userId: UserId,
    agentId: AgentId | null,
    memories: readonly NewMemory[],
    signal?: AbortSignal,
  ): Promise<readonly RetrievedMemory[]> {
    return this.#add(userId, agentId, memories, signal, () => {
      const watch = this.watch(userId);
      return () => watch.isUserDeleted;
    });
  }

  /**
   * Adds an exchange with an engine as a memory. False where the user, or a memory of theirs, was deleted since the exchange began: it may
   * hold what was to be forgotten, so it is not kept. Rejects like {@link add}.
   */
  async keepExchange(
    userId: UserId,
    agentId: AgentId | null,
    exchange: NewMemory,
    watch: DeletionWatch,
  ): Promise<boolean> {
    try {
      await this.#add(userId, agentId, [exchange], undefined, () => () => watch.isDeleted);
      return true;
    } catch (error) {
      if (error instanceof DeletedMeanwhileError) return false;
      throw error;
    }
  }

  /**
   * Takes back what it added where it was deleted while the source was at it: by another process, as this one does a user's jobs in turn.
   *
   * @param watching called in the user's turn; says from then on whether what is added belongs to what was deleted
   */
  async #add(
    userId: UserId,
    agentId: AgentId | null,
    memories: readonly NewMemory[],
    signal: AbortSignal | undefined,
    watching: () => () => boolean,
  ): Promise<readonly RetrievedMemory[]> {
    const { source, turns } = this;
    if (source === null) throw new MemorySourceError("none", { kind: "unsupported", operation: "add memories" });
    turns.refuseIfBusy(userId);
    const scope = turns.scopeOf(userId, agentId);
    return turns.run(userId, () =>
      turns.untilClosing(signal, async (stop) => {
        const isDeleted = watching();
        if (isDeleted()) throw new DeletedMeanwhileError();
        const added = await source.add(scope, memories, stop);
        if (!isDeleted()) return added;
        await Promise.all(added.map(({ id }) => source.delete(scope, id, turns.closing)));
        throw new DeletedMeanwhileError();
      }),
    );
  }
}
