import { and, eq } from "drizzle-orm";
import { type Label, labelsIn, withoutLabels } from "../../../src/core/index.js";
import type { ForgetRecord, StoredAnswer } from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { readAnswer, readInjection, readLabels } from "../../../src/store/upgrade/table-rows.js";
import { requests, turns } from "../../../src/store/upgrade/table-schema.js";
import { eraseQuotes } from "./quotes.js";
import { writeAnswer, writeInjection } from "./rows.js";
import type { Statements } from "./statements.js";

/**
 * Removes a forgotten memory from a scope's history: its labels from injections, so that replay leaves it out; its id and labels from stored
 * answers; the bodies of messages that quote it. Runs inside the caller's transaction.
 */
export function eraseFromTurns(
  { orm, sqlite, digests }: OpenDatabase,
  statements: Statements,
  scopeId: number,
  record: ForgetRecord,
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
  eraseQuotes(sqlite, scopeId, record.quotes);
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

function withoutMemory(answer: StoredAnswer, memoryId: string, gone: ReadonlySet<Label>): StoredAnswer {
  return {
    ...answer,
    memories: answer.memories
      .filter((memory) => memory.memoryId !== memoryId && !gone.has(memory.label))
      .map((memory) => ({ ...memory, replaces: memory.replaces.filter((label) => !gone.has(label)) })),
  };
}
