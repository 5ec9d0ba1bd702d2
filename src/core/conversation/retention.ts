import { type Injection, NOTHING_INJECTED } from "../prompt/injection.js";

/**
 * What later prompts of a conversation keep of what a turn injected (docs/internals/algorithms.md, "Conversations"):
 * - `keep`: all of it, so that prompts only grow. Fewest tokens to compute, but every new token attends over what is kept.
 * - `volatile`: the blocks; what pointed at them goes, and with it the reuse of the question and answer behind it.
 * - `ephemeral`: nothing; memories stand in the newest message only and are computed each time.
 */
export const FIXED_RETENTIONS = ["keep", "volatile", "ephemeral"] as const;
export type FixedRetention = (typeof FIXED_RETENTIONS)[number];

/** The retentions that a caller can name; `auto` chooses one for each turn by what the engine's model says it costs. */
export const RETENTION_NAMES = [...FIXED_RETENTIONS, "auto"] as const;
export type RetentionName = (typeof RETENTION_NAMES)[number];

/** What users expect of a cache-stable prompt: it only grows. */
export const DEFAULT_RETENTION: RetentionName = "keep";

/** What becomes of injections from one turn on. */
export interface RetentionChoice {
  /** For what this turn injects. */
  readonly retention: FixedRetention;
  /** Nothing that earlier turns injected stands in this prompt or a later one: what is still wanted is given again. */
  readonly freshStart: boolean;
}

/**
 * What later prompts keep of an injection. Whatever the retention, a line that takes back what an earlier one said stays, as that one
 * does: a block that replaces another, and the word that a text is current again.
 */
export function retained({ blocks, annotations }: Injection, retention: FixedRetention): Injection {
  if (retention === "keep") return { blocks, annotations };
  return {
    blocks: retention === "volatile" ? blocks : blocks.filter(({ replaces }) => replaces.length > 0),
    annotations: annotations.filter(({ kind }) => kind === "restored"),
  };
}

/** A turn, as far as retention goes. */
interface RetainingTurn extends RetentionChoice {
  readonly injection: Injection;
}

/** The injections that stand in a prompt behind which these turns lie, one for each turn; from the last fresh start on. */
export function standingInjections(turns: readonly RetainingTurn[], freshStart: boolean): Injection[] {
  const start = freshStart ? turns.length : turns.findLastIndex((turn) => turn.freshStart);
  return turns.map(({ injection, retention }, at) => (at < start ? NOTHING_INJECTED : retained(injection, retention)));
}
