import {
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
import type { ComposeRequest } from "./compose-request.js";

/** A prompt to be routed: a new one, or a stored one that is repeated. */
interface RoutablePrompt {
  readonly plan: Plan;
  readonly memories: readonly PlacedMemory[];
  /** The turn that the prompt continues; null for none. */
  readonly previous: TurnId | null;
}

/**
 * Routes one tenant's prompts to workers, by what each worker processed and by its load (`routePrompt`). Loads live on between single
 * requests and batches; they are in memory only. Which worker processed what, and which prompt went where, is in the store.
 */
export class PromptRouting {
  readonly #loads = new WorkerLoads();

  /** @param defaults names of the workers where a request names none; empty: no routing */
  constructor(
    private readonly store: Pick<Store, "findWorker">,
    private readonly defaults: readonly string[],
  ) {}

  /** The names to choose from; empty: no routing. */
  namesFor({ workers }: Pick<ComposeRequest, "workers">): readonly string[] {
    return workers ?? this.defaults;
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
    const names = this.namesFor(request);
    if (names.length === 0) return undefined;
    const { plan, memories, previous } = prompt;
    const before = previous === null ? null : await this.store.findWorker(scope, previous);
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
    if (worker !== undefined && this.namesFor(request).includes(worker)) return worker;
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

  /** Recent tokens of some workers, in their order. */
  loadsOf(names: readonly string[], now: number): readonly number[] {
    return this.#loads.of(names, now);
  }
}

/** The blocks that a prompt adds to its history, carried ones among them. */
function newLabels(memories: readonly PlacedMemory[]): ReadonlySet<Label> {
  return new Set(memories.filter(({ placement }) => placement !== "earlier_turn").map(({ label }) => label));
}
