import type { ConversationId, Injection, Label, Turn, TurnId } from "../../core/index.js";
import type { StoredAnswer } from "../api/store.js";
import type { DigestSeal } from "../database/digest-seal.js";
import { parsedBody } from "../journal/damaged-record.js";
import { packedAnswer, unpackAnswer } from "../journal/packed-answer.js";
import { packedInjection, unpackInjection } from "../journal/packed-injection.js";
import { wholeNumbers } from "../journal/row-shapes.js";
import type { TurnRow } from "./table-statements.js";

export function readInjection(json: string): Injection {
  return unpackInjection(parsedBody("an injection", json, packedInjection));
}

export function readAnswer(json: string): StoredAnswer {
  return unpackAnswer(parsedBody("an answer", json, packedAnswer));
}

export function readLabels(json: string): readonly Label[] {
  return parsedBody("a list of labels", json, wholeNumbers) as Label[];
}

/** @param said digests of its listed messages */
export function readTurn(row: TurnRow, said: Pick<Turn, "given" | "meant">, digests: DigestSeal): Turn {
  return {
    id: row.id as TurnId,
    conversationId: row.conversationId as ConversationId | null,
    parent: row.parent as TurnId | null,
    given: said.given,
    meant: said.meant,
    placement: row.placement,
    injection: readInjection(row.injection),
    retention: row.retention,
    freshStart: row.freshStart === 1,
    requested: readLabels(row.requested),
    head: digests.open(row.head),
    prompt: digests.open(row.prompt),
    anchor: digests.open(row.anchor),
    promptTokens: row.promptTokens,
    computedTokens: row.computedTokens,
    epoch: row.epoch as TurnId,
    behind: row.behind === null ? null : digests.open(row.behind),
  };
}
