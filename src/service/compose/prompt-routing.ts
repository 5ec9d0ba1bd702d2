import {
  type Label,
  type PlacedMemory,
  type Plan,
  type RoutedPrompt,
  routePrompt,
  type ScopeState,
  type TurnId,
  WorkerLoads,
} from "../../core/index.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import type { TenantQueues } from "../scopes/user-queues.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scopes.js";
import { textsOf } from "./batch-knowledge.js";
import type { BatchScope } from "./compose-request.js";

export interface RoutablePrompt {
  readonly plan: Plan;
  readonly memories: readonly PlacedMemory[];
  /** The turn that the prompt continues; null: none. */
  readonly previous: TurnId | null;
}

/** Routes one tenant's prompts to workers, by what each processed and its load, which is in memory, for single requests and batches. */
export class PromptRouting {
  readonly #loads = new WorkerLoads();

  constructor(
    private readonly parts: Pick<MemprefixParts, "store" | "now">,
    private readonly jobs: Pick<TenantQueues, "inScope">,
  ) {}

  /** One of the named workers. Changes nothing. */
  async route(
    { scopeId, state }: Pick<WorkingScope, "scopeId" | "state">,
    { plan, memories, previous }: RoutablePrompt,
    names: readonly string[],
    now: number,
  ): Promise<string> {
    const before = previous === null ? null : await this.parts.store.findWorker(scopeId, previous);
    const routed: RoutedPrompt = {
      tokens: plan.totalTokens,
      blocks: [...newLabels(memories)].map((label) => ({ label, tokens: state.register.get(label)?.tokens ?? 0 })),
      history: before === null ? null : { worker: before, tokens: plan.expectedCachedTokens },
    };
    return routePrompt(routed, names, state.workers, this.#loads, now);
  }

  /** Records the blocks that a worker processes with a new prompt. A batch uses {@link remember} at its end instead. */
  record(state: Pick<ScopeState, "workers">, worker: string, memories: RoutablePrompt["memories"]): void {
    state.workers.take(worker, [...newLabels(memories)]);
  }

  assigned(worker: string, { totalTokens }: Plan, now: number): void {
    this.#loads.add(worker, totalTokens, now);
  }

  loadsOf(names: readonly string[]): readonly number[] {
    return this.#loads.of(names, this.parts.now());
  }

  /** The blocks of a scope that each worker processed, by their texts. */
  processedBy(scope: BatchScope, workers: readonly string[]): Promise<readonly (readonly string[])[]> {
    return this.jobs.inScope(scope, ({ state }) => workers.map((worker) => textsOf(state, state.workers.of(worker))));
  }

  remember(scope: BatchScope, worker: string, texts: readonly string[]): Promise<void> {
    return this.jobs.inScope(scope, async (working) => {
      // A deleted user must not be created again.
      if (!working.isStored) return;
      working.state.rememberWorker(worker, texts);
      await working.commit((held) => held.commitChanges(deltaOf(working.state)));
    });
  }
}

/** The blocks that a prompt adds to its history, carried ones included. */
function newLabels(memories: readonly PlacedMemory[]): ReadonlySet<Label> {
  return new Set(memories.filter(({ placement }) => placement !== "earlier_turn").map(({ label }) => label));
}
