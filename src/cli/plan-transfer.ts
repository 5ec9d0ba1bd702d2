import type { BatchRequest, Label, PlannedRequest } from "../core/index.js";

/*
 * A batch and its plan as they go between threads: numbers in typed arrays, which are handed over and not copied one object at a time.
 */

/** A batch's requests. `ends[i]` is where request i's blocks end in `labels` and `tokens`. */
export interface PackedBatch {
  readonly keys: readonly string[];
  readonly urgencies: readonly Pick<BatchRequest, "conversation" | "priority" | "deadline">[];
  readonly ends: Uint32Array;
  readonly labels: Uint32Array;
  readonly tokens: Uint32Array;
}

/** A plan, in order of rank. */
export interface PackedPlan {
  readonly requests: Uint32Array;
  readonly ends: Uint32Array;
  readonly labels: Uint32Array;
  readonly shared: Uint32Array;
  readonly searchPaths: readonly (readonly number[])[];
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
  const urgencies = requests.map(({ conversation, priority, deadline }) => ({ conversation, priority, deadline }));
  return { keys: requests.map(({ key }) => key), urgencies, ends, labels, tokens };
}

export function unpackBatch({ keys, urgencies, ends, labels, tokens }: PackedBatch): BatchRequest[] {
  return keys.map((key, request) => ({
    key,
    ...urgencies[request],
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
