/*
 * records/: what is stored and read of scopes, turns, requests, messages, deletions and first-token times, inside the caller's transaction.
 * In: rows of SQLite; values of `core` and records of `api/`.
 * Out: the same, converted. This file converts the rows of turns and answers to values and back; `stored-scope.ts` reads and writes a
 * scope's state; the others are one record or one question each.
 * Injections and answers are stored as the journal stores them.
 */

import { z } from "zod";
import type { ConversationId, Injection, Label, NodeId, Turn, TurnId } from "../../core/index.js";
import type { ServedRequest, StoredAnswer } from "../api/store.js";
import type { DigestSeal } from "../database/digest-seal.js";
import type { RequestRow, TurnRow } from "../database/statements.js";
import { parsedBody } from "../journal/damaged-record.js";
import { packAnswer, packedAnswer, unpackAnswer } from "../journal/packed-answer.js";
import { packedInjection, packInjection, unpackInjection } from "../journal/packed-injection.js";
import { packedReport } from "../journal/packed-report.js";
import type { MessageList } from "./stored-messages.js";

const jsonArray = z.array(z.unknown());

export function writeInjection(injection: Injection): string {
  return JSON.stringify(packInjection(injection));
}

export function readInjection(json: string): Injection {
  return unpackInjection(parsedBody("an injection", json, packedInjection));
}

export function writeAnswer(answer: StoredAnswer): string {
  return JSON.stringify(packAnswer(answer));
}

export function readAnswer(json: string): StoredAnswer {
  return unpackAnswer(parsedBody("an answer", json, packedAnswer));
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

export function readLabels(json: string): readonly Label[] {
  return jsonArray.parse(JSON.parse(json)) as Label[];
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
