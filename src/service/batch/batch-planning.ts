import { setImmediate } from "node:timers/promises";
import { type BatchRequest, type Digest, messageDigest } from "../../core/index.js";
import type { PlanBatch } from "../base/memstem-parts.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { WaitingLookup } from "../compose/memory-lookup.js";
import { type BatchBlocks, scopeName } from "./batch-blocks.js";

/** A request of a batch with its memories. */
export interface FoundRequest {
  readonly request: ComposeRequest;
  readonly lookup: WaitingLookup;
  /** Higher ones are executed first. */
  readonly priority: number;
  /** Within one priority, earlier ones first; null: after all that have one. */
  readonly deadline: number | null;
}

/** Requests prepared before the event loop is yielded. */
const READY_AT_ONCE = 32;

/** A request in execution order, with the order of its blocks, by the digests of their texts. */
export interface PlannedFound<F extends FoundRequest> {
  readonly found: F;
  readonly order: readonly Digest[];
}

/**
 * Plans a window of requests of any users: gives them in execution order. Scopes share nothing: a request's key is its user, its agent and
 * the prefix before its blocks.
 */
export async function planFound<F extends FoundRequest>(
  requests: readonly F[],
  blocks: BatchBlocks,
  plan: PlanBatch,
): Promise<PlannedFound<F>[]> {
  const batch: BatchRequest[] = [];
  for (const request of requests) {
    batch.push(plannable(request, blocks));
    if (batch.length % READY_AT_ONCE === 0) await setImmediate();
  }
  return (await plan(batch)).map(({ request, order }) => ({
    found: requests[request] as F,
    order: order.map((label) => blocks.textOf(label)),
  }));
}

function plannable({ request, lookup, priority, deadline }: FoundRequest, blocks: BatchBlocks): BatchRequest {
  const { conversationId, messages } = request;
  const scope = scopeName(request);
  const memories = "found" in lookup ? lookup.found : [];
  const wanted = new Map(memories.map(({ text }) => blocks.take(scope, text)).map((block) => [block.label, block]));
  const before = messages.slice(0, messages.at(-1)?.role === "user" ? -1 : undefined);
  return {
    key: `${scope} ${before.map(messageDigest).join(" ")}`,
    blocks: [...wanted.values()],
    priority,
    ...(deadline === null ? {} : { deadline }),
    ...(conversationId === null ? {} : { conversation: `${scope} ${JSON.stringify(conversationId)}` }),
  };
}
