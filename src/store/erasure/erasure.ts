/*
 * erasure/: deleted text leaves the rows, the log and the file's free space.
 * In: a forgotten memory or a deleted user, inside the caller's transaction; then the file as it is.
 * Out: turns, answers and messages without it (`erasure.ts`, `quotes.ts`); a file in which no piece of it is left (`file-erasure.ts`).
 * Pieces of deleted text are looked for in raw pages (`forgotten-pieces.ts`, `page-gaps.ts`); found ones make VACUUM rewrite the file.
 */

import { and, eq } from "drizzle-orm";
import { type Label, labelsIn, withoutLabels } from "../../core/index.js";
import { append } from "../../core/text/lists.js";
import type { ForgetRecord, StoredAnswer } from "../api/store.js";
import type { OpenDatabase } from "../database/open-database.js";
import { blocks, messages, requests, responses, scopes, turns } from "../database/schema.js";
import type { Statements } from "../database/statements.js";
import { readAnswer, readInjection, readLabels, writeAnswer, writeInjection } from "../records/rows.js";
import type { ForgottenPieces } from "./forgotten-pieces.js";
import { eraseQuotes } from "./quotes.js";

/**
 * Removes a forgotten memory from a scope's history: its labels from injections, so that replay leaves it out; its id and labels from stored
 * answers; the bodies of messages that quote it. Erased text is added to `pieces`. Forgetting is rare, so this scans the scope's turns and
 * messages. Runs inside the caller's transaction.
 */
export function eraseFromTurns(
  { orm, sqlite, digests }: OpenDatabase,
  statements: Statements,
  scopeId: number,
  record: ForgetRecord,
  pieces: ForgottenPieces,
): void {
  const { gone, sectionsOf } = record;
  for (const row of orm.select().from(turns).where(eq(turns.scopeId, scopeId)).all()) {
    const requested = readLabels(row.requested);
    const injection = readInjection(row.injection);
    if (![...labelsIn(injection), ...requested].some((label) => gone.has(label))) continue;
    const kept = withoutLabels(injection, gone);
    // A client may send back the section as it is replayed from now on.
    for (const section of sectionsOf({ injection: kept, retention: row.retention }))
      statements.keepSection.run({ scopeId, digest: digests.seal(section) });
    orm
      .update(turns)
      .set({
        injection: writeInjection(kept),
        requested: JSON.stringify(requested.filter((label) => !gone.has(label))),
      })
      .where(and(eq(turns.scopeId, scopeId), eq(turns.id, row.id)))
      .run();
  }
  eraseQuotes(sqlite, scopeId, record.quotes, pieces);
  for (const row of orm.select().from(requests).where(eq(requests.scopeId, scopeId)).all()) {
    const kept = writeAnswer(withoutMemory(readAnswer(row.answer), record.memoryId, gone));
    if (kept === row.answer) continue;
    orm
      .update(requests)
      .set({ answer: kept })
      .where(and(eq(requests.scopeId, scopeId), eq(requests.requestId, row.requestId)))
      .run();
  }
}

/** Adds all text of a user's scopes, which are about to be deleted, so that remains of it can be found. */
export function collectTexts(orm: OpenDatabase["orm"], tenant: string, userId: string, pieces: ForgottenPieces): void {
  const own = orm
    .select({ scopeId: scopes.scopeId })
    .from(scopes)
    .where(and(eq(scopes.tenant, tenant), eq(scopes.userId, userId)))
    .all();
  for (const { scopeId } of own) {
    const texts = orm.select({ text: blocks.text }).from(blocks).where(eq(blocks.scopeId, scopeId)).all();
    for (const { text } of texts) pieces.add(text);
    const said: { json: string | null }[] = orm
      .select({ json: messages.body })
      .from(messages)
      .where(eq(messages.scopeId, scopeId))
      .all();
    const answers = orm.select({ json: responses.output }).from(responses).where(eq(responses.scopeId, scopeId)).all();
    append(said, answers);
    for (const { json } of said) if (json !== null && !pieces.isFull) pieces.addJson(JSON.parse(json));
  }
}

function withoutMemory(answer: StoredAnswer, memoryId: string, gone: ReadonlySet<Label>): StoredAnswer {
  return {
    ...answer,
    memories: answer.memories
      .filter((memory) => memory.memoryId !== memoryId && !gone.has(memory.label))
      .map((memory) => ({ ...memory, replaces: memory.replaces.filter((label) => !gone.has(label)) })),
  };
}
