import {
  type BatchPlanner,
  type BatchRequest,
  type KeyKnowledge,
  type PlannedRequest,
  planBatch,
} from "../core/index.js";
import { WorkerCalls } from "../store/threads/worker-calls.js";
import type { PlanJob } from "./plan-thread.js";
import { type PackedPlan, packBatch, unpackPlan } from "./plan-transfer.js";

/** Blocks of a batch, and of what is cached for it, from which a thread pays: planning fewer takes a few milliseconds. */
const BLOCKS_FOR_A_THREAD = 5_000;

type Outcome = { readonly id: number } & ({ readonly plan: PackedPlan } | { readonly problem: string });

/** What a thread ends with whose file, or one that it imports, is not there. */
function isMissingFile(error: Error): boolean {
  return "code" in error && (error.code === "MODULE_NOT_FOUND" || error.code === "ERR_MODULE_NOT_FOUND");
}

/**
 * Plans batches, large ones in a worker thread that starts with the first of them and does not keep the process alive. The plan is the
 * same either way.
 */
export class ThreadedPlanning {
  readonly #calls = new WorkerCalls<PlanJob, Outcome>(new URL("./plan-thread.js", import.meta.url), {}, (cause) => {
    return cause ?? new Error("the planning thread ended");
  });

  plan = async (
    requests: readonly BatchRequest[],
    planner: BatchPlanner,
    knowledge: readonly KeyKnowledge[],
  ): Promise<readonly PlannedRequest[]> => {
    const planHere = () => planBatch(requests, planner, knowledge);
    let blocks = 0;
    for (const request of requests) blocks += request.blocks.length;
    for (const { cached } of knowledge) for (const sequence of cached) blocks += sequence.length;
    // Run from source, there is no JavaScript file for a thread to load.
    if (blocks < BLOCKS_FOR_A_THREAD || import.meta.filename.endsWith(".ts")) return planHere();
    const batch = packBatch(requests);
    const arrays = [batch.ends.buffer, batch.labels.buffer, batch.tokens.buffer] as ArrayBuffer[];
    let outcome: Outcome;
    try {
      outcome = await this.#calls.ask({ batch, planner, knowledge }, arrays);
    } catch (error) {
      // As while a new build takes the place of the one that runs. The next large batch tries again.
      if (error instanceof Error && isMissingFile(error)) return planHere();
      throw error;
    }
    if ("problem" in outcome) throw new Error(`planning a batch failed: ${outcome.problem}`);
    return unpackPlan(outcome.plan);
  };
}
