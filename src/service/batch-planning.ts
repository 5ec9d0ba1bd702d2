import { setImmediate } from "node:timers/promises";
import {
  type BatchRequest,
  canonicalText,
  type Digest,
  digestOf,
  type Label,
  messageDigest,
  type PlannedRequest,
  type TokenCounter,
} from "../core/index.js";
import type { ComposeRequest } from "./compose-request.js";
import type { MemoryLookup } from "./memory-lookup.js";

/** A request of a batch with its memories at hand. */
export interface FoundRequest {
  readonly request: ComposeRequest;
  readonly lookup: MemoryLookup;
  /** Higher ones are executed first. */
  readonly priority: number;
  /** Of one priority, earlier ones first; null: after all that have one. */
  readonly deadline: number | null;
}

/** Plans a batch, in the order in which it is to be executed; `planBatch`, wherever it runs. */
export type Planning = (requests: readonly BatchRequest[]) => Promise<readonly PlannedRequest[]>;

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
  countTokens: TokenCounter,
  plan: Planning,
): Promise<PlannedFound<F>[]> {
  const texts = new Map<string, { readonly digest: Digest; readonly tokens: number }>();
  const numbers = new Map<string, Label>();
  const digests: Digest[] = [];
  const blockOf = (scope: string, text: string) => {
    const canonical = canonicalText(text);
    let known = texts.get(canonical);
    if (known === undefined) {
      known = { digest: digestOf(canonical), tokens: countTokens(`[0] ${canonical}\n`) };
      texts.set(canonical, known);
    }
    const name = `${known.digest} ${scope}`;
    let label = numbers.get(name);
    if (label === undefined) {
      label = digests.length as Label;
      numbers.set(name, label);
      digests.push(known.digest);
    }
    return { label, tokens: known.tokens };
  };
  const ready = ({ request, lookup, priority, deadline }: F): BatchRequest => {
    const { userId, agentId, conversationId, messages } = request;
    const scope = JSON.stringify([userId, agentId]);
    const memories = "found" in lookup ? lookup.found : [];
    const blocks = new Map(memories.map(({ text }) => blockOf(scope, text)).map((block) => [block.label, block]));
    const behind = messages.slice(0, messages.at(-1)?.role === "user" ? -1 : undefined);
    return {
      key: `${scope} ${behind.map(messageDigest).join(" ")}`,
      blocks: [...blocks.values()],
      priority,
      ...(deadline === null ? {} : { deadline }),
      ...(conversationId === null ? {} : { conversation: JSON.stringify([userId, agentId, conversationId]) }),
    };
  };
  const batch: BatchRequest[] = [];
  for (const request of requests) {
    batch.push(ready(request));
    if (batch.length % READY_AT_ONCE === 0) await setImmediate();
  }
  return (await plan(batch)).map(({ request, order }) => ({
    found: requests[request] as F,
    order: order.map((label) => digests[label] as Digest),
  }));
}
