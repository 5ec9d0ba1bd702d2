import { and, eq } from "drizzle-orm";
import { type Label, labelsIn, withoutLabels } from "../core/index.js";
import type { OpenDatabase } from "./open-database.js";
import { readAnswer, readInjection, readLabels, writeAnswer, writeInjection } from "./rows.js";
import { heads, requests, turns } from "./schema.js";
import type { Statements } from "./statements.js";
import type { ForgetRecord, StoredAnswer } from "./store.js";

/**
 * Takes a forgotten memory out of everything that earlier composes left in a scope: its labels out of the injections, so that replay
 * no longer gives it; its id and labels out of stored answers; and whatever the application itself said that quotes its text.
 * Forgetting is rare, so it reads the scope's turns once through. Runs inside the caller's transaction.
 */
export function eraseFromTurns(
  orm: OpenDatabase["orm"],
  statements: Statements,
  scopeId: number,
  record: ForgetRecord,
): void {
  const { gone, sectionsOf } = record;
  const quotes = record.texts.map((text) => JSON.stringify(text).slice(1, -1));
  const isQuoting = (json: string) => quotes.some((quote) => json.includes(quote));

  for (const row of orm.select().from(turns).where(eq(turns.scopeId, scopeId)).all()) {
    const requested = readLabels(row.requested);
    const injection = readInjection(row.injection);
    const isTouched = [...labelsIn(injection), ...requested].some((label) => gone.has(label));
    const isQuoted = row.given !== null && isQuoting(row.given);
    if (!isTouched && !isQuoted) continue;
    const kept = isTouched ? withoutLabels(injection, gone) : injection;
    // What is replayed from now on may come back to us too.
    const sections = isTouched ? sectionsOf({ injection: kept, retention: row.retention }) : [];
    for (const digest of sections) statements.keepSection.run({ scopeId, digest });
    orm
      .update(turns)
      .set({
        injection: writeInjection(kept),
        requested: JSON.stringify(requested.filter((label) => !gone.has(label))),
        given: isQuoted ? null : row.given,
      })
      .where(and(eq(turns.scopeId, scopeId), eq(turns.id, row.id)))
      .run();
  }
  for (const row of orm.select().from(heads).where(eq(heads.scopeId, scopeId)).all()) {
    if (row.messages === null || !isQuoting(row.messages)) continue;
    orm
      .update(heads)
      .set({ messages: null })
      .where(and(eq(heads.scopeId, scopeId), eq(heads.digest, row.digest)))
      .run();
  }
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
