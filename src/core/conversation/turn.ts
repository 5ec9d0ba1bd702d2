import type { Injection } from "../prompt/injection.js";
import type { SectionPlacement } from "../prompt/section-placement.js";
import type { ConversationId, Digest, Label, TurnId } from "../text/ids.js";
import type { FixedRetention } from "./retention.js";

/**
 * One composed prompt's own part of a conversation. Turns form a tree: a regenerated or edited question is a second child of the
 * same parent, so going back to an earlier branch finds its bytes again. A single prompt is a turn without conversation or parent.
 */
export interface Turn {
  readonly id: TurnId;
  readonly conversationId: ConversationId | null;
  readonly parent: TurnId | null;
  /** The plain messages since the parent's, as digests; the last of them is the turn's question or tool result. */
  readonly given: readonly Digest[];
  /** The same by what they mean, where a client may send them back written differently; see `message-meaning.ts`. */
  readonly meant: readonly Digest[];
  readonly placement: SectionPlacement;
  readonly injection: Injection;
  /** What later prompts keep of the injection. */
  readonly retention: FixedRetention;
  /** Whether nothing that earlier turns injected stands in this prompt, nor in those that continue it. */
  readonly freshStart: boolean;
  /** Distinct blocks that were asked for; empty for a single prompt, which nothing continues. */
  readonly requested: readonly Label[];
  /** Digest of the instructions (system messages) that stood at the head of the prompt. */
  readonly head: Digest;
  /** Rolling digest of every message of the prompt as it was sent: equal digests, equal bytes. */
  readonly prompt: Digest;
  /** Digest of what stood before this turn's blocks; the index keeps what was served behind it. */
  readonly anchor: Digest;
  /** Tokens of the whole prompt as it was sent, estimated; 0 for a turn that was only said again, of which no prompt was sent. */
  readonly promptTokens: number;
}

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
