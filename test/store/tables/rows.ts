import type { Injection, NodeId, Turn, TurnId } from "../../../src/core/index.js";
import type { ServedRequest, StoredAnswer } from "../../../src/store/api/store.js";
import type { DigestSeal } from "../../../src/store/database/digest-seal.js";
import { parsedBody } from "../../../src/store/journal/damaged-record.js";
import { packAnswer } from "../../../src/store/journal/packed-answer.js";
import { packInjection } from "../../../src/store/journal/packed-injection.js";
import { packedReport } from "../../../src/store/journal/packed-report.js";
import type { MessageList } from "../../../src/store/upgrade/table-messages.js";
import { readAnswer } from "../../../src/store/upgrade/table-rows.js";
import type { RequestRow, TurnRow } from "../../../src/store/upgrade/table-statements.js";

export function writeInjection(injection: Injection): string {
  return JSON.stringify(packInjection(injection));
}

export function writeAnswer(answer: StoredAnswer): string {
  return JSON.stringify(packAnswer(answer));
}

export function readServed(row: RequestRow): ServedRequest {
  const { plan, grounds } = readAnswer(row.answer);
  return {
    leaf: row.leaf as NodeId,
    turn: row.turn as TurnId,
    at: row.createdAt,
    plan,
    grounds,
    evicted: row.evicted === 1,
    observed: row.observed === null ? null : parsedBody("a report", row.observed, packedReport),
  };
}

/** A turn's row without its time. */
export function turnRow(turn: Turn, given: MessageList, digests: DigestSeal): Omit<TurnRow, "createdAt"> {
  return {
    id: turn.id,
    conversationId: turn.conversationId,
    parent: turn.parent,
    given,
    placement: turn.placement,
    injection: writeInjection(turn.injection),
    retention: turn.retention,
    freshStart: turn.freshStart ? 1 : 0,
    requested: JSON.stringify(turn.requested),
    head: digests.seal(turn.head),
    prompt: digests.seal(turn.prompt),
    anchor: digests.seal(turn.anchor),
    promptTokens: turn.promptTokens,
    computedTokens: turn.computedTokens,
    epoch: turn.epoch,
    behind: turn.behind === null ? null : digests.seal(turn.behind),
  };
}
