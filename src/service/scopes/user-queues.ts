import type { AgentId, Scope, UserId } from "../../core/index.js";
import { BusyUserError } from "../base/errors.js";
import { linkedSignal } from "../base/linked-signal.js";
import type { WorkingScope, WorkingScopes } from "./working-scopes.js";

/**
 * One first-in, first-out queue of jobs per key: jobs of one key run one at a time, those of different keys concurrently. Holds one entry
 * per key with a job that runs or waits: bounded by the requests that are being served.
 */
export class UserQueues {
  readonly #tails = new Map<string, Promise<unknown>>();
  /** Jobs per key that run or wait. */
  readonly #waiting = new Map<string, number>();
  #jobs = 0;

  /** Settles as the job does. A job that fails does not stop the next one. */
  run<T>(key: string, job: () => T | Promise<T>): Promise<T> {
    const outcome = (this.#tails.get(key) ?? Promise.resolve()).then(job);
    const tail = outcome.then(
      () => undefined,
      () => undefined,
    );
    this.#tails.set(key, tail);
    this.#waiting.set(key, this.waiting(key) + 1);
    this.#jobs++;
    void tail.then(() => {
      this.#jobs--;
      if (this.#tails.get(key) === tail) {
        this.#tails.delete(key);
        this.#waiting.delete(key);
      } else this.#waiting.set(key, this.waiting(key) - 1);
    });
    return outcome;
  }

  /** Jobs of a key that run or wait. */
  waiting(key: string): number {
    return this.#waiting.get(key) ?? 0;
  }

  /** Keys with a job that runs. */
  get busy(): number {
    return this.#tails.size;
  }

  /** All jobs that run or wait. */
  get jobs(): number {
    return this.#jobs;
  }

  /** Resolves once every job has ended, those that others queue meanwhile, too. */
  async idle(): Promise<void> {
    while (this.#tails.size > 0) await Promise.all(this.#tails.values());
  }
}

/** The queues of one tenant's users: a user's jobs run one at a time, whatever their agent. */
export class TenantQueues {
  /**
   * @param queues all tenants'
   * @param scopes all tenants'
   * @param closing aborts when running jobs have to end
   * @param maxWaiting most jobs of one user that run or wait
   */
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

  /** Runs a job after the user's earlier ones. A job that commits ends once that is durable. */
  run<T>(userId: UserId, job: () => T | Promise<T>): Promise<T> {
    return this.runOf({ tenant: this.tenant, userId }, job);
  }

  /** Runs a job that works on one of the user's scopes. */
  inScope<T>(
    { userId, agentId }: Pick<Scope, "userId" | "agentId">,
    work: (working: WorkingScope) => T | Promise<T>,
  ): Promise<T> {
    return this.run(userId, () => this.scopes.use(this.scopeOf(userId, agentId), work));
  }

  /** The same as {@link run} for a user of any tenant. */
  runOf<T>(scope: Pick<Scope, "tenant" | "userId">, job: () => T | Promise<T>): Promise<T> {
    return this.queues.run(queueKey(scope), job);
  }

  /** The same in a queue of its own: after such jobs of the user's that are earlier, beside all others. */
  runAside<T>(userId: UserId, job: () => T | Promise<T>): Promise<T> {
    return this.queues.run(asideKey({ tenant: this.tenant, userId }), job);
  }

  /** Throws {@link BusyUserError} where one of the user's queues is full. */
  rejectIfBusy(userId: UserId): void {
    const user = { tenant: this.tenant, userId };
    const waiting = Math.max(this.queues.waiting(queueKey(user)), this.queues.waiting(asideKey(user)));
    if (waiting >= this.maxWaiting) throw new BusyUserError(this.maxWaiting);
  }

  /** Does work with a signal that aborts with the caller's and with the service's end. */
  async untilClosing<T>(signal: AbortSignal | undefined, work: (stop: AbortSignal) => Promise<T>): Promise<T> {
    if (signal === undefined) return await work(this.closing);
    const either = linkedSignal(this.closing, signal);
    return await work(either.signal).finally(either.release);
  }
}

function queueKey({ tenant, userId }: Pick<Scope, "tenant" | "userId">): string {
  return JSON.stringify([tenant, userId]);
}

function asideKey({ tenant, userId }: Pick<Scope, "tenant" | "userId">): string {
  return JSON.stringify([tenant, userId, "aside"]);
}
