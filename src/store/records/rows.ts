/*
 * records/: what is stored and read of scopes, turns, requests, messages, deletions and first-token times, inside the caller's transaction.
 * In: rows of SQLite; values of `core` and records of `api/`.
 * Out: the same, converted. This file converts the rows of turns and answers to values and back; `stored-scope.ts` reads and writes a
 * scope's state; the others are one record or one question each.
 * JSON columns are checked for their outer shape only: this room wrote them, so that is enough to fail clearly on a damaged file.
 * Injections and answers are short arrays: at k = 100 they are most of what a compose writes.
 */

import { z } from "zod";
import {
  type Annotation,
  BY_LINES,
  BY_LIST,
  BY_SHAPES,
  type ConversationId,
  DIAGNOSING_PROVIDERS,
  DIAGNOSIS_OUTCOMES,
  type InjectedBlock,
  type Injection,
  type Label,
  type MemoryId,
  type NodeId,
  type PlacedMemory,
  type Placement,
  type Plan,
  type RequestId,
  type Turn,
  type TurnId,
  type Warning,
} from "../../core/index.js";
import type { EngineReport, ServedRequest, StoredAnswer } from "../api/store.js";
import type { DigestSeal } from "../database/digest-seal.js";
import type { RequestRow, TurnRow } from "../database/statements.js";
import type { MessageList } from "./stored-messages.js";

const jsonArray = z.array(z.unknown());
const labels = z.array(z.int());
/** How texts are escaped, by its number in rows; absent in those from before the first of them: by the list. */
const ESCAPED_BY = { shapes: 2, lines: 3 } as const;
const packedInjection = z.object({
  /**
   * A label; or a label, the labels that it replaces, the separator between them where it is not today's, and the configured markers that
   * are escaped in its text.
   */
  b: z.array(z.union([z.int(), z.tuple([z.int(), labels, z.string().nullish(), z.array(z.string()).optional()])])),
  a: jsonArray,
  /** The separator between labels, in rows from before there was none. */
  s: z.string().optional(),
  e: z.enum(ESCAPED_BY).optional(),
});
const packedMemory = z.tuple([z.int(), z.string(), z.int(), z.int().nullable(), labels.optional()]);
const packedAnswer = z.object({
  m: z.array(packedMemory),
  plan: z.looseObject({}),
  warnings: jsonArray,
  grounds: z.object({ settledAt: z.number(), headTokens: z.number() }).optional(),
  worker: z.string().optional(),
});

/** What plans stored before retention was configurable lack. */
const PLAN_BEFORE_RETENTION = { retention: "keep", freshStart: false } as const;

/** Placements by their number in stored answers; append only. */
const PLACEMENTS: readonly Placement[] = ["cached_prefix", "new", "earlier_turn", "carried_over"];

export function writeInjection({ blocks, annotations }: Injection): string {
  const packed = blocks.map(({ label, replaces, between, escaping }) => {
    const markers = escaping?.markers ?? [];
    if (markers.length > 0) return [label, replaces, between ?? null, markers];
    if (replaces.length === 0) return label;
    return between === undefined ? [label, replaces] : [label, replaces, between];
  });
  // All blocks of a turn are escaped in one way.
  const by = blocks[0]?.escaping?.by ?? "lines";
  return JSON.stringify({ b: packed, a: annotations, ...(by === "list" ? {} : { e: ESCAPED_BY[by] }) });
}

export function readInjection(json: string): Injection {
  const { b, a, s, e } = packedInjection.parse(JSON.parse(json));
  const before = s === undefined ? {} : { between: s };
  const plain = e === ESCAPED_BY.lines ? undefined : e === ESCAPED_BY.shapes ? BY_SHAPES : BY_LIST;
  const blocks = b.map((block): InjectedBlock => {
    const [label, replaces, between, markers] = typeof block === "number" ? [block, []] : block;
    const apart = between == null ? before : { between };
    const escaping = markers === undefined ? plain : { ...(plain ?? BY_LINES), markers };
    return {
      label: label as Label,
      replaces: replaces as Label[],
      ...(replaces.length === 0 ? {} : apart),
      ...(escaping === undefined ? {} : { escaping }),
    };
  });
  return { blocks, annotations: a.map((annotation) => ({ ...before, ...(annotation as Annotation) })) };
}

export function writeAnswer({ memories, plan, warnings, grounds, worker }: StoredAnswer): string {
  const packed = memories.map(({ label, memoryId, placement, rank, replaces }) => [
    label,
    memoryId,
    PLACEMENTS.indexOf(placement),
    rank,
    ...(replaces.length === 0 ? [] : [replaces]),
  ]);
  return JSON.stringify({ m: packed, plan, warnings, ...(grounds === null ? {} : { grounds }), worker });
}

export function readAnswer(json: string): StoredAnswer {
  const { m, plan, warnings, grounds = null, worker } = packedAnswer.parse(JSON.parse(json));
  const memories = m.map(([label, memoryId, placement, rank, replaces = []]): PlacedMemory => {
    const placed = PLACEMENTS[placement];
    if (placed === undefined) throw new Error(`stored answer with an unknown placement ${placement}`);
    return {
      label: label as Label,
      memoryId: memoryId as MemoryId,
      placement: placed,
      rank,
      replaces: replaces as Label[],
    };
  });
  return {
    memories,
    plan: { ...PLAN_BEFORE_RETENTION, ...plan } as unknown as Plan,
    warnings: warnings as Warning[],
    grounds,
    ...(worker === undefined ? {} : { worker }),
  };
}

const observation = z.object({
  promptTokens: z.int().optional(),
  cachedTokens: z.int().optional(),
  ttftMs: z.number().optional(),
  diagnosis: z
    .object({
      provider: z.enum(DIAGNOSING_PROVIDERS),
      outcome: z.enum(DIAGNOSIS_OUTCOMES),
      reason: z.string().nullable(),
      missedTokens: z.int().nullable(),
      reusableTokens: z.int().nullable(),
      comparedWith: z
        .string()
        .transform((id) => id as RequestId)
        .nullable(),
    })
    .optional(),
});

export function readServed(row: RequestRow): ServedRequest {
  const { plan, grounds } = readAnswer(row.answer);
  return {
    leaf: row.leaf as NodeId,
    turn: row.turn as TurnId,
    at: row.createdAt,
    plan,
    grounds,
    evicted: row.evicted === 1,
    observed: row.observed === null ? null : (observation.parse(JSON.parse(row.observed)) as EngineReport),
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
