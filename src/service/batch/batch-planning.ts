import { setImmediate } from "node:timers/promises";
import { type BatchRequest, type Digest, groupBy, type KeyKnowledge, messageDigest } from "../../core/index.js";
import type { PlanBatch } from "../base/memstem-parts.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { PromptComposer } from "../compose/prompt-composer.js";
import type { KnownSequence, KnownTexts } from "../compose/prompt-planner.js";
import type { WaitingLookup } from "../compose/retrieval.js";
import { type BatchBlocks, scopeName } from "./batch-blocks.js";

/** A request of a batch with its memories. */
export interface FoundRequest {
  /** Its position in the batch. */
  readonly index: number;
  readonly request: ComposeRequest;
  readonly lookup: WaitingLookup;
  /** Higher ones are executed first. */
  readonly priority: number;
  /** Within one priority, earlier ones first; null: after all that have one. */
  readonly deadline: number | null;
}

/** Requests prepared before the event loop is yielded. */
const READY_AT_ONCE = 32;

/** Requests for which a scope's index is searched before the event loop is yielded. */
const READ_AT_ONCE = 128;

/** A request in execution order, with the order of its blocks, by the digests of their texts. */
interface PlannedFound {
  readonly found: FoundRequest;
  readonly order: readonly Digest[];
  /** How many leading blocks of `order` the plan relies on. */
  readonly shared: number;
}

/**
 * Plans a window of requests of any users: gives them in execution order. Scopes share nothing: a request's key is its user, its agent and
 * the prefix before its blocks. What should be cached is read now, so it includes the windows before. A request whose key no other has
 * needs no plan: it is composed as if it came by itself.
 */
export async function planFound(
  requests: readonly FoundRequest[],
  blocks: BatchBlocks,
  planning: PlanBatch,
  composer: Pick<PromptComposer, "known">,
): Promise<PlannedFound[]> {
  const batch: BatchRequest[] = [];
  for (const request of requests) {
    batch.push(plannable(request, blocks));
    if (batch.length % READY_AT_ONCE === 0) await setImmediate();
  }
  const knowledge: KeyKnowledge[] = [];
  const withBlocks = [...batch.keys()].filter((at) => batch[at]?.blocks.length !== 0);
  for (const [key = "", ofKey] of groupBy(withBlocks, (at) => batch[at]?.key)) {
    if (ofKey.length === 1) continue;
    const { request } = requests[ofKey[0] ?? 0] as FoundRequest;
    const scope = scopeName(request);
    const cached: KnownSequence[] = [];
    let recent: KnownTexts["recent"] = [];
    for (let from = 0; from < ofKey.length; from += READ_AT_ONCE) {
      const some = ofKey.slice(from, from + READ_AT_ONCE);
      const known = await composer.known(
        request,
        some.map((at) => batch[at]?.blocks.map(({ label }) => blocks.textOf(label)) ?? []),
      );
      for (const sequence of known?.cached ?? []) cached.push(sequence);
      recent = known?.recent ?? recent;
      await setImmediate();
    }
    const labelsOf = (texts: readonly Digest[]) => texts.flatMap((text) => blocks.find(scope, text) ?? []);
    knowledge.push({
      key,
      cached: cached.sort((a, b) => a.lastUsed - b.lastUsed).map(({ texts }) => labelsOf(texts)),
      recent: recent.map(labelsOf),
    });
  }
  return (await planning(batch, knowledge)).map(({ request, order, shared }) => ({
    found: requests[request] as FoundRequest,
    order: order.map((label) => blocks.textOf(label)),
    shared,
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
