import type { Replay } from "../conversation/replay.js";
import type { MissCause } from "./miss.js";
import type { Plan } from "./plan.js";

/** What a prompt would have cost without memprefix: the memories it retrieved, as a list. Tokens that the engine would have computed. */
export interface ByHand {
  /** The list in the newest message. */
  readonly inMessage: number;
  /** The list in the system prompt, as Mem0's README has it. */
  readonly inSystem: number;
}

/** Causes for which the engine would have nothing of the conversation's prompt before, however it was built. */
const LOST: ReadonlySet<MissCause> = new Set([
  ...(["first_prompt", "instructions_changed", "tools_changed", "model_changed", "history_changed"] as const),
  ...(["expired", "evicted"] as const),
]);

/**
 * @param replay the conversation's turns before this one
 * @param tokens of this turn's section, and of all memories that it retrieved
 * @returns null for a window, of which only the client knows what it would have sent
 */
export function byHand(
  { turns, headTokens }: Pick<Replay, "turns" | "headTokens">,
  {
    totalTokens,
    expectedCachedTokens,
    miss,
    epoch,
  }: Pick<Plan, "totalTokens" | "expectedCachedTokens" | "miss" | "epoch">,
  tokens: { readonly section: number; readonly retrieved: number },
): ByHand | null {
  if (epoch !== undefined) return null;
  const sections = turns.reduce((sum, turn) => sum + turn.tokens.section, 0);
  const all = totalTokens - sections - tokens.section + tokens.retrieved;
  const isLost = miss !== null && LOST.has(miss.cause);
  const last = turns.at(-1);
  // The history has the question before without its list, which is where the two prompts part.
  const before =
    last === undefined ? Math.min(headTokens, expectedCachedTokens) : last.before - (sections - last.tokens.section);
  return { inMessage: all - (isLost ? 0 : before), inSystem: all - (isLost ? 0 : Math.min(headTokens, before)) };
}
