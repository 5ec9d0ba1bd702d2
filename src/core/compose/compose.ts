/* compose: one request becomes one prompt. History → selection → draft → composition. Leaves: messages, a plan, warnings, and the rows to store. */

import type { BlockRegister } from "../blocks/block-register.js";
import type { Resolution } from "../blocks/context-block.js";
import { serve } from "../cache/residency.js";
import type { SpokenTurn, Turn } from "../conversation/conversation.js";
import type { RecalledHistory } from "../conversation/history.js";
import { firstChangedLine } from "../conversation/instructions.js";
import { exactPath, promptSections } from "../conversation/replay.js";
import { bankAfter } from "../ordering/carry-over.js";
import { NO_ROOT } from "../prompt/prompt.js";
import { type Injection, renderAnnotation, updatesIn } from "../prompt/section.js";
import { groupBy } from "../text/collections.js";
import { type Digest, digestOf, type Label, type MemoryId, type NodeId } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import { type ByHand, byHand } from "./by-hand.js";
import type { ComposeInput } from "./compose-input.js";
import { draftPrompt } from "./draft.js";
import { plannedMiss } from "./miss.js";
import type { PlacedMemory, Placement, Plan } from "./plan.js";
import type { ScopeState } from "./scope-state.js";
import type { Selection } from "./selection.js";

/** Contains no memory text. The prompt is usable all the same. */
export interface Warning {
  readonly code:
    | "duplicate_memory"
    | "duplicate_text"
    | "contained_text"
    | "memory_in_messages"
    | "memory_replaced"
    | "provider_memories_moved"
    | "memory_conflict"
    | "memory_forgotten"
    | "memory_unusable"
    | "no_memory_source"
    | "memory_ended"
    | "history_diverged"
    | "history_cut"
    | "answer_missing"
    | "injected_text_removed"
    | "memory_cut"
    | "memory_source_failed"
    | "memory_budget_unused"
    | "memory_held_back"
    | "memory_left_out"
    | "depth_unavailable"
    | "request_id_reused";
  readonly message: string;
  readonly memoryIds?: readonly MemoryId[];
}

/** A composed prompt, with everything to store so that it can be continued and repeated. */
export interface Composition {
  readonly messages: readonly ChatMessage[];
  /** Distinct memories that are not held back: this turn's in prompt order, then earlier turns' by rank. */
  readonly memories: readonly PlacedMemory[];
  readonly annotations: readonly string[];
  readonly plan: Plan;
  readonly byHand: ByHand | null;
  readonly warnings: readonly Warning[];
  readonly turn: Turn;
  readonly head: readonly ChatMessage[];
  /** The plain messages that this turn adds to its parent's. */
  readonly given: readonly ChatMessage[];
  /** Earlier turns that the client sent back in another form; ancestors of `turn`. */
  readonly restated: readonly SpokenTurn[];
  /** Digests of the sections sent and replayed, to recognise them when a client sends them back. */
  readonly sections: readonly Digest[];
  /** Node of the context index where the served sequence ends. */
  readonly leaf: NodeId;
  readonly headTokens: number;
  /** Tokens of the prompt that earlier prompts begin with, evicted or not. */
  readonly knownTokens: number;
}

/** Composes one prompt and updates the scope's state. Deterministic. Expects at least one message that is not an instruction. */
export function compose(state: ScopeState, input: ComposeInput): Composition {
  const { register, index } = state;
  const { countTokens, policy, conversation, depth } = input;
  const firstNew = register.nextLabel;
  const before = conversation?.turns.newest ?? null;
  const draft = draftPrompt(state, input);
  const { prompt, totalTokens, computedTokens, history, replay, choice, selection, section, epoch, behind } = draft;
  const { conversation: turns, rest } = history;
  const { resolution, fresh, freshTokens, heldBack, request, ordering } = selection;
  const { placement, injection, anchor } = section;
  const { retention, freshStart, keptTurns } = choice;
  const isCut = input.isCut === true || history.endsEarly === true;
  const freshStartReason = isCut ? "memory_forgotten" : choice.freshStartReason;
  const sections = promptSections(
    replay,
    section,
    input.cache.residency,
    register,
    countTokens,
    history.turns.some(({ isRestated }) => isRestated),
  );
  const { parent, restated } = exactPath(history, replay, () => state.newTurnId());
  for (const { turn: again } of restated) turns.add(again);
  const turnId = state.newTurnId();
  const served = serve(index, input.cache.residency, sections, replay, turnId, input.now);
  const { leaf } = served;
  const cachedBlocks = draft.head?.cachedBlocks ?? served.cachedBlocks;
  const resident = Math.max(
    Math.min(served.cachedTokens, totalTokens, input.cache.residentTokens),
    replay.othersTokens,
  );
  const expectedCachedTokens = input.cache.wholeBlocks(resident);
  policy.learn?.(request, ordering, state, turnId);
  if (input.memoryBudgetRatio !== null) {
    const carriedTokens = register.tokensOf(ordering.carried);
    state.bankedTokens = bankAfter(state.bankedTokens, input.memoryBudgetRatio, freshTokens, carriedTokens);
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
    keptTurns,
    requested: conversation === null ? [] : asked,
    head: replay.head,
    prompt: prompt.digest,
    anchor,
    promptTokens: totalTokens,
    computedTokens,
    epoch: turns.epochOf(turnId, parent),
    behind,
  };
  turns.add(turn);
  const sentBefore = turns.instructions;
  turns.instructions = history.head.messages;
  const memories = placeMemories(register, selection, draft.head?.injection ?? injection, cachedBlocks);
  const { head: headBefore = null, root: rootBefore = null, ageMs = null } = input.earlier ?? {};
  const { model, tools } = input.root ?? NO_ROOT;
  const hasOtherTools = rootBefore !== null && rootBefore.tools !== tools;
  const isContinued = before !== null && parent === before.id;
  const { wholeBlocks, residency } = input.cache;
  const hasOtherInstructions =
    conversation === null
      ? headBefore !== null && headBefore !== replay.head
      : before !== null && before.head !== replay.head;
  const instructionChange =
    hasOtherInstructions && sentBefore !== null ? firstChangedLine(sentBefore, history.head.messages) : null;
  const miss = plannedMiss({
    before: wholeBlocks(isContinued ? replay.tokens : section.before),
    known: wholeBlocks(Math.max(replay.knownTokens, headBefore === replay.head ? replay.headTokens : 0)),
    cached: expectedCachedTokens,
    moved: conversation === null ? register.tokensOf(movedBlocks(memories, firstNew)) : 0,
    isFirst: turnId === 1,
    isContinued,
    hasOtherModel: rootBefore !== null && rootBefore.model !== model,
    hasOtherTools,
    hasOtherInstructions,
    hasOtherHistory: (epoch?.began ?? null) !== null || (before !== null && !isContinued),
    hasOtherMemories: freshStart || isCut || (before !== null && before.retention !== "keep"),
    ageMs,
    ttlMs: residency.ttlMs,
  });
  const plan: Plan = {
    layout: conversation === null ? "single" : "conversation",
    policy: policy.name,
    expectedCachedTokens,
    uncachedTokens: totalTokens - expectedCachedTokens,
    totalTokens,
    miss,
    searchPath: ordering.searchPath,
    orderChanged: ordering.labels
      .filter((label) => !ordering.carried.has(label))
      .some((label, rank) => request.retrieved[rank]?.label !== label),
    stableMessages: replay.stableMessages,
    ...(instructionChange === null ? {} : { instructionChange }),
    ...(hasOtherTools && input.toolChanges != null ? { toolChanges: input.toolChanges } : {}),
    retention,
    freshStart: freshStart || isCut,
    ...(freshStartReason === null ? {} : { freshStartReason }),
    ...(draft.added === 0 ? {} : { addedMessages: draft.added }),
    ...(epoch === null ? {} : { epoch }),
    ...(depth === undefined
      ? {}
      : { depth: { retrieved: fresh.length, given: fresh.length - heldBack.size, ...depth.choice } }),
  };
  return {
    messages: prompt.messages,
    memories,
    annotations: injection.annotations.map((annotation) => renderAnnotation(annotation, register.textOf)),
    plan,
    byHand: byHand(replay, plan, { section: section.tokens, retrieved: register.tokensOf(new Set(asked)) }),
    warnings: [
      ...resolutionWarnings(resolution),
      ...historyWarnings(history),
      ...heldBackWarnings(resolution, heldBack, draft.isCramped),
    ],
    turn,
    head: history.head.messages,
    given: rest.messages,
    restated,
    sections: [...new Set([section.text, section.kept])].filter((sent) => sent !== "").map(digestOf),
    leaf,
    headTokens: replay.headTokens,
    knownTokens: Math.max(replay.knownTokens, expectedCachedTokens),
  };
}

/** Blocks of earlier prompts that are not expected to hit here. */
function movedBlocks(memories: readonly PlacedMemory[], firstNew: number): ReadonlySet<Label> {
  const moved = memories.filter(({ label, placement }) => placement === "new" && label < firstNew);
  return new Set(moved.map(({ label }) => label));
}

function placeMemories(
  register: BlockRegister,
  { resolution, ordering, heldBack }: Selection,
  injection: Injection,
  cachedBlocks: number,
): PlacedMemory[] {
  const updates = new Map(updatesIn(injection).map((update) => [update.label, update]));
  const placed: PlacedMemory[] = [];
  const place = (label: Label, memoryId: MemoryId, rank: number | null, placement: Placement) => {
    placed.push({ label, memoryId, placement, rank, replaces: updates.get(label)?.replaces ?? [] });
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
  for (const { label, isAgain } of updates.values()) {
    if (isAgain) continue;
    for (const { memoryId, rank } of byLabel.get(label) ?? []) place(label, memoryId, rank, "new");
    byLabel.delete(label);
  }
  if (byLabel.size === 0) return placed;
  for (const { label, memoryId, rank } of resolution.memories)
    if (byLabel.has(label) && !heldBack.has(label)) place(label, memoryId, rank, "earlier_turn");
  return placed;
}

function resolutionWarnings(resolution: Resolution): Warning[] {
  return [
    ...memoryWarning("duplicate_memory", "listed more than once; one copy was kept", resolution.repeated),
    ...memoryWarning(
      "duplicate_text",
      "has the same text as another memory of the request; the prompt contains the text once",
      resolution.sharing,
    ),
    ...memoryWarning(
      "contained_text",
      "says nothing that another memory of the prompt does not say; it is under that one's label",
      resolution.contained,
    ),
    ...memoryWarning("memory_in_messages", "is what the prompt's messages say; it is not given again", resolution.said),
    ...memoryWarning(
      "memory_replaced",
      "is what the conversation's messages said before the client changed them; it is not given",
      resolution.replaced,
    ),
    ...memoryWarning(
      "memory_conflict",
      "listed with two different texts; both are in the prompt, the better ranked one is current",
      resolution.conflicting,
    ),
    ...memoryWarning("memory_forgotten", "was forgotten on request; it is not sent", resolution.forgotten),
  ];
}

function historyWarnings(history: RecalledHistory): Warning[] {
  const warnings: Warning[] = [];
  if (history.diverged) {
    const message =
      "the history was edited, regenerated or truncated; memories that it no longer contains are injected again";
    warnings.push({ code: "history_diverged", message });
  }
  if (history.stripped > 0) {
    const message = `text that memprefix had injected was removed from ${history.stripped} message(s) of the history`;
    warnings.push({ code: "injected_text_removed", message });
  }
  return warnings;
}

/** For memories that do not fit, or that the engine did not need. */
function heldBackWarnings({ memories }: Resolution, heldBack: ReadonlySet<Label>, isCramped: boolean): Warning[] {
  const ids = memories.filter(({ label }) => heldBack.has(label)).map(({ memoryId }) => memoryId);
  return isCramped
    ? memoryWarning("memory_left_out", "was retrieved but not sent: it does not fit into the engine's context", ids)
    : memoryWarning("memory_held_back", "was retrieved but not sent: the engine was confident without it", ids);
}

/** Empty if it is about none. */
export function memoryWarning(code: Warning["code"], message: string, memoryIds: readonly MemoryId[]): Warning[] {
  return memoryIds.length === 0 ? [] : [{ code, message, memoryIds }];
}
