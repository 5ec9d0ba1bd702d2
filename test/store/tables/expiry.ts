import { and, asc, eq, gt, inArray, or, sql } from "drizzle-orm";
import type { ConversationId, NodeId, Scope, TurnId } from "../../../src/core/index.js";
import { append } from "../../../src/core/text/lists.js";
import type {
  ExpiredTurns,
  ExpiryRecord,
  MessageId,
  NamingTurn,
  ScannedTurns,
  ScopesFound,
} from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { scopes } from "../../../src/store/database/schema.js";
import { readScope } from "../../../src/store/database/scope-key.js";
import { readInjection, readLabels } from "../../../src/store/upgrade/table-rows.js";
import { conversations, heads, messages, requests, sections, turns } from "../../../src/store/upgrade/table-schema.js";
import { inPieces } from "./statements.js";
import { idsOf } from "./stored-messages.js";

/** Rows per page. */
const AT_ONCE = 500;

/**
 * See `Store.scopesWithOldTurns`. `turns` is append-only, so its rowids are in the order of time and need no index: reading ends at the
 * first younger turn. `after` is a rowid.
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
  // Old turns of an active conversation stay; a scope that has only those is left out, so that it is not scanned each time.
  const endedConversation = sql`exists (select 1 from ${conversations} where ${conversations.scopeId} = ${scopes.scopeId}
    and ${conversations.lastTurnAt} < ${before})`;
  const oldPrompt = sql`exists (select 1 from ${turns} where ${turns.scopeId} = ${scopes.scopeId}
    and ${turns.conversationId} is null and ${turns.createdAt} < ${before})`;
  const withOldTurns: Scope[] = orm
    .select()
    .from(scopes)
    .where(and(inArray(scopes.scopeId, found), or(endedConversation, oldPrompt)))
    .all()
    .map(readScope);
  const isEnd = old >= 0 || rows.length < AT_ONCE;
  return { scopes: withOldTurns, next: isEnd ? null : (rows.at(-1)?.rowid ?? null) };
}

/** See `Store.scanTurns`. */
export function scanTurns(
  { orm, digests }: OpenDatabase,
  scopeId: number,
  before: number,
  after: number,
  most: number,
): ScannedTurns {
  const rows = withLastUse(orm)
    .where(and(eq(turns.scopeId, scopeId), gt(turns.id, after)))
    .orderBy(asc(turns.id))
    .limit(most)
    .all();
  const isOld = ({ lastUse }: (typeof rows)[number]) => lastUse < before;
  return {
    expired: rows.filter(isOld).map((row) => readNaming(row, digests)),
    remaining: rows.filter((row) => !isOld(row)).map((row) => readNaming(row, digests)),
    next: rows.length < most ? null : ((rows.at(-1)?.id ?? null) as TurnId | null),
  };
}

/** See `Store.findExpired`. */
export function readExpired(
  { orm, digests }: OpenDatabase,
  scopeId: number,
  before: number,
  among: readonly TurnId[],
): ExpiredTurns {
  const expired: NamingTurn[] = [];
  const live: { leaf: NodeId; turn: TurnId }[] = [];
  inPieces(among, (ids) => {
    const rows = withLastUse(orm)
      .where(and(eq(turns.scopeId, scopeId), inArray(turns.id, ids)))
      .all()
      .filter(({ lastUse }) => lastUse < before);
    append(
      expired,
      rows.map((row) => readNaming(row, digests)),
    );
    const ofTurns = inArray(
      requests.turn,
      rows.map(({ id }) => id),
    );
    const served = orm
      .select({ leaf: requests.leaf, turn: requests.turn })
      .from(requests)
      .where(and(eq(requests.scopeId, scopeId), ofTurns, eq(requests.evicted, false)))
      .all();
    append(
      live,
      served.map(({ leaf, turn }) => ({ leaf: leaf as NodeId, turn: turn as TurnId })),
    );
  });
  return { expired, live };
}

/** A turn with its references; null where there is none. */
export function namingTurn({ orm, digests }: OpenDatabase, scopeId: number, id: TurnId): NamingTurn | null {
  const row = withLastUse(orm)
    .where(and(eq(turns.scopeId, scopeId), eq(turns.id, id)))
    .get();
  return row === undefined ? null : readNaming(row, digests);
}

/** Turns with their instructions' messages and their last use: a conversation's turns are used together. */
function withLastUse(orm: OpenDatabase["orm"]) {
  const { id, conversationId, injection, retention, requested, given, head } = turns;
  return orm
    .select({
      ...{ id, conversationId, injection, retention, requested, given, head },
      instructions: heads.messages,
      lastUse: sql<number>`coalesce(${conversations.lastTurnAt}, ${turns.createdAt})`,
    })
    .from(turns)
    .leftJoin(heads, and(eq(heads.scopeId, turns.scopeId), eq(heads.digest, turns.head)))
    .leftJoin(conversations, and(eq(conversations.scopeId, turns.scopeId), eq(conversations.id, turns.conversationId)))
    .$dynamic();
}

function readNaming(
  row: ReturnType<ReturnType<typeof withLastUse>["all"]>[number],
  digests: OpenDatabase["digests"],
): NamingTurn {
  return {
    id: row.id as TurnId,
    conversationId: row.conversationId as ConversationId | null,
    injection: readInjection(row.injection),
    retention: row.retention,
    requested: readLabels(row.requested),
    head: digests.open(row.head),
    messages: [...idsOf(row.given), ...idsOf(row.instructions ?? "[]")] as MessageId[],
  };
}

/** See `Store.commitExpiry`. Runs inside the caller's transaction. */
export function deleteExpired(
  { orm, digests }: OpenDatabase,
  scopeId: number,
  record: Omit<ExpiryRecord, "delta">,
): void {
  const { expired } = record.turns;
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
  const touched = new Set(expired.flatMap(({ conversationId }) => conversationId ?? []));
  inPieces([...touched], (ids) => {
    const isEmpty = sql`not exists (select 1 from ${turns} where ${turns.scopeId} = ${conversations.scopeId}
      and ${turns.conversationId} = ${conversations.id})`;
    orm
      .delete(conversations)
      .where(and(eq(conversations.scopeId, scopeId), inArray(conversations.id, ids), isEmpty))
      .run();
  });
  inPieces(record.heads, (piece) => {
    const sealed = piece.map((digest) => digests.seal(digest));
    orm
      .delete(heads)
      .where(and(eq(heads.scopeId, scopeId), inArray(heads.digest, sealed)))
      .run();
  });
  inPieces(record.sections, (piece) => {
    const sealed = piece.map((digest) => digests.seal(digest));
    orm
      .delete(sections)
      .where(and(eq(sections.scopeId, scopeId), inArray(sections.digest, sealed)))
      .run();
  });
  inPieces(record.messages, (ids) => {
    orm
      .delete(messages)
      .where(and(eq(messages.scopeId, scopeId), inArray(messages.id, ids as number[])))
      .run();
  });
}
