import { setTimeout as setTimeoutAsync } from "node:timers/promises";
import type { AgentId, RetrievedMemory, UserId } from "../../core/index.js";
import { type MemorySource, MemorySourceError, type NewMemory } from "../../memory/memory-source.js";
import type { Store } from "../../store/api/store.js";
import { DeletedMeanwhileError } from "../base/errors.js";
import type { TenantQueues } from "../scopes/user-queues.js";
import { DeletionWatch } from "../scopes/working-scopes.js";

/** Milliseconds for which an addition holds its user's queue. What is added by then, the next search finds. */
const HELD_MS = 500;

/**
 * Adds memories to the source, and none for a user that was deleted meanwhile. Of one user one addition follows the other. An addition
 * to a source that hangs takes a minute, and no prompt of the user's waits for that.
 */
export class MemoryAdditions {
  constructor(
    private readonly source: MemorySource | null,
    private readonly store: Pick<Store, "deletionsOf">,
    private readonly jobs: TenantQueues,
    private readonly heldMs = HELD_MS,
  ) {}

  /** Starts to watch a user's deletions. */
  watch(userId: UserId): Promise<DeletionWatch> {
    return DeletionWatch.begin(this.store, this.jobs.tenant, userId);
  }

  /**
   * Rejects with {@link MemorySourceError}, with {@link BusyUserError} like `compose`, and with {@link DeletedMeanwhileError} where the user was
   * deleted meanwhile; then nothing stays added.
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
   * Removes what it added where the user was deleted during the addition.
   *
   * @param watching called in the user's queue; gives whether a deletion since then covers what is added
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
    const started = await jobs.run(userId, async () => {
      const isDeleted = await watching();
      const adding = jobs.runAside(userId, () =>
        jobs.untilClosing(signal, async (stop) => {
          if (await isDeleted()) throw new DeletedMeanwhileError();
          const added = await source.add(scope, memories, stop);
          if (!(await isDeleted())) return added;
          await Promise.all(added.map(({ id }) => source.delete(scope, id, jobs.closing)));
          throw new DeletedMeanwhileError();
        }),
      );
      const settled = adding.then(
        () => undefined,
        () => undefined,
      );
      await Promise.race([settled, setTimeoutAsync(this.heldMs, undefined, { ref: false })]);
      return { adding };
    });
    return await started.adding;
  }
}
