import type { Store } from "../../store/api/store.js";
import type { WorkerHistories } from "../batch/batch-routing.js";
import type { PromptRouting } from "../compose/prompt-routing.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scope.js";
import type { WorkingScopes } from "../scopes/working-scopes.js";

interface HistoryParts {
  readonly store: Store;
  readonly scopes: WorkingScopes;
  readonly jobs: Pick<TenantQueues, "scopeOf" | "run">;
  readonly routing: Pick<PromptRouting, "namesFor" | "loadsOf">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** What workers processed of each scope, kept in the scope's state and the store, and their loads, which single requests share. */
export function workerHistories({ store, scopes, jobs, routing, now }: HistoryParts): WorkerHistories {
  return {
    namesFor: (workers) => routing.namesFor({ workers }),
    loadsOf: (names) => routing.loadsOf(names, now()),
    processedBy: ({ userId, agentId }, workers) =>
      scopes.read(jobs.scopeOf(userId, agentId), ({ state }) =>
        workers.map((worker) =>
          [...state.workers.of(worker)].flatMap((label) => state.register.get(label)?.textDigest ?? []),
        ),
      ),
    remember: ({ userId, agentId }, worker, texts) => {
      const scope = jobs.scopeOf(userId, agentId);
      const rememberIn = async (working: WorkingScope) => {
        // A user that was forgotten meanwhile must not be created again.
        if (working.base.version === null) return;
        working.state.rememberWorker(worker, texts);
        await working.commit((base) => store.commitChanges(scope, base, deltaOf(working.state)));
      };
      return jobs.run(userId, () => retryWhileLocked(() => scopes.use(scope, rememberIn)));
    },
  };
}
