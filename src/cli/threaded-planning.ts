import {
  type BatchPlan,
  type BatchPlanner,
  type BatchRequest,
  type ClusteredKey,
  type KeyKnowledge,
  planBatch,
} from "../core/index.js";
import { WorkerCalls } from "../threads/worker-calls.js";

/** Blocks of a batch and its cached knowledge from which a thread pays off: fewer take only milliseconds to plan. */
const BLOCKS_FOR_A_THREAD = 5_000;

export interface PlanJob {
  readonly id: number;
  readonly batch: Parameters<typeof planBatch>;
}

type Outcome = { readonly id: number } & ({ readonly plan: BatchPlan } | { readonly problem: string });

/** Plans batches, large ones in a worker thread, which does not keep the process alive. The plan is the same either way. */
export class ThreadedPlanning {
  readonly #calls = new WorkerCalls<PlanJob, Outcome>(new URL("./plan-thread.js", import.meta.url), {}, (cause) => {
    return cause ?? new Error("the planning thread ended");
  });

  plan = async (
    requests: readonly BatchRequest[],
    planner: BatchPlanner,
    knowledge: readonly KeyKnowledge[],
    trees: readonly ClusteredKey[],
  ): Promise<BatchPlan> => {
    let blocks = 0;
    for (const request of requests) blocks += request.blocks.length;
    for (const { cached } of knowledge) for (const sequence of cached) blocks += sequence.length;
    for (const { nodes } of trees) for (const node of nodes) blocks += node.blocks.length;
    // Run from source, there is no JavaScript file for a thread to load.
    if (blocks < BLOCKS_FOR_A_THREAD || import.meta.filename.endsWith(".ts"))
      return planBatch(requests, planner, knowledge, trees);
    const outcome = await this.#calls.ask({ batch: [requests, planner, knowledge, trees] });
    if ("problem" in outcome) throw new Error(`planning a batch failed: ${outcome.problem}`);
    return outcome.plan;
  };
}
