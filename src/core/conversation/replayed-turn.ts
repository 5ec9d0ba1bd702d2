import type { Injection } from "../prompt/injection.js";
import type { Digest } from "../text/ids.js";

/** What a turn added to a prompt when it was replayed: the same again behind the same beginning, because texts behind labels never change. */
export interface ReplayedTurn {
  /** Rolling digest of the prompt before the turn. */
  readonly before: Digest;
  /** What stands of the turn's injection. */
  readonly injection: Injection;
  readonly section: string;
  /** Rolling digest of what stands before the section's message. */
  readonly anchor: Digest;
  /** Rolling digest of the prompt after the turn. */
  readonly after: Digest;
  readonly tokens: TurnTokens;
}

/** Tokens of a turn's parts, estimated. */
export interface TurnTokens {
  /** Plain messages before the question: what was answered to the turn before. A tool's result counts here too. */
  readonly answer: number;
  readonly section: number;
  /** The question's own text; 0 where the turn ends with a tool's result. */
  readonly question: number;
}
