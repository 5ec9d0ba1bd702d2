import { and, eq, sql } from "drizzle-orm";
import type { TurnId } from "../../../src/core/index.js";
import type { MessageId } from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { conversations, turns } from "../../../src/store/upgrade/table-schema.js";
import { deleteExpired, namingTurn } from "./expiry.js";

/** Which of some messages (a JSON array of ids) other turns or other heads refer to. */
const STILL_LISTED = `select distinct listed.value from (
    select given as list from turns where scope_id = @scopeId and id <> @turn
    union all
    select messages from heads where scope_id = @scopeId and digest <> @freedHead and messages is not null
  ) lists, json_each(lists.list) listed
  where listed.value in (select value from json_each(@messages))`;

/**
 * See `Store.commitWithdrawal`: with the turn go the instructions and messages that no other turn refers to. Runs inside the caller's
 * transaction. Reads the message lists of all the scope's turns: engines reject prompts rarely.
 */
export function withdrawTurn(database: OpenDatabase, scopeId: number, turn: TurnId): void {
  const { orm, sqlite, digests } = database;
  const withdrawn = namingTurn(database, scopeId, turn);
  if (withdrawn === null) return;
  const ofScope = eq(turns.scopeId, scopeId);
  const { conversationId } = withdrawn;
  if (conversationId !== null) {
    const next = and(ofScope, eq(turns.conversationId, conversationId), eq(turns.parent, turn));
    if (orm.select({ id: turns.id }).from(turns).where(next).get() !== undefined) return;
    orm
      .update(conversations)
      .set({ turns: sql`${conversations.turns} - 1` })
      .where(and(eq(conversations.scopeId, scopeId), eq(conversations.id, conversationId)))
      .run();
  }
  const head = digests.seal(withdrawn.head);
  const withHead = orm
    .select({ id: turns.id })
    .from(turns)
    .where(and(ofScope, eq(turns.head, head)))
    .limit(2)
    .all();
  const isHeadFreed = withHead.length < 2;
  const still = new Set(
    sqlite
      .prepare<[object], MessageId>(STILL_LISTED)
      .pluck()
      .all({ scopeId, turn, freedHead: isHeadFreed ? head : "", messages: JSON.stringify(withdrawn.messages) }),
  );
  deleteExpired(database, scopeId, {
    turns: { expired: [withdrawn], live: [] },
    heads: isHeadFreed ? [withdrawn.head] : [],
    sections: [],
    messages: withdrawn.messages.filter((id) => !still.has(id)),
  });
}
