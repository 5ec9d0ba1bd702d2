import { type Injection, NOTHING_INJECTED } from "../prompt/injection.js";

/**
 * What later prompts of a conversation keep of a turn's injection (docs/internals/algorithms.md, "Conversations"):
 * - `keep`: everything; prompts are append-only. Fewest tokens to compute, but every new token attends over what is kept.
 * - `volatile`: the blocks; annotations are dropped, so the question and answer behind them are recomputed once.
 * - `ephemeral`: nothing; memories are in the newest message only and are recomputed in every turn.
 */
export const FIXED_RETENTIONS = ["keep", "volatile", "ephemeral"] as const;
export type FixedRetention = (typeof FIXED_RETENTIONS)[number];

/** The selectable retentions; `auto` chooses one per turn by the engine's cost model. */
export const RETENTION_NAMES = [...FIXED_RETENTIONS, "auto"] as const;
export type RetentionName = (typeof RETENTION_NAMES)[number];

/** What costs least, whatever the engine is and however many share its cache. */
export const DEFAULT_RETENTION: RetentionName = "auto";

/** The retention of a turn, and whether it starts afresh. */
export interface RetentionChoice {
  /** For this turn's injection. */
  readonly retention: FixedRetention;
  /** Whether everything that earlier turns injected is dropped from this prompt on; what is still wanted is injected again. */
  readonly freshStart: boolean;
}

/**
 * The part of an injection that later prompts keep. Lines that correct an earlier line stay under every retention, because the earlier line
 * may stay too: blocks that supersede another, and annotations that declare a text current again or no longer true.
 */
export function retained({ blocks, annotations }: Injection, retention: FixedRetention): Injection {
  if (retention === "keep") return { blocks, annotations };
  return {
    blocks: retention === "volatile" ? blocks : blocks.filter(({ replaces }) => replaces.length > 0),
    annotations: annotations.filter(({ kind }) => kind === "restored" || kind === "withdrawn"),
  };
}

/** The part of a turn that retention depends on. */
interface RetainingTurn extends RetentionChoice {
  readonly injection: Injection;
}

/** The kept injections of a prompt's earlier turns, one per turn; empty for turns before the last fresh start. */
export function standingInjections(turns: readonly RetainingTurn[], freshStart: boolean): Injection[] {
  const start = freshStart ? turns.length : turns.findLastIndex((turn) => turn.freshStart);
  return turns.map(({ injection, retention }, at) => (at < start ? NOTHING_INJECTED : retained(injection, retention)));
}
