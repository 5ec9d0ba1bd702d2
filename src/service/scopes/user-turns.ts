import type { AgentId, Scope, UserId } from "../../core/index.js";
import { BusyUserError } from "../base/errors.js";
import { linkedSignal } from "../base/linked-signal.js";
import type { UserQueues } from "./user-queues.js";

/** What is done for one tenant's users: each user's in turn, whatever the agent, and all of it until the service closes. */
export class UserTurns {
  constructor(
    readonly tenant: string,
    private readonly queues: UserQueues,
    /** Aborts when what is under way has to end. */
    readonly closing: AbortSignal,
    /** A user's jobs that may be under way or wait. */
    private readonly maxWaiting: number,
  ) {}

  scopeOf(userId: UserId, agentId: AgentId | null): Scope {
    return { tenant: this.tenant, userId, agentId };
  }

  /** Does a job when the user's earlier ones are done. */
  run<T>(userId: UserId, job: () => T | Promise<T>): Promise<T> {
    return this.runOf({ tenant: this.tenant, userId }, job);
  }

  /** The same for a user of any tenant. */
  runOf<T>(scope: Pick<Scope, "tenant" | "userId">, job: () => T | Promise<T>): Promise<T> {
    return this.queues.run(queueOf(scope), job);
  }

  /** Throws {@link BusyUserError} where as many of the user's jobs are under way or wait as may. */
  refuseIfBusy(userId: UserId): void {
    const waiting = this.queues.waiting(queueOf({ tenant: this.tenant, userId }));
    if (waiting >= this.maxWaiting) throw new BusyUserError(this.maxWaiting);
  }

  /** Does what a caller's signal ends, or the service's own end. */
  async untilClosing<T>(signal: AbortSignal | undefined, work: (stop: AbortSignal) => Promise<T>): Promise<T> {
    if (signal === undefined) return await work(this.closing);
    const either = linkedSignal(this.closing, signal);
    return await work(either.signal).finally(either.release);
  }
}

function queueOf({ tenant, userId }: Pick<Scope, "tenant" | "userId">): string {
  return JSON.stringify([tenant, userId]);
}
