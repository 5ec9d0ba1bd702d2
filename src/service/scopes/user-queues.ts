import type { AgentId, Scope, UserId } from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { BusyUserError } from "../base/errors.js";
import { linkedSignal } from "../base/linked-signal.js";
import type { WorkingScope, WorkingScopes } from "./working-scopes.js";

/** One first-in, first-out queue of jobs per key. Holds only keys with jobs, so it is bounded by the requests being served. */
export class UserQueues {
  readonly #queues = new Map<string, { tail: Promise<unknown>; jobs: number }>();

  /** Settles as the job does. A failed job does not stop the next one. */
  run<T>(key: string, job: () => T | Promise<T>): Promise<T> {
    const queue = keptIn(this.#queues, key, () => ({ tail: Promise.resolve(), jobs: 0 }));
    const outcome = queue.tail.then(job);
    queue.jobs++;
    const end = () => {
      if (--queue.jobs === 0) this.#queues.delete(key);
    };
    queue.tail = outcome.then(end, end);
    return outcome;
  }

  waiting(key: string): number {
    return this.#queues.get(key)?.jobs ?? 0;
  }

  get busy(): number {
    return this.#queues.size;
  }

  get jobs(): number {
    return [...this.#queues.values()].reduce((sum, { jobs }) => sum + jobs, 0);
  }

  /** Resolves when no job is left, including those queued meanwhile. */
  async idle(): Promise<void> {
    while (this.busy > 0) await Promise.all(Array.from(this.#queues.values(), ({ tail }) => tail));
  }
}

/** The queues of one tenant's users: a user's jobs run one at a time, across agents. */
export class TenantQueues {
  /** `queues` and `scopes` are shared by all tenants. @param closing aborts when running jobs must end */
  constructor(
    readonly tenant: string,
    private readonly queues: UserQueues,
    private readonly scopes: WorkingScopes,
    readonly closing: AbortSignal,
    private readonly maxWaiting: number,
  ) {}

  scopeOf(userId: UserId, agentId: AgentId | null): Scope {
    return { tenant: this.tenant, userId, agentId };
  }

  /** Runs a job after the user's earlier ones. A job that commits ends when the commit is durable. */
  run<T>(userId: UserId, job: () => T | Promise<T>): Promise<T> {
    return this.runOf({ tenant: this.tenant, userId }, job);
  }

  inScope<T>(
    { userId, agentId }: Pick<Scope, "userId" | "agentId">,
    work: (working: WorkingScope) => T | Promise<T>,
  ): Promise<T> {
    return this.run(userId, () => this.scopes.use(this.scopeOf(userId, agentId), work));
  }

  runOf<T>(scope: Pick<Scope, "tenant" | "userId">, job: () => T | Promise<T>): Promise<T> {
    return this.queues.run(queueKey(scope), job);
  }

  /** Runs a job in a second queue of the user's, concurrently with the first. */
  runAside<T>(userId: UserId, job: () => T | Promise<T>): Promise<T> {
    return this.queues.run(asideKey({ tenant: this.tenant, userId }), job);
  }

  /** Throws {@link BusyUserError} if one of the user's queues is full. */
  rejectIfBusy(userId: UserId): void {
    const user = { tenant: this.tenant, userId };
    const waiting = Math.max(this.queues.waiting(queueKey(user)), this.queues.waiting(asideKey(user)));
    if (waiting >= this.maxWaiting) throw new BusyUserError(this.maxWaiting);
  }

  /** Runs `work` with a signal that aborts with the caller's, or when the service closes. */
  async untilClosing<T>(signal: AbortSignal | undefined, work: (stop: AbortSignal) => Promise<T>): Promise<T> {
    if (signal === undefined) return await work(this.closing);
    const either = linkedSignal(this.closing, signal);
    return await work(either.signal).finally(either.release);
  }
}

function queueKey({ tenant, userId }: Pick<Scope, "tenant" | "userId">): string {
  return JSON.stringify([tenant, userId]);
}

export function asideKey({ tenant, userId }: Pick<Scope, "tenant" | "userId">): string {
  return JSON.stringify([tenant, userId, "aside"]);
}
