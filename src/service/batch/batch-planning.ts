import { setImmediate } from "node:timers/promises";
import { type BatchRequest, type Digest, messageDigest } from "../../core/index.js";
import type { BatchPlanner } from "../base/memstem-parts.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { WaitingLookup } from "../compose/memory-lookup.js";
import { type BatchBlocks, scopeName } from "./batch-blocks.js";

/** A request of a batch with its memories at hand. */
export interface FoundRequest {
  readonly request: ComposeRequest;
  readonly lookup: WaitingLookup;
  /** Higher ones are executed first. */
  readonly priority: number;
  /** Of one priority, earlier ones first; null: after all that have one. */
  readonly deadline: number | null;
}

/** Requests that are made ready for a plan before others get their turn. */
const READY_AT_ONCE = 32;

/** When a request of a batch is executed, and the order of its blocks, named by the digests of their texts. */
export interface PlannedFound<F extends FoundRequest> {
  readonly found: F;
  readonly order: readonly Digest[];
}

/**
 * Plans requests that are all known, of however many users, in the order in which they are to be executed. Nothing is shared between
 * scopes: a request's key names its user, its agent and all that stands before its blocks.
 */
export async function planFound<F extends FoundRequest>(
  requests: readonly F[],
  blocks: BatchBlocks,
  plan: BatchPlanner,
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
