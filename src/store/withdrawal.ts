import { and, eq, sql } from "drizzle-orm";
import type { TurnId } from "../core/index.js";
import { deleteExpired } from "./expiry.js";
import type { OpenDatabase } from "./open-database.js";
import { readTurn } from "./rows.js";
import { conversations, turns } from "./schema.js";
import type { ComposeRecord } from "./store.js";

/**
 * Deletes a turn with its request, unless another goes on from it. Its instructions go where no other turn begins with them. Runs inside
 * the caller's transaction.
 */
export function withdrawTurn(
  orm: OpenDatabase["orm"],
  scopeId: number,
  turn: TurnId,
  changes: ComposeRecord["changes"],
): void {
  const ofScope = eq(turns.scopeId, scopeId);
  const row = orm
    .select()
    .from(turns)
    .where(and(ofScope, eq(turns.id, turn)))
    .get();
  if (row === undefined) return;
  const { conversationId } = row;
  if (conversationId !== null) {
    const next = and(ofScope, eq(turns.conversationId, conversationId), eq(turns.parent, turn));
    if (orm.select({ id: turns.id }).from(turns).where(next).get() !== undefined) return;
    orm
      .update(conversations)
      .set({ turns: sql`${conversations.turns} - 1` })
      .where(and(eq(conversations.scopeId, scopeId), eq(conversations.id, conversationId)))
      .run();
  }
  const withHead = orm
    .select({ id: turns.id })
    .from(turns)
    .where(and(ofScope, eq(turns.head, row.head)))
    .limit(2)
    .all();
  const withdrawn = readTurn({ ...row, given: null });
  const heads = withHead.length < 2 ? [withdrawn.head] : [];
  deleteExpired(orm, scopeId, { changes, turns: { expired: [withdrawn], live: [] }, heads, sections: [] });
}
