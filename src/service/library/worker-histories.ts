import type { Store } from "../../store/api/store.js";
import type { WorkerHistories } from "../batch/batch-routing.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import type { WorkingScopes } from "../scopes/working-scopes.js";

interface HistoryParts {
  readonly store: Store;
  readonly scopes: WorkingScopes;
  readonly jobs: Pick<TenantQueues, "scopeOf">;
}

/** What batch workers processed of each scope, kept in the scope's state and the store. */
export function workerHistories({ store, scopes, jobs }: HistoryParts): WorkerHistories {
  return {
    processedBy: ({ userId, agentId }, worker) =>
      scopes.use(jobs.scopeOf(userId, agentId), ({ state }) =>
        [...state.workers.of(worker)].flatMap((label) => state.register.get(label)?.textDigest ?? []),
      ),
    remember: ({ userId, agentId }, worker, texts) => {
      const scope = jobs.scopeOf(userId, agentId);
      return retryWhileLocked(() =>
        scopes.use(scope, (working) => {
          // A user that was forgotten meanwhile must not be created again.
          if (working.version === null) return;
          working.state.rememberWorker(worker, texts);
          working.version = store.commitChanges(scope, working.version, working.state.drain());
        }),
      );
    },
  };
}
