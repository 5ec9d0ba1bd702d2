import { Worker } from "node:worker_threads";
import {
  type BatchRequest,
  DEFAULT_BATCH_PLANNER,
  type KeyKnowledge,
  type PlannedRequest,
  planBatch,
} from "../core/index.js";
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
  #worker: Worker | null = null;
  #jobs = 0;
  readonly #waiting = new Map<number, (outcome: Outcome | Error) => void>();

  plan = async (
    requests: readonly BatchRequest[],
    knowledge: readonly KeyKnowledge[],
  ): Promise<readonly PlannedRequest[]> => {
    const planHere = () => planBatch(requests, DEFAULT_BATCH_PLANNER, knowledge);
    let blocks = 0;
    for (const request of requests) blocks += request.blocks.length;
    for (const { cached } of knowledge) for (const sequence of cached) blocks += sequence.length;
    // Run from source, there is no JavaScript file for a thread to load.
    if (blocks < BLOCKS_FOR_A_THREAD || import.meta.filename.endsWith(".ts")) return planHere();
    const batch = packBatch(requests);
    const id = this.#jobs++;
    const worker = this.#started();
    const outcome = await new Promise<Outcome | Error>((resolve) => {
      this.#waiting.set(id, resolve);
      worker.ref();
      const job: PlanJob = { id, batch, knowledge };
      worker.postMessage(job, [batch.ends.buffer, batch.labels.buffer, batch.tokens.buffer] as ArrayBuffer[]);
    });
    // As while a new build takes the place of the one that runs. The next large batch tries again.
    if (outcome instanceof Error && isMissingFile(outcome)) return planHere();
    if (outcome instanceof Error) throw outcome;
    if ("problem" in outcome) throw new Error(`planning a batch failed: ${outcome.problem}`);
    return unpackPlan(outcome.plan);
  };

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(new URL("./plan-thread.js", import.meta.url));
    worker.on("message", (outcome: Outcome) => this.#settle(outcome.id, outcome));
    const end = (error: Error) => {
      this.#worker = null;
      for (const id of [...this.#waiting.keys()]) this.#settle(id, error);
    };
    worker.on("error", end);
    worker.on("exit", () => end(new Error("the planning thread ended")));
    worker.unref();
    this.#worker = worker;
    return worker;
  }

  #settle(id: number, outcome: Outcome | Error): void {
    this.#waiting.get(id)?.(outcome);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker?.unref();
  }
}
