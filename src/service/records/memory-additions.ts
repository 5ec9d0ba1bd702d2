import type { AgentId, RetrievedMemory, UserId } from "../../core/index.js";
import { type MemorySource, MemorySourceError, type NewMemory } from "../../memory/memory-source.js";
import type { Store } from "../../store/api/store.js";
import { DeletedMeanwhileError } from "../base/errors.js";
import type { TenantQueues } from "../scopes/user-queues.js";
import { DeletionWatch } from "../scopes/working-scopes.js";

/** Adds memories to the source from their user's queue, and none for a user that was deleted meanwhile. */
export class MemoryAdditions {
  constructor(
    private readonly source: MemorySource | null,
    private readonly store: Pick<Store, "deletionsOf">,
    private readonly jobs: TenantQueues,
  ) {}

  /** Starts to watch a user's deletions. */
  watch(userId: UserId): Promise<DeletionWatch> {
    return DeletionWatch.begin(this.store, this.jobs.tenant, userId);
  }

  /**
   * Rejects with {@link MemorySourceError}, with {@link BusyUserError} like `compose`, and with {@link DeletedMeanwhileError} where another
   * process deleted the user meanwhile; then nothing stays added.
   */
  async add(
    userId: UserId,
    agentId: AgentId | null,
    memories: readonly NewMemory[],
    signal?: AbortSignal,
  ): Promise<readonly RetrievedMemory[]> {
    return this.#add(userId, agentId, memories, signal, async () => {
      const watch = await this.watch(userId);
      return () => watch.isUserDeleted();
    });
  }

  /**
   * Adds an exchange with an engine as a memory. False where the user or a memory of theirs was deleted since the exchange began: it may
   * quote what was forgotten, so it is not added. Rejects like {@link add}.
   */
  async keepExchange(
    userId: UserId,
    agentId: AgentId | null,
    exchange: NewMemory,
    watch: DeletionWatch,
  ): Promise<boolean> {
    try {
      await this.#add(userId, agentId, [exchange], undefined, async () => () => watch.isDeleted());
      return true;
    } catch (error) {
      if (error instanceof DeletedMeanwhileError) return false;
      throw error;
    }
  }

  /**
   * Removes what it added where another process deleted the user during the addition. This process cannot: a user's jobs run one at a time.
   *
   * @param watching called when the job starts; gives whether a deletion since then covers what is added
   */
  async #add(
    userId: UserId,
    agentId: AgentId | null,
    memories: readonly NewMemory[],
    signal: AbortSignal | undefined,
    watching: () => Promise<() => Promise<boolean>>,
  ): Promise<readonly RetrievedMemory[]> {
    const { source, jobs } = this;
    if (source === null) throw new MemorySourceError("none", { kind: "unsupported", operation: "add memories" });
    jobs.rejectIfBusy(userId);
    const scope = jobs.scopeOf(userId, agentId);
    return jobs.run(userId, () =>
      jobs.untilClosing(signal, async (stop) => {
        const isDeleted = await watching();
        if (await isDeleted()) throw new DeletedMeanwhileError();
        const added = await source.add(scope, memories, stop);
        if (!(await isDeleted())) return added;
        await Promise.all(added.map(({ id }) => source.delete(scope, id, jobs.closing)));
        throw new DeletedMeanwhileError();
      }),
    );
  }
}
