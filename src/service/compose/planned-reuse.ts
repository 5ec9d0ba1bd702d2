import type { BlockRegister, Composition, Digest, Label, Turn } from "../../core/index.js";
import type { PlannedReuse } from "../base/memstem-observer.js";

/** What was known before a prompt was composed. */
interface KnownBefore {
  /** The conversation's newest turn; null: none, or a single prompt. */
  readonly before: Turn | null;
  /** Instructions of the scope's single prompt before; null: not known. */
  readonly headBefore: Digest | null;
  /** The first label that no block had. */
  readonly firstNew: number;
  readonly register: Pick<BlockRegister, "tokensOf">;
  /** How many of so many leading tokens the engine can have cached; see `SharedCache.wholeBlocks`. */
  readonly wholeBlocks: (tokens: number) => number;
}

/** Compares a prompt with the one that it should have continued, by digests and labels. */
export function plannedReuse(
  { plan, turn, memories, headTokens }: Composition,
  { before, headBefore, firstNew, register, wholeBlocks }: KnownBefore,
): PlannedReuse {
  const carried = memories.flatMap(({ label, placement }) => (placement === "carried_over" ? [label] : []));
  const carriedTokens = register.tokensOf(new Set(carried));
  const beganEpoch = plan.epoch != null && plan.epoch.began !== null;
  if (turn.conversationId === null) {
    const { moved, hasNewInFront } = movedBlocks(memories, firstNew);
    const hasOtherInstructions = headBefore !== null && headBefore !== turn.head;
    return {
      reusableTokens: headBefore === null || hasOtherInstructions ? null : wholeBlocks(headTokens),
      hasOtherInstructions,
      beganEpoch: false,
      isRewritten: false,
      isDropped: false,
      movedTokens: register.tokensOf(moved),
      hasNewInFront,
      carriedTokens,
    };
  }
  return {
    // A restated turn was not sent as a prompt.
    reusableTokens: before === null ? null : wholeBlocks(before.promptTokens),
    hasOtherInstructions: before !== null && before.head !== turn.head,
    beganEpoch,
    isRewritten: before !== null && turn.parent !== before.id,
    isDropped: plan.freshStart || (before !== null && before.retention !== "keep"),
    movedTokens: 0,
    hasNewInFront: false,
    carriedTokens,
  };
}

/** Blocks that earlier prompts had and that are not expected to hit, and whether a new one stands before one of them. */
function movedBlocks(memories: Composition["memories"], firstNew: number) {
  const moved = new Set<Label>();
  let hasNew = false;
  let hasNewInFront = false;
  for (const { label, placement } of memories) {
    if (placement !== "new") continue;
    if (label >= firstNew) hasNew = true;
    else {
      moved.add(label);
      hasNewInFront ||= hasNew;
    }
  }
  return { moved, hasNewInFront };
}
