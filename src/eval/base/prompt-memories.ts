import type { PlacedMemory, Plan } from "../../core/index.js";

/** Which memories stand in a prompt, by their number in the list of all. */
export interface StandingMemories {
  /** As they stand, carried ones and those of earlier turns included. */
  readonly order: readonly number[];
  readonly carried: readonly number[];
}

/** Follows, prompt by prompt, which memories stand in one user's prompts. Memories are numbered: their ids are those numbers. */
export class PromptMemories {
  #standing: readonly number[] = [];

  /** The memories of the prompt that was composed last. */
  take(memories: readonly PlacedMemory[], plan: Pick<Plan, "freshStart" | "layout" | "retention">): StandingMemories {
    const placed = memories.filter(({ placement }) => placement !== "earlier_turn");
    const inThisTurn = [...new Set(placed.map(({ memoryId }) => Number(memoryId)))];
    const carried = placed
      .filter(({ placement }) => placement === "carried_over")
      .map(({ memoryId }) => Number(memoryId));
    if (plan.freshStart) this.#standing = [];
    const order = [...this.#standing, ...inThisTurn];
    if (plan.layout === "conversation" && plan.retention !== "ephemeral") this.#standing = order;
    return { order, carried };
  }
}
