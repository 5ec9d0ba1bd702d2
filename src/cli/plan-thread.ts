import { parentPort } from "node:worker_threads";
import { planBatch } from "../core/index.js";
import { messageOf } from "../core/text/thrown.js";
import { type PlanJob, packPlan, unpackBatch } from "./threaded-planning.js";

/** The thread that plans large batches, so that no other request waits for them. */
parentPort?.on("message", ({ id, batch, planner, knowledge, trees: known }: PlanJob) => {
  try {
    const { requests, trees } = planBatch(unpackBatch(batch), planner, knowledge, known);
    const plan = packPlan(requests);
    parentPort?.postMessage({ id, plan, trees }, [
      plan.requests.buffer,
      plan.ends.buffer,
      plan.labels.buffer,
      plan.shared.buffer,
    ] as ArrayBuffer[]);
  } catch (error) {
    parentPort?.postMessage({ id, problem: messageOf(error) });
  }
});
