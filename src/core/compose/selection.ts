import type { Resolution } from "../blocks/block-register.js";
import type { StoredBlock } from "../blocks/context-block.js";
import type { Standing } from "../conversation/conversation.js";
import { supersedesStanding } from "../conversation/injecting.js";
import { type AroundBlocks, type EngineModel, sparedBy } from "../cost/engine-model.js";
import { orderAfter } from "../ordering/order-after.js";
import type { CarryAllowance, Ordering, OrderingRequest } from "../ordering/ordering.js";
import type { ScopePolicy } from "../published/published-knowledge.js";
import type { Digest, Label } from "../text/ids.js";
import type { Depth } from "./depth.js";
import type { ScopeState } from "./scope-state.js";

/** What of a request says which blocks its turn gives. */
export interface SelectionInput {
  readonly policy: ScopePolicy;
  /** Tokens that this turn's blocks may come to, carried ones included; null: what was retrieved. A policy that carries reads it. */
  readonly memoryBudgetTokens: number | null;
  /** The same over all of the scope's prompts that say one, as a multiple of what was retrieved; see {@link MemoryBank}. Null: none. */
  readonly memoryBudgetRatio: number | null;
  /** What prompts cost the engine that this one goes to. */
  readonly engine: EngineModel;
  /** How much of what was retrieved the turn gives. Default: all of it. */
  readonly depth?: Depth | undefined;
}

/** The blocks that a turn gives, in order, and those that it does not. */
export interface Selection {
  /** What was retrieved, as blocks. */
  readonly resolution: Resolution;
  /** Distinct blocks that were retrieved and that no earlier turn of this prompt gave, by relevance … */
  readonly fresh: readonly StoredBlock[];
  /** … the tokens of their lines … */
  readonly freshTokens: number;
  /** … how many of them have to be given, because this prompt holds what they take the place of … */
  readonly due: number;
  /** … and those that this turn does not give. */
  readonly heldBack: ReadonlySet<Label>;
  readonly request: OrderingRequest;
  readonly ordering: Ordering;
}

/** Where the blocks will stand. */
export interface BlockPlace {
  /** Digest of what stands before them. */
  readonly anchor: Digest;
  /** What earlier turns of this prompt gave. */
  readonly standing: Standing;
  /** Tokens before the blocks, and behind them. */
  readonly before: number;
  readonly after: number;
  /** Tokens that the blocks may come to; null: as many as they do. */
  readonly room: number | null;
}

/** Chooses the blocks that a turn gives and orders them, to reuse most of what is cached. Pure: serves nothing. */
export function selectBlocks(
  state: ScopeState,
  resolution: Resolution,
  input: SelectionInput,
  { anchor, standing, before, after, room }: BlockPlace,
): Selection {
  const fresh = resolution.blocks.filter(({ label }) => !standing.given.has(label));
  const superseding = supersedesStanding(state.register, standing);
  const freshTokens = fresh.reduce((sum, { tokens }) => sum + tokens, 0);
  const wanted = firstGiven(fresh, superseding, input.depth?.blocks ?? fresh.length);
  const request: OrderingRequest = {
    anchor,
    retrieved: room === null ? wanted : thatFit(wanted, room),
    // For all of them, so that steps which give more stay within the budget.
    carrying: room === null ? carryAllowance(state, standing, input, { before, retrieved: freshTokens, after }) : null,
  };
  const extended = input.depth?.after ?? null;
  const { policy } = input;
  const ordering = extended === null ? policy.order(request, state) : orderAfter(extended, policy, request, state);
  const placed = new Set(ordering.labels);
  return {
    resolution,
    fresh,
    freshTokens,
    due: fresh.filter(({ label }) => superseding.has(label)).length,
    heldBack: new Set(fresh.map(({ label }) => label).filter((label) => !placed.has(label))),
    request,
    ordering,
  };
}

/** The most relevant blocks; those whose older text stands in the prompt come first, as it would be taken for the current one. */
function firstGiven(fresh: readonly StoredBlock[], due: ReadonlySet<Label>, count: number): readonly StoredBlock[] {
  if (count >= fresh.length) return fresh;
  const others = fresh.filter(({ label }) => !due.has(label));
  const left = new Set(others.slice(Math.max(0, count - (fresh.length - others.length))).map(({ label }) => label));
  return fresh.filter(({ label }) => !left.has(label));
}

/** The most relevant blocks that come to no more than these tokens; what is too long is passed over for what is not. */
function thatFit(blocks: readonly StoredBlock[], tokens: number): readonly StoredBlock[] {
  let left = tokens;
  return blocks.filter((block) => {
    if (block.tokens > left) return false;
    left -= block.tokens;
    return true;
  });
}

/** What may stand in this turn beside the retrieved blocks; null for nothing. */
function carryAllowance(
  { register, bank }: ScopeState,
  { given }: Standing,
  { memoryBudgetTokens: budget, memoryBudgetRatio: ratio, engine }: SelectionInput,
  around: AroundBlocks,
): CarryAllowance | null {
  const { retrieved } = around;
  if (retrieved === 0 || (budget === null && ratio === null)) return null;
  const own = budget === null ? null : budget - retrieved;
  const banked = ratio === null ? null : bank.allowanceFor(ratio, retrieved);
  const tokens = Math.min(own ?? Number.POSITIVE_INFINITY, banked?.tokens ?? Number.POSITIVE_INFINITY);
  if (tokens <= 0) return null;
  return {
    tokens,
    ownTokens: own,
    bankedTokens: banked?.banked ?? null,
    knownTokens: register.currentTokens,
    spared: sparedBy(engine, around),
    tokensOf: (label) => {
      const block = register.get(label);
      return block === undefined || block.supersededBy !== null || given.has(label) ? null : block.tokens;
    },
  };
}
