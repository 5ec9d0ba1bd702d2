/* Selection: which blocks a turn injects, and in which order. */

import type { Resolution, StoredBlock } from "../blocks/context-block.js";
import type { Standing } from "../conversation/conversation.js";
import { listed, type SupersededLabels } from "../conversation/injecting.js";
import { isExchange } from "../conversation/repeats.js";
import { type AroundBlocks, sparedBy } from "../cost/engine-model.js";
import { bankAllowance } from "../ordering/carry-over.js";
import { type CarryAllowance, extendedOrder, type Ordering, type OrderingRequest } from "../ordering/ordering.js";
import type { Digest, Label } from "../text/ids.js";
import type { ComposeInput } from "./compose-input.js";
import type { ScopeState } from "./scope-state.js";

export interface Selection {
  readonly resolution: Resolution;
  /** Distinct retrieved blocks that the prompt does not have yet and that update nothing in it, by relevance. */
  readonly fresh: readonly StoredBlock[];
  /** Tokens of their lines. */
  readonly freshTokens: number;
  readonly heldBack: ReadonlySet<Label>;
  readonly request: OrderingRequest;
  readonly ordering: Ordering;
}

/** Where the blocks go, with the tokens around them. */
export interface BlockPlace {
  /** Digest of the prompt before them. */
  readonly anchor: Digest;
  /** Whether the blocks are in a conversation, or later prompts begin with them; see {@link LEAST_HIT}. */
  readonly isInConversation: boolean;
  /** What earlier turns of this prompt injected. */
  readonly standing: Standing;
  /** What of that is superseded. */
  readonly superseded: SupersededLabels;
  readonly before: number;
  readonly after: number;
  readonly room: number | null;
}

/**
 * Blocks in a conversation move only if so many tokens, or half of the blocks, are cached: the ranking of moved blocks costs some 14 tokens in
 * every later prompt. Figures: docs/papers.md, "Sessions of several turns".
 */
const LEAST_HIT = 40;

/** Chooses and orders a turn's blocks to reuse most of the cache. Pure. */
export function selectBlocks(
  state: ScopeState,
  resolution: Resolution,
  input: ComposeInput,
  { anchor, isInConversation, standing, superseded, before, after, room }: BlockPlace,
): Selection {
  const fresh = listed(resolution.blocks, standing, superseded);
  const freshTokens = tokensIn(fresh);
  const wanted = fresh.slice(0, input.depth?.blocks);
  // Below the engine's minimum, blocks keep relevance order.
  const isNeverCached = before + freshTokens + after < input.engine.minimumPrefixTokens;
  const request: OrderingRequest = {
    anchor,
    retrieved: room === null ? wanted : fitting(wanted, room),
    // Computed for all fresh blocks, so that deeper probes stay within the budget.
    carrying:
      room === null && input.mayCarry !== false
        ? carryAllowance(state, resolution, standing, input, { before, retrieved: freshTokens, after })
        : null,
    ...(isInConversation ? { leastHit: Math.min(LEAST_HIT, freshTokens / 2) } : {}),
    ...(isNeverCached ? { leastHit: Number.POSITIVE_INFINITY } : {}),
  };
  const extended = input.depth?.after ?? null;
  const { policy } = input;
  const ordering = extended === null ? policy.order(request, state) : extendedOrder(extended, policy, request, state);
  const placed = new Set(ordering.labels);
  return {
    resolution,
    fresh,
    freshTokens,
    heldBack: new Set(fresh.map(({ label }) => label).filter((label) => !placed.has(label))),
    request,
    ordering,
  };
}

export function tokensIn(blocks: readonly StoredBlock[]): number {
  return blocks.reduce((sum, { tokens }) => sum + tokens, 0);
}

/** Greedy by relevance; skips a block that does not fit. */
function fitting(blocks: readonly StoredBlock[], tokens: number): readonly StoredBlock[] {
  let left = tokens;
  return blocks.filter((block) => {
    if (block.tokens > left) return false;
    left -= block.tokens;
    return true;
  });
}

function carryAllowance(
  { register, bankedTokens }: ScopeState,
  resolution: Resolution,
  { given }: Standing,
  { memoryBudgetTokens: budget, memoryBudgetRatio: ratio, engine, conversation }: ComposeInput,
  around: AroundBlocks,
): CarryAllowance | null {
  const { retrieved } = around;
  if (retrieved === 0 || (budget === null && ratio === null)) return null;
  const own = budget === null ? null : budget - retrieved;
  const banked = ratio === null ? null : bankAllowance(bankedTokens, ratio, retrieved);
  const tokens = Math.min(own ?? Number.POSITIVE_INFINITY, banked?.tokens ?? Number.POSITIVE_INFINITY);
  if (tokens <= 0) return null;
  const leftOut = new Set(resolution.leftOut);
  return {
    tokens,
    ownTokens: own,
    bankedTokens: banked?.banked ?? null,
    knownTokens: register.currentTokens,
    spared: sparedBy(engine, around),
    tokensOf: (label) => {
      const block = register.get(label);
      if (block === undefined || block.supersededBy !== null || given.has(label) || leftOut.has(label)) return null;
      // Its client may have redacted the exchange since.
      if (conversation !== null && isExchange(block.text)) return null;
      // Texts of runs alone are for the requests of those runs.
      return register.commonWith(label) === undefined || register.isUntrusted(label) ? null : block.tokens;
    },
  };
}
