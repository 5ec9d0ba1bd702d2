import { and, asc, eq, getTableColumns, gt, inArray, or, sql } from "drizzle-orm";
import type { ConversationId, NodeId, Scope, TurnId } from "../core/index.js";
import type { OpenDatabase } from "./open-database.js";
import { readScope, readTurn } from "./rows.js";
import { conversations, heads, requests, sections, turns, users } from "./schema.js";
import type { ExpiredTurns, ExpiryRecord, ScopesFound } from "./store.js";

/** Rows that are read, or ids that one statement names, at once. */
const AT_ONCE = 500;

/**
 * Scopes that have turns from before a time, in milliseconds. `turns` grows at its end, so the oldest stand first and need no index: the
 * reading ends at the first that is younger. `after` is where the last call came to.
 */
export function readScopesWithOldTurns(orm: OpenDatabase["orm"], before: number, after: number): ScopesFound {
  const rowid = sql<number>`${turns}.rowid`;
  const rows = orm
    .select({ rowid, scopeId: turns.scopeId, at: turns.createdAt })
    .from(turns)
    .where(gt(rowid, after))
    .orderBy(asc(rowid))
    .limit(AT_ONCE)
    .all();
  const old = rows.findIndex(({ at }) => at >= before);
  const found = [...new Set((old < 0 ? rows : rows.slice(0, old)).map(({ scopeId }) => scopeId))];
  // Old turns of a conversation that goes on stay: whoever has only those is not asked for again and again.
  const endedTalk = sql`exists (select 1 from ${conversations} where ${conversations.scopeId} = ${users.scopeId}
    and ${conversations.lastTurnAt} < ${before})`;
  const oldPrompt = sql`exists (select 1 from ${turns} where ${turns.scopeId} = ${users.scopeId}
    and ${turns.conversationId} is null and ${turns.createdAt} < ${before})`;
  const scopes: Scope[] = orm
    .select()
    .from(users)
    .where(and(inArray(users.scopeId, found), or(endedTalk, oldPrompt)))
    .all()
    .map(readScope);
  const isEnd = old >= 0 || rows.length < AT_ONCE;
  return { scopes, next: isEnd ? null : (rows.at(-1)?.rowid ?? null) };
}

/** The turns of a scope that go: whole conversations whose last turn is from before a time, and single prompts from before it. */
export function readExpired(orm: OpenDatabase["orm"], scopeId: number, before: number): ExpiredTurns {
  const talks = orm.select().from(conversations).where(eq(conversations.scopeId, scopeId)).all();
  const ended = new Set(talks.filter(({ lastTurnAt }) => lastTurnAt < before).map(({ id }) => id));
  const { given: _texts, ...columns } = getTableColumns(turns);
  const rows = orm
    .select(columns)
    .from(turns)
    .where(eq(turns.scopeId, scopeId))
    .orderBy(asc(turns.id))
    .all()
    .map((row) => ({ ...row, given: null }));
  const isOld = (row: (typeof rows)[number]) =>
    row.conversationId === null ? row.createdAt < before : ended.has(row.conversationId);
  const expired = rows.filter(isOld).map(readTurn);
  const gone = new Set<number>(expired.map(({ id }) => id));
  const live = orm
    .select({ leaf: requests.leaf, turn: requests.turn })
    .from(requests)
    .where(and(eq(requests.scopeId, scopeId), eq(requests.evicted, false)))
    .all();
  return {
    expired,
    remaining: rows.filter((row) => !isOld(row)).map(readTurn),
    conversations: [...ended] as ConversationId[],
    live: live
      .filter(({ turn }) => gone.has(turn))
      .map(({ leaf, turn }) => ({ leaf: leaf as NodeId, turn: turn as TurnId })),
  };
}

/** Deletes what expired. Runs inside the caller's transaction. */
export function deleteExpired(orm: OpenDatabase["orm"], scopeId: number, record: ExpiryRecord): void {
  const { expired, remaining, conversations: talks } = record.turns;
  inPieces(expired, (piece) => {
    const ids = piece.map(({ id }) => id);
    orm
      .delete(requests)
      .where(and(eq(requests.scopeId, scopeId), inArray(requests.turn, ids)))
      .run();
    orm
      .delete(turns)
      .where(and(eq(turns.scopeId, scopeId), inArray(turns.id, ids)))
      .run();
  });
  inPieces(talks, (ids) => {
    orm
      .delete(conversations)
      .where(and(eq(conversations.scopeId, scopeId), inArray(conversations.id, ids)))
      .run();
  });
  const headed = new Set(remaining.map(({ head }) => head));
  inPieces(
    [...new Set(expired.map(({ head }) => head))].filter((head) => !headed.has(head)),
    (digests) => {
      orm
        .delete(heads)
        .where(and(eq(heads.scopeId, scopeId), inArray(heads.digest, digests)))
        .run();
    },
  );
  inPieces(record.sections, (digests) => {
    orm
      .delete(sections)
      .where(and(eq(sections.scopeId, scopeId), inArray(sections.digest, digests)))
      .run();
  });
}

function inPieces<T>(all: readonly T[], work: (piece: T[]) => void): void {
  for (let at = 0; at < all.length; at += AT_ONCE) work(all.slice(at, at + AT_ONCE));
}
