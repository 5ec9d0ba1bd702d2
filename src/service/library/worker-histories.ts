import type { Store } from "../../store/api/store.js";
import type { WorkerHistories } from "../batch/batch-routing.js";
import type { PromptRouting } from "../compose/prompt-routing.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import type { WorkingScopes } from "../scopes/working-scopes.js";

interface HistoryParts {
  readonly store: Store;
  readonly scopes: WorkingScopes;
  readonly jobs: Pick<TenantQueues, "scopeOf">;
  readonly routing: Pick<PromptRouting, "namesFor" | "loadsOf">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** What workers processed of each scope, kept in the scope's state and the store, and their loads, which single requests share. */
export function workerHistories({ store, scopes, jobs, routing, now }: HistoryParts): WorkerHistories {
  return {
    namesFor: (workers) => routing.namesFor({ workers }),
    loadsOf: (names) => routing.loadsOf(names, now()),
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
