import { and, eq, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { OpenDatabase } from "./open-database.js";
import { readStatement } from "./read-statement.js";
import {
  blocks,
  conversations,
  forgottenMemories,
  heads,
  indexNodes,
  memoryVersions,
  orderingRows,
  requests,
  sections,
  turns,
  users,
} from "./schema.js";
import { writeStatement } from "./write-statement.js";

const p = sql.placeholder;
/** The value that the row to be inserted would have had, for upserts. */
const excluded = (column: string) => sql.raw(`excluded.${column}`);

/** Everything that runs on every compose, prepared once: building a statement costs more than running it. */
export type Statements = ReturnType<typeof prepareStatements>;

// The return type is what drizzle infers; writing it out would repeat every column.
export function prepareStatements({ sqlite, orm }: OpenDatabase) {
  const write = (query: Parameters<typeof writeStatement>[1]) => writeStatement(sqlite, query);
  const read = <T extends SQLiteTable>(table: T, rest: string) => readStatement(sqlite, table, rest);
  const numbers = {
    nextLabel: p("nextLabel"),
    nextNode: p("nextNode"),
    nextTurn: p("nextTurn"),
    requests: p("requests"),
    bankedTokens: p("bankedTokens"),
  };
  return {
    user: read(users, "where tenant = @tenant and user_id = @userId and agent_id = @agentId"),
    addUser: orm
      .insert(users)
      .values({
        tenant: p("tenant"),
        userId: p("userId"),
        agentId: p("agentId"),
        version: 1,
        ...numbers,
        createdAt: p("at"),
      })
      .onConflictDoNothing()
      .returning({ scopeId: users.scopeId })
      .prepare(),
    moveUser: write(
      orm
        .update(users)
        .set({
          version: sql`${users.version} + 1`,
          nextLabel: sql`${p("nextLabel")}`,
          nextNode: sql`${p("nextNode")}`,
          nextTurn: sql`${p("nextTurn")}`,
          requests: sql`${p("requests")}`,
          bankedTokens: sql`${p("bankedTokens")}`,
        })
        // By name too: the number of a scope whose first commit was undone is given again.
        .where(
          and(
            eq(users.scopeId, p("scopeId")),
            eq(users.version, p("commits")),
            eq(users.tenant, p("tenant")),
            eq(users.userId, p("userId")),
            eq(users.agentId, p("agentId")),
          ),
        ),
    ),

    blocks: read(blocks, "where scope_id = @scopeId order by label"),
    keepBlock: write(
      orm
        .insert(blocks)
        .values({
          scopeId: p("scopeId"),
          label: p("label"),
          text: p("text"),
          tokens: p("tokens"),
          supersededBy: p("supersededBy"),
        })
        .onConflictDoUpdate({
          target: [blocks.scopeId, blocks.label],
          set: { supersededBy: excluded("superseded_by") },
        }),
    ),
    removeBlock: write(orm.delete(blocks).where(and(eq(blocks.scopeId, p("scopeId")), eq(blocks.label, p("label"))))),

    versions: read(memoryVersions, "where scope_id = @scopeId order by label, memory_id"),
    keepVersion: write(
      orm
        .insert(memoryVersions)
        .values({ scopeId: p("scopeId"), memoryId: p("memoryId"), label: p("label"), current: p("current") })
        .onConflictDoUpdate({
          target: [memoryVersions.scopeId, memoryVersions.label, memoryVersions.memoryId],
          set: { current: excluded("current") },
        }),
    ),
    // For all labels (a JSON array) in one statement.
    removeVersionsOf: write(
      orm
        .delete(memoryVersions)
        .where(
          and(
            eq(memoryVersions.scopeId, p("scopeId")),
            sql`${memoryVersions.label} in (select value from json_each(${p("labels")}))`,
          ),
        ),
    ),
    removeVersionsBy: write(
      orm
        .delete(memoryVersions)
        .where(and(eq(memoryVersions.scopeId, p("scopeId")), eq(memoryVersions.memoryId, p("memoryId")))),
    ),
    forgotten: read(forgottenMemories, "where tenant = @tenant and user_id = @userId"),
    keepForgotten: write(
      orm
        .insert(forgottenMemories)
        .values({ tenant: p("tenant"), userId: p("userId"), memoryId: p("memoryId") })
        .onConflictDoNothing(),
    ),

    nodes: read(indexNodes, "where scope_id = @scopeId order by id"),
    keepNode: write(
      orm
        .insert(indexNodes)
        .values({
          scopeId: p("scopeId"),
          id: p("id"),
          parent: p("parent"),
          anchor: p("anchor"),
          run: p("run"),
          position: p("position"),
          nextPosition: p("nextPosition"),
          uses: p("uses"),
          live: p("live"),
          lastUsed: p("lastUsed"),
          usedAt: p("usedAt"),
          tokens: p("tokens"),
        })
        .onConflictDoUpdate({
          target: [indexNodes.scopeId, indexNodes.id],
          set: {
            parent: excluded("parent"),
            run: excluded("run"),
            position: excluded("position"),
            nextPosition: excluded("next_position"),
            uses: excluded("uses"),
            live: excluded("live"),
            lastUsed: excluded("last_used"),
            usedAt: excluded("used_at"),
            tokens: excluded("tokens"),
          },
        }),
    ),
    removeNode: write(
      orm.delete(indexNodes).where(and(eq(indexNodes.scopeId, p("scopeId")), eq(indexNodes.id, p("id")))),
    ),

    orderingRows: read(orderingRows, "where scope_id = @scopeId and kind in ('recent', 'worker') order by id"),
    publishedRows: read(orderingRows, "where scope_id = @scopeId and kind = @kind order by id"),
    keepOrderingRow: write(
      orm
        .insert(orderingRows)
        .values({ scopeId: p("scopeId"), kind: sql`${p("kind")}`, id: p("id"), row: p("row") })
        .onConflictDoUpdate({
          target: [orderingRows.scopeId, orderingRows.kind, orderingRows.id],
          set: { row: excluded("row") },
        }),
    ),
    removeOrderingRow: write(
      orm
        .delete(orderingRows)
        .where(
          and(
            eq(orderingRows.scopeId, p("scopeId")),
            sql`${orderingRows.kind} = ${p("kind")}`,
            eq(orderingRows.id, p("id")),
          ),
        ),
    ),

    keepConversation: write(
      orm
        .insert(conversations)
        .values({ scopeId: p("scopeId"), id: p("id"), turns: 1, createdAt: p("at"), lastTurnAt: p("at") })
        .onConflictDoUpdate({
          target: [conversations.scopeId, conversations.id],
          set: { turns: sql`${conversations.turns} + 1`, lastTurnAt: excluded("last_turn_at") },
        }),
    ),
    head: read(heads, "where scope_id = @scopeId and digest = @digest"),
    section: read(sections, "where scope_id = @scopeId and digest = @digest"),
    keepSection: write(
      orm
        .insert(sections)
        .values({ scopeId: p("scopeId"), digest: p("digest") })
        .onConflictDoNothing(),
    ),

    turn: read(turns, "where scope_id = @scopeId and id = @id"),
    conversationTurns: read(turns, "where scope_id = @scopeId and conversation_id = @id order by id"),
    addTurn: write(
      orm.insert(turns).values({
        scopeId: p("scopeId"),
        id: p("id"),
        conversationId: p("conversationId"),
        parent: p("parent"),
        given: p("given"),
        placement: sql`${p("placement")}`,
        injection: p("injection"),
        retention: sql`${p("retention")}`,
        freshStart: p("freshStart"),
        requested: p("requested"),
        head: p("head"),
        prompt: p("prompt"),
        anchor: p("anchor"),
        promptTokens: p("promptTokens"),
        createdAt: p("at"),
      }),
    ),

    request: read(requests, "where scope_id = @scopeId and request_id = @requestId"),
    requestsBefore: read(requests, "where scope_id = @scopeId and turn < @turn order by turn desc limit @limit"),
    // A request whose stored answer was erased is composed anew under the same id.
    addRequest: write(
      orm
        .insert(requests)
        .values({
          scopeId: p("scopeId"),
          requestId: p("requestId"),
          turn: p("turn"),
          leaf: p("leaf"),
          body: p("body"),
          answer: p("answer"),
          evicted: false,
          createdAt: p("at"),
        })
        .onConflictDoUpdate({
          target: [requests.requestId, requests.scopeId],
          set: {
            turn: excluded("turn"),
            leaf: excluded("leaf"),
            body: excluded("body"),
            answer: excluded("answer"),
            evicted: excluded("evicted"),
            observed: sql`null`,
            createdAt: excluded("created_at"),
          },
        }),
    ),
    markEvicted: write(
      orm
        .update(requests)
        .set({ evicted: true })
        .where(and(eq(requests.scopeId, p("scopeId")), eq(requests.requestId, p("requestId")))),
    ),
    observe: write(
      orm
        .update(requests)
        .set({ observed: sql`${p("observed")}` })
        .where(and(eq(requests.scopeId, p("scopeId")), eq(requests.requestId, p("requestId")))),
    ),
  };
}
