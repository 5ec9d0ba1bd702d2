import {
  type BatchPlan,
  type BatchPlanner,
  type BatchRequest,
  type ClusteredKey,
  type KeyKnowledge,
  type Label,
  type PlannedRequest,
  planBatch,
} from "../core/index.js";
import { WorkerCalls } from "../threads/worker-calls.js";

/** Blocks of a batch and its cached knowledge from which a thread pays off: fewer take only milliseconds to plan. */
const BLOCKS_FOR_A_THREAD = 5_000;

type Outcome = { readonly id: number } & (
  | { readonly plan: PackedPlan; readonly trees: readonly ClusteredKey[] }
  | { readonly problem: string }
);

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
    const batch = packBatch(requests);
    const arrays = [batch.ends.buffer, batch.labels.buffer, batch.tokens.buffer] as ArrayBuffer[];
    const outcome = await this.#calls.ask({ batch, planner, knowledge, trees }, arrays);
    if ("problem" in outcome) throw new Error(`planning a batch failed: ${outcome.problem}`);
    return { requests: unpackPlan(outcome.plan), trees: outcome.trees };
  };
}

/*
 * A batch and its plan as threads exchange them: typed arrays, transferred rather than copied object by object.
 */

/** `ends[i]`: where request i's blocks end in `labels` and `tokens`. */
export interface PackedBatch {
  readonly keys: readonly string[];
  readonly conversations: readonly (string | undefined)[];
  readonly ends: Uint32Array;
  readonly labels: Uint32Array;
  readonly tokens: Uint32Array;
}

/** In order of rank. */
export interface PackedPlan {
  readonly requests: Uint32Array;
  readonly ends: Uint32Array;
  readonly labels: Uint32Array;
  readonly shared: Uint32Array;
  readonly searchPaths: readonly (readonly number[])[];
}

export interface PlanJob {
  readonly id: number;
  readonly batch: PackedBatch;
  readonly planner: BatchPlanner;
  readonly knowledge: readonly KeyKnowledge[];
  readonly trees: readonly ClusteredKey[];
}

export function packBatch(requests: readonly BatchRequest[]): PackedBatch {
  const ends = endsOf(requests.map(({ blocks }) => blocks.length));
  const labels = new Uint32Array(ends.at(-1) ?? 0);
  const tokens = new Uint32Array(labels.length);
  let at = 0;
  for (const { blocks } of requests) {
    for (const block of blocks) {
      labels[at] = block.label;
      tokens[at++] = block.tokens;
    }
  }
  const conversations = requests.map(({ conversation }) => conversation);
  return { keys: requests.map(({ key }) => key), conversations, ends, labels, tokens };
}

export function unpackBatch({ keys, conversations, ends, labels, tokens }: PackedBatch): BatchRequest[] {
  return keys.map((key, request) => ({
    key,
    conversation: conversations[request],
    blocks: Array.from(labels.subarray(ends[request - 1] ?? 0, ends[request]), (label, at) => ({
      label: label as Label,
      tokens: tokens[(ends[request - 1] ?? 0) + at] ?? 0,
    })),
  }));
}

export function packPlan(plan: readonly PlannedRequest[]): PackedPlan {
  const ends = endsOf(plan.map(({ order }) => order.length));
  const labels = new Uint32Array(ends.at(-1) ?? 0);
  let at = 0;
  for (const { order } of plan) for (const label of order) labels[at++] = label;
  return {
    requests: Uint32Array.from(plan, ({ request }) => request),
    ends,
    labels,
    shared: Uint32Array.from(plan, ({ shared }) => shared),
    searchPaths: plan.map(({ searchPath }) => searchPath),
  };
}

export function unpackPlan({ requests, ends, labels, shared, searchPaths }: PackedPlan): PlannedRequest[] {
  return Array.from(requests, (request, rank) => ({
    request,
    rank,
    order: Array.from(labels.subarray(ends[rank - 1] ?? 0, ends[rank]), (label) => label as Label),
    shared: shared[rank] ?? 0,
    searchPath: searchPaths[rank] ?? [],
  }));
}

function endsOf(lengths: readonly number[]): Uint32Array {
  let end = 0;
  return Uint32Array.from(lengths, (length) => {
    end += length;
    return end;
  });
}
