/*
 * compose: one request becomes one prompt. Past (the recognised history) → selection (ordered blocks) → draft (the complete prompt) →
 * composition (the prompt served into the scope's state).
 * Enters: a {@link ScopeState} and a {@link ComposeInput}. Leaves: messages, a plan, warnings, and the rows to store.
 */

import type { BlockRegister } from "../blocks/block-register.js";
import type { Resolution } from "../blocks/context-block.js";
import { serve } from "../context-index/serving.js";
import { exactPath, type RestatedTurn } from "../conversation/replay.js";
import type { Turn } from "../conversation/turn.js";
import type { Ordering } from "../ordering/ordering.js";
import type { Injection } from "../prompt/injection.js";
import { renderAnnotation } from "../prompt/rendering.js";
import { type Digest, digestOf, type Label, type MemoryId, type NodeId } from "../text/ids.js";
import { groupBy } from "../text/lists.js";
import type { ChatMessage } from "../text/message.js";
import type { ComposeInput } from "./draft.js";
import { computedTokens, type DraftedEpoch, draftPrompt } from "./epoch-draft.js";
import type { EpochHead } from "./epoch-head.js";
import type { PlacedMemory, Placement, Plan, PlanEpoch } from "./plan.js";
import type { ScopeState } from "./scope-state.js";
import { promptSections } from "./section-tokens.js";
import { heldBackWarnings, historyWarnings, leftOutWarnings, resolutionWarnings, type Warning } from "./warning.js";

/** A composed prompt, with everything that must be stored to continue and repeat it. */
export interface Composition {
  readonly messages: readonly ChatMessage[];
  /** Every distinct memory of the request that is not held back: this turn's in prompt order, then those of earlier turns by rank. */
  readonly memories: readonly PlacedMemory[];
  /** This turn's annotation lines, as printed in the prompt. */
  readonly annotations: readonly string[];
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
  readonly turn: Turn;
  /** The instructions at the head of the prompt. */
  readonly head: readonly ChatMessage[];
  /** The plain messages that this turn adds to its parent's. */
  readonly given: readonly ChatMessage[];
  /** Earlier turns that the client sent back in another form, first to last; ancestors of `turn`. */
  readonly restated: readonly RestatedTurn[];
  /** Digests of the sections that this turn sent and that later turns replay, to recognise them in messages that a client sends back. */
  readonly sections: readonly Digest[];
  /** Node of the context index where the served sequence ends. */
  readonly leaf: NodeId;
  /** Tokens of `head`. */
  readonly headTokens: number;
  /** Tokens of the prompt that earlier prompts begin with, evicted or not. */
  readonly knownTokens: number;
}

/**
 * Composes one prompt and updates the scope's state: replays what earlier turns injected, injects the blocks that are not in the prompt
 * yet, in the order that reuses most of the cache, and refers to the rest. Deterministic: the same state and input give the same bytes.
 * Expects at least one message that is not an instruction.
 */
export function compose(state: ScopeState, input: ComposeInput): Composition {
  const { register, index } = state;
  const { countTokens, policy, conversation, depth } = input;
  const draft = draftPrompt(state, input);
  const { prompt, totalTokens, past, replay, choice, selection, section, epoch } = draft;
  const { turns, history } = past;
  const { resolution, fresh, freshTokens, heldBack, request, ordering } = selection;
  const { placement, injection, anchor, sharedAnchor } = section;
  const { rest } = history;
  const { retention, freshStart } = choice;
  const ownSection = {
    anchor,
    sharedAnchor,
    blocks: injection.blocks,
    before: section.tokensBefore,
    end: totalTokens,
    sentBy: null,
  };
  const { sections, known } = promptSections(
    replay,
    ownSection,
    input.residency,
    register,
    countTokens,
    history.turns.some(({ isRestated }) => isRestated),
  );
  // Each turn id takes a tick, so that turn ids equal clock readings.
  const newTurnId = () => {
    state.tick();
    return state.newTurnId();
  };
  const { parent, restated } = exactPath(turns, history.turns, replay, newTurnId);
  for (const { turn: again } of restated) turns.add(again);
  const served = serve(index, input.residency, sections, known, state.tick(), input.now);
  const { leaf } = served;
  const cachedBlocks = draft.head?.cachedBlocks ?? served.cachedBlocks;
  const resident = Math.min(served.cachedTokens, totalTokens, input.residentTokens ?? totalTokens);
  const expectedCachedTokens = input.wholeBlocks?.(resident) ?? resident;
  const turnId = state.newTurnId();
  policy.learn?.(request, ordering, state, turnId);
  if (input.memoryBudgetRatio !== null) {
    state.bank.settle(input.memoryBudgetRatio, freshTokens, register.tokensOf(ordering.carried));
  }
  const asked = resolution.blocks.map(({ label }) => label).filter((label) => !heldBack.has(label));
  state.recent.take(asked, turnId);

  const turn: Turn = {
    id: turnId,
    conversationId: conversation?.id ?? null,
    parent,
    given: rest.digests,
    meant: rest.meant,
    placement,
    injection,
    retention,
    freshStart,
    requested: conversation === null ? [] : asked,
    head: replay.head,
    prompt: prompt.digest,
    anchor,
    promptTokens: totalTokens,
    computedTokens: computedTokens(draft),
    epoch: turns.epochOf(turnId, parent),
    behind: epoch?.behind ?? null,
  };
  turns.add(turn);
  return {
    messages: prompt.messages,
    memories: placeMemories(register, resolution, ordering, cachedBlocks, draft.head?.injection ?? injection, heldBack),
    annotations: injection.annotations.map((annotation) => renderAnnotation(annotation, register.textOf)),
    plan: {
      layout: conversation === null ? "single" : "conversation",
      policy: policy.name,
      expectedCachedTokens,
      uncachedTokens: totalTokens - expectedCachedTokens,
      totalTokens,
      searchPath: ordering.searchPath,
      orderChanged: ordering.labels
        .filter((label) => !ordering.carried.has(label))
        .some((label, rank) => request.retrieved[rank]?.label !== label),
      stableMessages: replay.stableMessages,
      retention,
      freshStart,
      ...(draft.added === 0 ? {} : { addedMessages: draft.added }),
      ...(epoch === null ? {} : { epoch: planEpoch(epoch, draft.head, register) }),
      ...(depth === undefined
        ? {}
        : { depth: { retrieved: fresh.length, given: fresh.length - heldBack.size, ...depth.choice } }),
    },
    warnings: [
      ...resolutionWarnings(resolution),
      ...historyWarnings(history),
      ...(draft.isCramped ? leftOutWarnings(resolution, heldBack) : heldBackWarnings(resolution, heldBack)),
    ],
    turn,
    head: past.head.messages,
    given: rest.messages,
    restated,
    sections: (section.kept === section.text ? [section.text] : [section.text, section.kept])
      .filter((sent) => sent !== "")
      .map(digestOf),
    leaf,
    headTokens: replay.headTokens,
    knownTokens: Math.max(replay.knownTokens, expectedCachedTokens),
  };
}

function planEpoch(
  { began, prompts, leftOut }: DraftedEpoch,
  head: EpochHead | null,
  register: BlockRegister,
): PlanEpoch {
  const [headTokens, carriedTokens] =
    head === null ? [0, 0] : [head.tokens, register.tokensOf(head.selection.ordering.carried)];
  return { began, prompts, leftOut, headTokens, carriedTokens };
}

const NOTHING_REPLACED: readonly Label[] = [];

function placeMemories(
  register: BlockRegister,
  resolution: Resolution,
  ordering: Ordering,
  cachedBlocks: number,
  injection: Injection,
  heldBack: ReadonlySet<Label>,
): PlacedMemory[] {
  const restored = injection.annotations.filter((annotation) => annotation.kind === "restored");
  const replaces = new Map<Label, readonly Label[]>();
  for (const { label, replaces: old } of [...injection.blocks, ...restored])
    if (old.length > 0) replaces.set(label, old);
  const placed: PlacedMemory[] = [];
  const place = (label: Label, memoryId: MemoryId, rank: number | null, placement: Placement) => {
    placed.push({ label, memoryId, placement, rank, replaces: replaces.get(label) ?? NOTHING_REPLACED });
  };
  const byLabel = groupBy(resolution.memories, ({ label }) => label);
  for (const [at, label] of ordering.labels.entries()) {
    if (ordering.carried.has(label)) place(label, register.memoryOf(label) as MemoryId, null, "carried_over");
    else {
      const placement = at < cachedBlocks ? "cached_prefix" : "new";
      for (const { memoryId, rank } of byLabel.get(label) ?? []) place(label, memoryId, rank, placement);
    }
    byLabel.delete(label);
  }
  if (byLabel.size === 0) return placed;
  for (const { label, memoryId, rank } of resolution.memories)
    if (byLabel.has(label) && !heldBack.has(label)) place(label, memoryId, rank, "earlier_turn");
  return placed;
}
