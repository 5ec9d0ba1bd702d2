import type { ChatMessage, PromptTokens } from "../../../src/core/index.js";
import type { StoredHistory } from "../../../src/store/api/store.js";
import type { DigestSeal } from "../../../src/store/database/digest-seal.js";
import type { TurnRow } from "../../../src/store/upgrade/table-statements.js";
import type { Statements } from "./statements.js";
import type { StoredMessages } from "./stored-messages.js";

/** What a history is read from. */
interface HistoryParts {
  readonly statements: Statements;
  readonly messages: StoredMessages;
  readonly digests: DigestSeal;
}

/** A turn, and what it was given; null where that was erased. */
export interface GivenTurn {
  readonly turn: TurnRow;
  readonly given: readonly ChatMessage[] | null;
}

/** A turn and those that it continues, newest first. Null in place of one that is gone, which ends it. */
export function* turnsUpFrom(
  statements: Statements,
  messages: StoredMessages,
  scopeId: number,
  newest: TurnRow | undefined,
): Generator<GivenTurn | null, void, undefined> {
  for (let turn = newest; ; ) {
    if (turn === undefined) return yield null;
    yield { turn, given: messages.wholeOf(turn.given) };
    if (turn.parent === null) return;
    turn = statements.turn.get({ scopeId, id: turn.parent });
  }
}

/** The instructions at a turn's head; null where they were erased. */
export function headOf(
  statements: Statements,
  messages: StoredMessages,
  scopeId: number,
  { head }: Pick<TurnRow, "head">,
): readonly ChatMessage[] | null {
  const listed = statements.head.get({ scopeId, digest: head }) ?? null;
  return listed === null ? null : messages.wholeOf(listed);
}

/**
 * What was said in a conversation's newest epoch, up to its newest turn. Follows that turn's parents, so a branch that was left is not in it;
 * ends at a message that was erased, or a turn that is gone.
 */
export function readConversationHistory(
  { statements, messages, digests }: HistoryParts,
  scopeId: number,
  conversationId: string,
): StoredHistory | null {
  const newest = statements.newestTurn.get({ scopeId, conversationId });
  if (newest === undefined) return null;
  const said: (readonly ChatMessage[])[] = [];
  const prompts: PromptTokens[] = [];
  let isWhole = true;
  let behind: TurnRow["behind"] = null;
  for (const found of turnsUpFrom(statements, messages, scopeId, newest)) {
    isWhole = found?.given != null;
    if (found?.given == null) break;
    const { turn, given } = found;
    said.push(given);
    behind ??= turn.behind;
    // A turn that was only said again was not sent.
    if (turn.promptTokens > 0) prompts.push({ total: turn.promptTokens, computed: turn.computedTokens });
  }
  return {
    head: headOf(statements, messages, scopeId, newest),
    newest: said[0]?.length ?? 0,
    hasOwnHead: said.at(-1)?.length === 0,
    messages: said.reverse().flat(),
    isWhole,
    prompts: prompts.reverse(),
    behind: behind === null ? null : digests.open(behind),
  };
}
