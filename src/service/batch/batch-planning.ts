import { setImmediate } from "node:timers/promises";
import {
  type BatchPlan,
  type BatchPlanner,
  type BatchRequest,
  type ClusteredKey,
  canonicalText,
  groupBy,
  type KeyKnowledge,
  type Label,
  messageDigest,
  type RetrievedBlock,
  routeToWorkers,
  type TokenCounter,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import type { PlanBatch } from "../base/memprefix-parts.js";
import type { ClusteredTexts, KnownSequence, KnownTexts } from "../compose/batch-knowledge.js";
import type { BatchScope, ComposeRequest } from "../compose/compose-request.js";
import type { PromptComposer } from "../compose/prompt-composer.js";
import type { PromptRouting } from "../compose/prompt-routing.js";
import type { WaitingLookup } from "../compose/retrieval.js";

function scopeName({ userId, agentId }: BatchScope): string {
  return JSON.stringify([userId, agentId]);
}

/** The blocks of a batch, numbered for the planner. Scopes share no numbers, so they share no prefix. */
export class BatchBlocks {
  readonly #tokensOf = new Map<string, number>();
  /** By scope, then by text. */
  readonly #numbers = new Map<string, Map<string, Label>>();
  readonly #texts: string[] = [];
  readonly #tokens: number[] = [];

  constructor(private readonly countTokens: TokenCounter) {}

  take(scope: string, text: string): RetrievedBlock {
    const canonical = canonicalText(text);
    const tokens = keptIn(this.#tokensOf, canonical, () => this.countTokens(`0 ${canonical}\n`));
    return { label: this.number(scope, canonical, tokens), tokens };
  }

  number(scope: string, text: string, tokens = 0): Label {
    const ofScope = keptIn(this.#numbers, scope, () => new Map<string, Label>());
    return keptIn(ofScope, text, () => {
      this.#tokens.push(tokens);
      return (this.#texts.push(text) - 1) as Label;
    });
  }

  /** Throws for a block that was not taken before. */
  get(scope: string, text: string): RetrievedBlock {
    const label = this.find(scope, text);
    if (label === undefined) throw new Error("batch blocks: a block that was never taken");
    return { label, tokens: this.#tokens[label] ?? 0 };
  }

  find(scope: string, text: string): Label | undefined {
    return this.#numbers.get(scope)?.get(text);
  }

  textOf(label: Label): string {
    return this.#texts[label] as string;
  }
}

export interface FoundRequest {
  readonly index: number;
  readonly request: ComposeRequest;
  readonly lookup: WaitingLookup;
}

/** Requests prepared, and requests read in one scope's index, before the event loop is yielded. */
const READY_AT_ONCE = 32;

const READ_AT_ONCE = 128;

export interface FoundPlan {
  /** In execution order. */
  readonly requests: readonly PlannedFound[];
  /** The cluster trees of the batch's scopes, once its prompts are composed; none of other planners. */
  readonly trees: readonly { readonly scope: BatchScope; readonly nodes: readonly ClusteredTexts[] }[];
}

/** A request in execution order. `order`: its blocks, by their texts. */
interface PlannedFound {
  readonly found: FoundRequest;
  readonly order: readonly string[];
  /** How many leading blocks of `order` the plan relies on. */
  readonly shared: number;
}

/**
 * Plans requests of any users: gives them in execution order. Requests can share a prefix only within one key: user, agent and the
 * text before the blocks. The cached prefixes are read now, so earlier batches count. A request alone in its key needs no plan. ContextPilot's
 * planner knows of no text before the blocks, and plans by scope, on the scope's cluster tree.
 */
export async function planFound(
  requests: readonly FoundRequest[],
  blocks: BatchBlocks,
  { planning, planner }: { readonly planning: PlanBatch; readonly planner: BatchPlanner },
  composer: Pick<PromptComposer, "known" | "clusters">,
): Promise<FoundPlan> {
  const batch: BatchRequest[] = [];
  for (const request of requests) {
    batch.push(plannable(request, blocks));
    if (batch.length % READY_AT_ONCE === 0) await setImmediate();
  }
  if (planner === "context-pilot") return planOnTrees(requests, batch, blocks, { planning, composer });
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
    const labelsOf = (texts: readonly string[]) => texts.flatMap((text) => blocks.find(scope, text) ?? []);
    knowledge.push({
      key,
      cached: cached.sort((a, b) => a.lastUsed - b.lastUsed).map(({ texts }) => labelsOf(texts)),
      recent: recent.map(labelsOf),
    });
  }
  const plan = await planning(batch, planner, knowledge, []);
  return { requests: plannedOf(plan, requests, blocks), trees: [] };
}

function plannedOf(plan: BatchPlan, requests: readonly FoundRequest[], blocks: BatchBlocks): PlannedFound[] {
  return plan.requests.map(({ request, order, shared }) => ({
    found: requests[request] as FoundRequest,
    order: order.map((label) => blocks.textOf(label)),
    shared,
  }));
}

/** ContextPilot's batches: Alg. 4 and 5 in a scope without a cluster tree, else Alg. 2 and 5 on its tree. */
async function planOnTrees(
  requests: readonly FoundRequest[],
  batch: readonly BatchRequest[],
  blocks: BatchBlocks,
  { planning, composer }: { readonly planning: PlanBatch; readonly composer: Pick<PromptComposer, "clusters"> },
): Promise<FoundPlan> {
  const scopes = new Map(requests.map(({ request }) => [scopeName(request), request]));
  const known: ClusteredKey[] = [];
  for (const [key, scope] of scopes) {
    const texts = (await composer.clusters(scope)) ?? [];
    const nodes = texts.map((node) => ({ ...node, blocks: node.blocks.map((text) => blocks.number(key, text)) }));
    known.push({ key, nodes });
    await setImmediate();
  }
  const ofScopes = batch.map((each, at) => ({ ...each, key: scopeName((requests[at] as FoundRequest).request) }));
  const plan = await planning(ofScopes, "context-pilot", [], known);
  const trees = plan.trees.map(({ key, nodes }) => ({
    scope: scopes.get(key) as BatchScope,
    nodes: nodes.map((node) => ({ ...node, blocks: node.blocks.map((label) => blocks.textOf(label)) })),
  }));
  return { requests: plannedOf(plan, requests, blocks), trees };
}

function plannable({ request, lookup }: FoundRequest, blocks: BatchBlocks): BatchRequest {
  const { conversationId, messages } = request;
  const scope = scopeName(request);
  const memories = "found" in lookup ? lookup.found : [];
  const wanted = new Map(memories.map(({ text }) => blocks.take(scope, text)).map((block) => [block.label, block]));
  const before = messages.slice(0, messages.at(-1)?.role === "user" ? -1 : undefined);
  return {
    key: `${scope} ${before.map(messageDigest).join(" ")}`,
    blocks: [...wanted.values()],
    ...(conversationId === null ? {} : { conversation: `${scope} ${JSON.stringify(conversationId)}` }),
  };
}

export interface RoutableRequest {
  readonly found: { readonly request: BatchScope };
  readonly order: readonly string[];
}

/** Routes each request of a batch to the worker that processed most of its blocks, within the bound of `routeToWorkers`. */
export class BatchRouting {
  /** @param names at least one, each different */
  constructor(
    private readonly names: readonly string[],
    private readonly routing: PromptRouting,
  ) {}

  async route(requests: readonly RoutableRequest[], blocks: BatchBlocks): Promise<readonly string[]> {
    const scopes = new Map(requests.map(({ found }) => [scopeName(found.request), found.request]));
    const loads = this.routing.loadsOf(this.names);
    const workers = this.names.map((name, at) => ({
      name,
      tokens: loads[at] ?? 0,
      processed: [] as { key: string; label: Label }[],
    }));
    for (const [key, scope] of scopes) {
      const byWorker = await this.routing.processedBy(scope, this.names);
      for (const [at, { processed }] of workers.entries()) {
        for (const text of byWorker[at] ?? []) {
          const label = blocks.find(key, text);
          if (label !== undefined) processed.push({ key, label });
        }
      }
    }
    const routable = requests.map(({ found, order }) => {
      const key = scopeName(found.request);
      return { key, blocks: order.map((text) => blocks.get(key, text)) };
    });
    return routeToWorkers(routable, workers);
  }

  /** Records the composed requests' workers for later batches. */
  async remember(composed: readonly (RoutableRequest & { readonly worker: string })[]): Promise<void> {
    const given = new Map<string, { scope: BatchScope; worker: string; texts: Set<string> }>();
    for (const { found, order, worker } of composed) {
      const key = `${scopeName(found.request)} ${worker}`;
      const { texts } = keptIn(given, key, () => ({ scope: found.request, worker, texts: new Set() }));
      for (const text of order) texts.add(text);
    }
    for (const { scope, worker, texts } of given.values()) await this.routing.remember(scope, worker, [...texts]);
  }
}
