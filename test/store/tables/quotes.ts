import type Database from "better-sqlite3";
import { and, eq } from "drizzle-orm";
import { type ChatMessage, messageText, ownWords, QuoteSearch } from "../../../src/core/index.js";
import type { FoundQuotes, ScopeQuotes } from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { scopes } from "../../../src/store/database/schema.js";
import { blocks, memoryVersions } from "../../../src/store/upgrade/table-schema.js";
import { readRendered } from "../../../src/store/upgrade/table-state.js";

/** Characters searched before other work runs: some ten milliseconds. */
const CHARACTERS_AT_ONCE = 500_000;

/** Characters of a text after which other work runs before the next is prepared. */
const LONG_TEXT = 1_000;

interface Said {
  readonly id: number;
  readonly digest: string;
}

/** See `Store.findQuotes`. */
export async function findQuotes(
  { orm, sqlite }: OpenDatabase,
  tenant: string,
  userId: string,
  memoryId: string,
  texts: readonly string[],
  pause: () => Promise<void>,
): Promise<FoundQuotes> {
  const held = orm
    .select({
      scopeId: scopes.scopeId,
      text: blocks.text,
      holder: memoryVersions.memoryId,
      template: memoryVersions.template,
      ownStart: memoryVersions.ownStart,
      ownLength: memoryVersions.ownLength,
    })
    .from(scopes)
    .leftJoin(memoryVersions, eq(memoryVersions.scopeId, scopes.scopeId))
    .leftJoin(blocks, and(eq(blocks.scopeId, scopes.scopeId), eq(blocks.label, memoryVersions.label)))
    .where(and(eq(scopes.tenant, tenant), eq(scopes.userId, userId)))
    .all();
  const all = new Set(texts);
  const rendered = new Set<string>();
  const ofOthers = new Map<number, Set<string>>();
  for (const { scopeId, text, holder, ...own } of held) {
    const others = ofOthers.get(scopeId) ?? new Set();
    ofOthers.set(scopeId, others);
    if (text === null) continue;
    // Who quotes a memory quotes its own words, not what a block template put around them.
    const words = ownWords(text, readRendered(own));
    if (holder === memoryId) {
      all.add(words);
      if (words !== text) rendered.add(text);
    } else others.add(words);
  }
  const found = new Map<number, ScopeQuotes>();
  for (const [scopeId, others] of ofOthers) {
    const search = new QuoteSearch();
    for (const text of all) {
      if (others.has(text)) continue;
      search.add(text);
      if (text.length > LONG_TEXT) await pause();
    }
    const quotes = { search, looked: new Map<number, string>(), quoting: new Set<number>() };
    found.set(scopeId, quotes);
    const left = saidIn(sqlite, scopeId);
    while (!search.isEmpty && left.length > 0) {
      lookAt(sqlite, quotes, left);
      await pause();
    }
  }
  return { texts: [...all], rendered: [...rendered], scopes: found };
}

/**
 * Erases the bodies of a scope's messages that quote the memory: those found before, and those stored since. Their digests are kept, as
 * conversations continue from them. Runs inside the caller's transaction.
 */
export function eraseQuotes(sqlite: Database.Database, scopeId: number, { texts, scopes }: FoundQuotes): void {
  const quotes = scopes.get(scopeId) ?? { search: new QuoteSearch(texts), looked: new Map(), quoting: new Set() };
  if (quotes.search.isEmpty) return;
  const said = saidIn(sqlite, scopeId);
  const since = said.filter(({ id, digest }) => quotes.looked.get(id) !== digest);
  while (since.length > 0) lookAt(sqlite, quotes, since);
  const erase = sqlite.prepare("update messages set body = null where id = ?");
  for (const { id } of said) if (quotes.quoting.has(id)) erase.run(id);
}

function saidIn(sqlite: Database.Database, scopeId: number): Said[] {
  const said = "select id, digest from messages where scope_id = ? and body is not null";
  return sqlite.prepare<[number], Said>(said).all(scopeId);
}

/** Searches some of the messages, and removes them from the list. */
function lookAt(sqlite: Database.Database, quotes: ScopeQuotes, left: Said[]): void {
  const read = sqlite.prepare<[number], string | null>("select body from messages where id = ?").pluck();
  for (let looked = 0; looked < CHARACTERS_AT_ONCE; ) {
    const next = left.pop();
    if (next === undefined) return;
    const body = read.get(next.id) ?? "";
    looked += body.length;
    quotes.looked.set(next.id, next.digest);
    if (body !== "" && isQuoting(quotes.search, body)) quotes.quoting.add(next.id);
  }
}

function isQuoting(search: QuoteSearch, body: string): boolean {
  if (search.isIn(body)) return true;
  // A reader takes a text in several parts for one.
  const { content } = JSON.parse(body) as ChatMessage;
  return Array.isArray(content) && content.length > 1 && search.isIn(messageText({ role: "", content }));
}
