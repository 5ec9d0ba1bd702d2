import type { TurnId } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import type { Conversation, RecalledTurn } from "./conversation.js";
import type { Replay } from "./replay.js";
import type { Turn } from "./turn.js";

/** A turn in the form of a new prompt: the same memories, but in another placement or with messages of the same meaning and other bytes. */
export interface RestatedTurn {
  readonly turn: Turn;
  /** The messages as sent now. */
  readonly given: readonly ChatMessage[];
}

/** The path of turns that a prompt continues byte for byte. */
export interface ExactPath {
  /** The last turn of the path; null for none. */
  readonly parent: TurnId | null;
  /** The new turns of the path, first to last. */
  readonly restated: readonly RestatedTurn[];
}

/**
 * The path of turns whose stored bytes are a prefix of this prompt. From the first turn that the client sent in another form, the turns are
 * restated: stored again as children of the same parents. The original turns stay unmodified, so that earlier prompts can be repeated byte
 * for byte, and so can this one. Turns that were restated in the same form before are reused.
 */
export function exactPath(
  conversation: Conversation,
  recalled: readonly RecalledTurn[],
  replay: Pick<Replay, "head" | "turns">,
  newTurnId: () => TurnId,
): ExactPath {
  const restated: RestatedTurn[] = [];
  let parent: TurnId | null = null;
  let epoch: TurnId | null = null;
  for (const [at, { turn, messages, digests, placement, isRestated }] of recalled.entries()) {
    const replayed = replay.turns[at];
    if (replayed === undefined) throw new Error("a recalled turn was not replayed");
    if (!isRestated && turn.parent === parent) {
      parent = turn.id;
      epoch = turn.epoch;
      continue;
    }
    const again: Turn | undefined = conversation
      .childrenOf(parent)
      .find(
        (other) =>
          other.prompt === replayed.after &&
          other.anchor === replayed.anchor &&
          injectsSame(other, { ...turn, placement }),
      );
    if (again !== undefined) {
      parent = again.id;
      epoch = again.epoch;
      continue;
    }
    const { after: prompt, anchor } = replayed;
    const id = newTurnId();
    const own: Turn = {
      ...turn,
      id,
      parent,
      given: digests,
      placement,
      head: replay.head,
      prompt,
      anchor,
      promptTokens: 0,
      computedTokens: 0,
      epoch: epoch ?? id,
    };
    epoch = own.epoch;
    restated.push({ turn: own, given: messages });
    parent = own.id;
  }
  return { parent, restated };
}

/** Whether two turns inject the same in the same placement, and later prompts keep the same of it. */
function injectsSame(a: Turn, b: Turn): boolean {
  const isKeptAlike = a.retention === b.retention && a.freshStart === b.freshStart && a.placement === b.placement;
  return isKeptAlike && JSON.stringify(a.injection) === JSON.stringify(b.injection);
}
