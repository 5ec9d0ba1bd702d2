import { type Injection, NOTHING_INJECTED, type SectionPlacement } from "../prompt/injection.js";
import type { ConversationId, Digest, Label, TurnId } from "../text/ids.js";

/**
 * The part of a conversation that one composed prompt added. Turns form a tree: a regenerated or edited question is another child of the
 * same parent, so returning to an earlier branch reproduces its bytes. A single prompt is a turn without conversation and parent.
 */
export interface Turn {
  readonly id: TurnId;
  readonly conversationId: ConversationId | null;
  readonly parent: TurnId | null;
  /** Digests of the plain messages since the parent's; the last one is the turn's question or tool result. */
  readonly given: readonly Digest[];
  /**
   * Digests of the same messages' meanings, by which messages that a client sends back in another form are recognised; see
   * `message-meaning.ts`.
   */
  readonly meant: readonly Digest[];
  readonly placement: SectionPlacement;
  readonly injection: Injection;
  /** What later prompts keep of the injection. */
  readonly retention: FixedRetention;
  /** Whether everything that earlier turns injected is dropped from this prompt and those that continue it. */
  readonly freshStart: boolean;
  /** Distinct retrieved blocks; empty for a single prompt, which nothing continues. */
  readonly requested: readonly Label[];
  /** Digest of the instructions (system messages) at the head of the prompt. */
  readonly head: Digest;
  /** Rolling digest of every message of the prompt as sent: equal digests, equal bytes. */
  readonly prompt: Digest;
  /** Digest of the prompt before this turn's blocks; the context index keys served sequences by it. */
  readonly anchor: Digest;
  /** Estimated tokens of the whole prompt as sent; 0 for a restated turn, of which no prompt was sent. */
  readonly promptTokens: number;
  /** Those of them that the engine had to compute, the answer before the question not counted. */
  readonly computedTokens: number;
  /** The first turn of its path: the turn with which its epoch began. */
  readonly epoch: TurnId;
  /** Digest of the meaning of the message before its given ones that memstem left out of the prompt; null: none was. */
  readonly behind: Digest | null;
}

/** What a turn added when it was replayed; the same after the same prefix, because the text of a label never changes. */
export interface ReplayedTurn {
  /** Rolling digest of the prompt before the turn. */
  readonly before: Digest;
  /** The kept part of the turn's injection. */
  readonly injection: Injection;
  readonly section: string;
  /** Rolling digest of the prompt before the section's message. */
  readonly anchor: Digest;
  /** Rolling digest of the prompt after the turn. */
  readonly after: Digest;
  readonly tokens: TurnTokens;
}

/** Tokens of a turn's parts, estimated. */
export interface TurnTokens {
  /** Plain messages before the question: the answer to the previous turn. A tool's result also counts here. */
  readonly answer: number;
  readonly section: number;
  /** The question's own text; 0 if the turn ends with a tool's result. */
  readonly question: number;
}

/**
 * What later prompts of a conversation keep of a turn's injection (docs/internals/algorithms.md, "Conversations"):
 * - `keep`: everything; prompts are append-only. Fewest tokens to compute, but every new token attends over what is kept.
 * - `volatile`: the blocks; annotations are dropped, so the question and answer after them are recomputed once.
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
