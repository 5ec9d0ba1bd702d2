import { and, asc, desc, eq, lt, sql } from "drizzle-orm";
import type { OpenDatabase } from "./open-database.js";
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
  const numbers = {
    nextLabel: p("nextLabel"),
    nextNode: p("nextNode"),
    nextTurn: p("nextTurn"),
    requests: p("requests"),
    bankedTokens: p("bankedTokens"),
  };
  return {
    user: orm
      .select()
      .from(users)
      .where(and(eq(users.tenant, p("tenant")), eq(users.userId, p("userId")), eq(users.agentId, p("agentId"))))
      .prepare(),
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

    blocks: orm
      .select()
      .from(blocks)
      .where(eq(blocks.scopeId, p("scopeId")))
      .orderBy(asc(blocks.label))
      .prepare(),
    keepBlock: write(
      orm
        .insert(blocks)
        .values({
          scopeId: p("scopeId"),
          label: p("label"),
          text: p("text"),
          textDigest: p("textDigest"),
          tokens: p("tokens"),
          supersededBy: p("supersededBy"),
        })
        .onConflictDoUpdate({
          target: [blocks.scopeId, blocks.label],
          set: { supersededBy: excluded("superseded_by") },
        }),
    ),
    removeBlock: write(orm.delete(blocks).where(and(eq(blocks.scopeId, p("scopeId")), eq(blocks.label, p("label"))))),

    versions: orm
      .select()
      .from(memoryVersions)
      .where(eq(memoryVersions.scopeId, p("scopeId")))
      .orderBy(asc(sql`rowid`))
      .prepare(),
    keepVersion: write(
      orm
        .insert(memoryVersions)
        .values({ scopeId: p("scopeId"), memoryId: p("memoryId"), label: p("label"), current: p("current") })
        .onConflictDoUpdate({
          target: [memoryVersions.scopeId, memoryVersions.memoryId, memoryVersions.label],
          set: { current: excluded("current") },
        }),
    ),
    // Versions are not found by label: one look through the scope's for all labels (a JSON array).
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
    forgotten: orm
      .select()
      .from(forgottenMemories)
      .where(and(eq(forgottenMemories.tenant, p("tenant")), eq(forgottenMemories.userId, p("userId"))))
      .prepare(),
    keepForgotten: write(
      orm
        .insert(forgottenMemories)
        .values({ tenant: p("tenant"), userId: p("userId"), memoryId: p("memoryId") })
        .onConflictDoNothing(),
    ),

    nodes: orm
      .select()
      .from(indexNodes)
      .where(eq(indexNodes.scopeId, p("scopeId")))
      .orderBy(asc(indexNodes.id))
      .prepare(),
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

    orderingRows: orm
      .select()
      .from(orderingRows)
      .where(eq(orderingRows.scopeId, p("scopeId")))
      .orderBy(asc(orderingRows.id))
      .prepare(),
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
    head: orm
      .select()
      .from(heads)
      .where(and(eq(heads.scopeId, p("scopeId")), eq(heads.digest, p("digest"))))
      .prepare(),
    keepHead: write(
      orm
        .insert(heads)
        .values({ scopeId: p("scopeId"), digest: p("digest"), messages: p("messages") })
        .onConflictDoNothing(),
    ),
    section: orm
      .select()
      .from(sections)
      .where(and(eq(sections.scopeId, p("scopeId")), eq(sections.digest, p("digest"))))
      .prepare(),
    keepSection: write(
      orm
        .insert(sections)
        .values({ scopeId: p("scopeId"), digest: p("digest") })
        .onConflictDoNothing(),
    ),

    turn: orm
      .select()
      .from(turns)
      .where(and(eq(turns.scopeId, p("scopeId")), eq(turns.id, p("id"))))
      .prepare(),
    conversationTurns: orm
      .select()
      .from(turns)
      .where(and(eq(turns.scopeId, p("scopeId")), eq(turns.conversationId, p("id"))))
      .orderBy(asc(turns.id))
      .prepare(),
    addTurn: write(
      orm.insert(turns).values({
        scopeId: p("scopeId"),
        id: p("id"),
        conversationId: p("conversationId"),
        parent: p("parent"),
        givenDigests: p("givenDigests"),
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

    request: orm
      .select()
      .from(requests)
      .where(and(eq(requests.scopeId, p("scopeId")), eq(requests.requestId, p("requestId"))))
      .prepare(),
    requestsBefore: orm
      .select()
      .from(requests)
      .where(and(eq(requests.scopeId, p("scopeId")), lt(requests.turn, p("turn"))))
      .orderBy(desc(requests.turn))
      .limit(p("limit"))
      .prepare(),
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
          target: [requests.scopeId, requests.requestId],
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
