import { and, eq } from "drizzle-orm";
import { type ChatMessage, type Label, labelsIn, messageText, QuoteSearch, withoutLabels } from "../core/index.js";
import type { ForgottenPieces } from "./forgotten-pieces.js";
import type { OpenDatabase } from "./open-database.js";
import { readAnswer, readInjection, readLabels, writeAnswer, writeInjection } from "./rows.js";
import { blocks, memoryVersions, messages, requests, turns, users } from "./schema.js";
import type { Statements } from "./statements.js";
import type { ForgetRecord, StoredAnswer } from "./store.js";

/**
 * Takes a forgotten memory out of everything that earlier composes left in a scope: its labels out of the injections, so that replay
 * no longer gives it; its id and labels out of stored answers; and whatever the application itself said that quotes its text. What was
 * erased is added to `pieces`. Forgetting is rare, so it reads the scope's turns and messages once through. Runs inside the caller's
 * transaction.
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
    // What is replayed from now on may come back to us too.
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
  eraseQuotes(sqlite, scopeId, record.texts, pieces);
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

/** See {@link Store.eraseQuotes}. Runs inside the caller's transaction. */
export function eraseUsersQuotes(
  { orm, sqlite }: OpenDatabase,
  tenant: string,
  userId: string,
  memoryId: string,
  texts: readonly string[],
  pieces: ForgottenPieces,
): readonly string[] {
  const held = orm
    .select({ scopeId: users.scopeId, text: blocks.text, memoryId: memoryVersions.memoryId })
    .from(users)
    .leftJoin(memoryVersions, eq(memoryVersions.scopeId, users.scopeId))
    .leftJoin(blocks, and(eq(blocks.scopeId, users.scopeId), eq(blocks.label, memoryVersions.label)))
    .where(and(eq(users.tenant, tenant), eq(users.userId, userId)))
    .all();
  const all = new Set(texts);
  for (const { text, memoryId: holder } of held) if (holder === memoryId && text !== null) all.add(text);
  const scopes = new Map<number, Set<string>>();
  for (const { scopeId, text, memoryId: holder } of held) {
    const ofOthers = scopes.get(scopeId) ?? new Set();
    scopes.set(scopeId, ofOthers);
    if (holder !== memoryId && text !== null) ofOthers.add(text);
  }
  if (scopes.size > 1) {
    for (const [scopeId, ofOthers] of scopes)
      eraseQuotes(
        sqlite,
        scopeId,
        [...all].filter((text) => !ofOthers.has(text)),
        pieces,
      );
  }
  return [...all];
}

/**
 * Erases the bodies of messages in a scope that quote one of these texts, however they encode it. Their digests stay: a conversation goes on
 * from them. Runs inside the caller's transaction.
 */
export function eraseQuotes(
  sqlite: OpenDatabase["sqlite"],
  scopeId: number,
  texts: readonly string[],
  pieces: ForgottenPieces,
): void {
  if (texts.length === 0) return;
  const quotes = new QuoteSearch(texts);
  const said = sqlite.prepare<[number], { readonly id: number; readonly body: string }>(
    "select id, body from messages where scope_id = ? and body is not null",
  );
  const quoting: number[] = [];
  for (const { id, body } of said.iterate(scopeId)) {
    if (!isQuoting(quotes, body)) continue;
    quoting.push(id);
    pieces.add(body);
  }
  const erase = sqlite.prepare("update messages set body = null where id = ?");
  for (const id of quoting) erase.run(id);
}

function isQuoting(quotes: QuoteSearch, body: string): boolean {
  if (quotes.isIn(body)) return true;
  // One text in several parts is one text to its reader.
  const message = JSON.parse(body) as ChatMessage;
  return Array.isArray(message.content) && message.content.length > 1 && quotes.isIn(messageText(message));
}

/** Everything that was said in a user's scopes, about to be deleted: to find again what is left of it. */
export function collectTexts(orm: OpenDatabase["orm"], tenant: string, userId: string, pieces: ForgottenPieces): void {
  const scopes = orm
    .select({ scopeId: users.scopeId })
    .from(users)
    .where(and(eq(users.tenant, tenant), eq(users.userId, userId)))
    .all();
  for (const { scopeId } of scopes) {
    const texts = orm.select({ text: blocks.text }).from(blocks).where(eq(blocks.scopeId, scopeId)).all();
    for (const { text } of texts) pieces.add(text);
    const said = orm.select({ json: messages.body }).from(messages).where(eq(messages.scopeId, scopeId)).all();
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
