import { setTimeout as setTimeoutAsync } from "node:timers/promises";
import type { AgentId, RequestId, RetrievedMemory, Scope, UserId } from "../../core/index.js";
import { type MemorySource, MemorySourceError, type NewMemory } from "../../memory/memory-source.js";
import type { Store } from "../../store/store.js";
import { DeletedMeanwhileError } from "../base/errors.js";
import type { TenantQueues } from "../scopes/user-queues.js";
import { isServed } from "../scopes/working-scopes.js";

/** Milliseconds for which an addition holds its user's queue. The next search finds what was added by then. */
const HELD_MS = 500;

/** Adds memories to the source, one addition of a user at a time. After {@link HELD_MS} the user's prompts do not wait for a slow source. */
export class MemoryAdditions {
  constructor(
    private readonly source: MemorySource | null,
    private readonly store: Pick<Store, "begin" | "find" | "findServed" | "userNumber">,
    private readonly jobs: TenantQueues,
    private readonly now: () => number,
    private readonly heldMs = HELD_MS,
  ) {}

  /** Rejects with {@link MemorySourceError}, {@link BusyUserError}, or {@link DeletedMeanwhileError}: then nothing stays added. */
  async add(
    userId: UserId,
    agentId: AgentId | null,
    memories: readonly NewMemory[],
    signal?: AbortSignal,
  ): Promise<readonly RetrievedMemory[]> {
    return this.#add(this.jobs.scopeOf(userId, agentId), memories, signal, async () => true);
  }

  /** Adds an exchange as a memory. False if its prompt is no longer stored: the answer may quote a memory that was forgotten since. */
  async keepExchange(
    userId: UserId,
    agentId: AgentId | null,
    exchange: NewMemory,
    requestId: RequestId,
  ): Promise<boolean> {
    const scope = this.jobs.scopeOf(userId, agentId);
    try {
      await this.#add(scope, [exchange], undefined, () => isServed(this.store, scope, requestId));
      return true;
    } catch (error) {
      if (error instanceof DeletedMeanwhileError) return false;
      throw error;
    }
  }

  /** Removes what it added if the user was deleted meanwhile. @param mayBeAdded checked before and after */
  async #add(
    scope: Scope,
    memories: readonly NewMemory[],
    signal: AbortSignal | undefined,
    mayBeAdded: () => Promise<boolean>,
  ): Promise<readonly RetrievedMemory[]> {
    const { source, jobs, store } = this;
    const { userId } = scope;
    if (source === null) throw new MemorySourceError("none", { kind: "unsupported", operation: "add memories" });
    jobs.rejectIfBusy(userId);
    const started = await jobs.run(userId, async () => {
      if (!(await mayBeAdded())) throw new DeletedMeanwhileError();
      const user = await store.begin(scope, this.now());
      const isDeleted = async () => (await store.userNumber(scope)) !== user || !(await mayBeAdded());
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
