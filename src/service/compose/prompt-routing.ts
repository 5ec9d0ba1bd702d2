import {
  type Digest,
  type Label,
  type PlacedMemory,
  type Plan,
  type RoutedPrompt,
  routePrompt,
  type Scope,
  type ScopeState,
  type TurnId,
  WorkerLoads,
} from "../../core/index.js";
import type { AnsweredRequest, Store } from "../../store/api/store.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scope.js";
import type { WorkingScopes } from "../scopes/working-scopes.js";
import type { ComposeRequest } from "./compose-request.js";

/** A prompt to be routed: a new one, or a stored one that is repeated. */
interface RoutablePrompt {
  readonly plan: Plan;
  readonly memories: readonly PlacedMemory[];
  /** The turn that the prompt continues; null for none. */
  readonly previous: TurnId | null;
}

/** What routing reads and writes. */
interface RoutingParts {
  readonly store: Store;
  readonly scopes: WorkingScopes;
  readonly jobs: Pick<TenantQueues, "scopeOf" | "run">;
  /** Names of the workers where a request names none; empty: no routing. */
  readonly defaults: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Whose blocks they are, within the tenant. */
type RoutedScope = Pick<ComposeRequest, "userId" | "agentId">;

/**
 * Routes one tenant's prompts to workers, by what each worker processed and by its load (`routePrompt`). Loads live on between single
 * requests and batches; they are in memory only. Which worker processed what, and which prompt went where, is in the store.
 */
export class PromptRouting {
  readonly #loads = new WorkerLoads();

  constructor(private readonly on: RoutingParts) {}

  /** The workers to choose from; null or undefined: the configured ones. Empty: no routing. */
  namesFor(workers: ComposeRequest["workers"]): readonly string[] {
    return workers ?? this.on.defaults;
  }

  /** The worker of a prompt, or undefined where no workers are named. Changes nothing. */
  async route(
    scope: Scope,
    state: Pick<ScopeState, "register" | "workers">,
    request: ComposeRequest,
    prompt: RoutablePrompt,
    now: number,
  ): Promise<string | undefined> {
    if (request.worker != null) return request.worker;
    const names = this.namesFor(request.workers);
    if (names.length === 0) return undefined;
    const { plan, memories, previous } = prompt;
    const before = previous === null ? null : await this.on.store.findWorker(scope, previous);
    const routed: RoutedPrompt = {
      tokens: plan.totalTokens,
      blocks: [...newLabels(memories)].map((label) => ({ label, tokens: state.register.get(label)?.tokens ?? 0 })),
      history: before === null ? null : { worker: before, tokens: plan.expectedCachedTokens },
    };
    return routePrompt(routed, names, state.workers, this.#loads, now);
  }

  /** The worker of a repeated answer: the same, as long as it is named. */
  async routeAgain(
    scope: Scope,
    state: Pick<ScopeState, "register" | "workers">,
    request: ComposeRequest,
    { answer, turns }: AnsweredRequest,
    now: number,
  ): Promise<string | undefined> {
    const { worker, plan, memories } = answer;
    if (worker !== undefined && this.namesFor(request.workers).includes(worker)) return worker;
    return await this.route(scope, state, request, { plan, memories, previous: turns.at(-2)?.turn.id ?? null }, now);
  }

  /** Records which blocks a worker processes with a new prompt. A batch records them after each window, in one commit. */
  record(
    state: Pick<ScopeState, "workers">,
    { worker: ofBatch }: ComposeRequest,
    worker: string,
    memories: RoutablePrompt["memories"],
  ): void {
    if (ofBatch == null) state.workers.take(worker, [...newLabels(memories)]);
  }

  /** A prompt for a worker was stored. */
  assigned(worker: string, { totalTokens }: Plan, now: number): void {
    this.#loads.add(worker, totalTokens, now);
  }

  /** Recent tokens of some workers, of single requests and of every batch, in the order of the names. */
  loadsOf(names: readonly string[]): readonly number[] {
    return this.#loads.of(names, this.on.now());
  }

  /** The blocks of a scope that each worker processed, by the digests of their texts. */
  processedBy({ userId, agentId }: RoutedScope, workers: readonly string[]): Promise<readonly (readonly Digest[])[]> {
    const { scopes, jobs } = this.on;
    return scopes.read(jobs.scopeOf(userId, agentId), ({ state }) =>
      workers.map((worker) =>
        [...state.workers.of(worker)].flatMap((label) => state.register.get(label)?.textDigest ?? []),
      ),
    );
  }

  /** Records that a worker processes these blocks of a batch. */
  remember({ userId, agentId }: RoutedScope, worker: string, texts: readonly Digest[]): Promise<void> {
    const { store, scopes, jobs } = this.on;
    const scope = jobs.scopeOf(userId, agentId);
    const rememberIn = async (working: WorkingScope) => {
      // A user that was forgotten meanwhile must not be created again.
      if (working.base.version === null) return;
      working.state.rememberWorker(worker, texts);
      await working.commit((base) => store.commitChanges(scope, base, deltaOf(working.state)));
    };
    return jobs.run(userId, () => retryWhileLocked(() => scopes.use(scope, rememberIn)));
  }
}

/** The blocks that a prompt adds to its history, carried ones among them. */
function newLabels(memories: readonly PlacedMemory[]): ReadonlySet<Label> {
  return new Set(memories.filter(({ placement }) => placement !== "earlier_turn").map(({ label }) => label));
}
