import {
  type Digest,
  type Label,
  type MemoryId,
  QuoteSearch,
  type Scope,
  type UserId,
} from "../../../src/core/index.js";
import type { Store } from "../../../src/store/api/store.js";
import type { DatabaseConnection } from "../../../src/store/database/open-database.js";
import { RECORD_KINDS, type RecordKind } from "../../../src/store/journal/journal-database.js";
import { SaidCodec, SharedMessage } from "../../../src/store/journal/said-codec.js";
import { ScopeCodec } from "../../../src/store/journal/scope-codec.js";

/** Tables of a journal that hold text. */
const TABLES = ["journal", "snapshots", "instructions", "responses"] as const;

/** What is left in a journal's rows of a memory that a user forgot: where its text, in any encoding, its id or its labels still are. */
export async function remainsOf(
  { sqlite, digests }: DatabaseConnection,
  store: Store,
  userId: UserId,
  memory: string,
  texts: readonly string[],
): Promise<readonly string[]> {
  const codec = new ScopeCodec(digests);
  const found: string[] = [];
  for (const scope of await store.scopesOf("default", userId)) {
    const { scope: state, version } = await store.loadScope(scope);
    const known = new Set(state.register.blocks.map(({ text }) => text));
    const labels = new Set(state.register.blocks.map(({ label }) => label));
    // What another memory says, too, is not forgotten.
    const search = new QuoteSearch(texts.filter((text) => !known.has(text)));
    for (const table of TABLES) {
      const rows = sqlite.prepare(`select * from ${table} where scope_id = ?`).all(version?.scopeId) as Record<
        string,
        unknown
      >[];
      for (const row of rows) {
        const strings = Object.values(row).filter((value) => typeof value === "string");
        if (!search.isEmpty && strings.some((text) => search.isIn(text))) found.push(`text in ${table}`);
        const named = strings.filter((text) => text.includes(JSON.stringify(memory)));
        if (named.some((text) => !isOnlyForgotten(codec, table, text, memory))) found.push(`id in ${table}`);
        if (table === "journal" && typeof row["changes"] === "string")
          for (const { label } of codec.decodeChanges(row["changes"]).register.blocks)
            if (!labels.has(label as Label) && search.isIn(row["changes"])) found.push(`label ${label} in changes`);
      }
    }
  }
  return found;
}

/** Where texts are that no block of a scope has any more, and that nobody said. */
export async function droppedTextsIn(
  { sqlite, digests }: DatabaseConnection,
  store: Store,
  scope: Scope,
): Promise<readonly string[]> {
  const codec = new ScopeCodec(digests);
  const { scope: state, version } = await store.loadScope(scope);
  const labels = new Set(state.register.blocks.map(({ label }) => label));
  const rows = sqlite
    .prepare<[unknown], { n: number; changes: string }>(
      "select n, changes from journal where scope_id = ? and changes is not null",
    )
    .all(version?.scopeId);
  return rows.flatMap(({ n, changes }) => {
    const gone = codec.decodeChanges(changes).register.blocks.filter(({ label }) => !labels.has(label));
    return gone.map(({ text }) => `${text}: record ${n}`);
  });
}

/** Ids of forgotten memories are kept, so that they are never sent again. */
function isOnlyForgotten(codec: ScopeCodec, table: (typeof TABLES)[number], text: string, memory: string): boolean {
  if (table !== "snapshots") return false;
  const { register } = codec.decodeState(text);
  return register.versions.every(({ memoryId }) => memoryId !== (memory as MemoryId));
}

/** Messages that turns refer to and that are not there, and rows that nothing refers to. */
export function wrongReferencesIn({ sqlite, digests }: DatabaseConnection): readonly string[] {
  const codec = new SaidCodec(digests);
  const named = (scopeId: number, digest: Digest) => `${scopeId}: ${digests.seal(digest)}`;
  const [messages, heads] = [new Set<string>(), new Set<string>()];
  const records = sqlite.prepare<[], { scopeId: number; said: string }>(
    `select scope_id as scopeId, said from journal
     where said is not null and kind in (${["said", "composed"].map((kind) => RECORD_KINDS.indexOf(kind as RecordKind))})`,
  );
  for (const { scopeId, said } of records.all())
    for (const { turn, given } of codec.decodeTurns(said)) {
      heads.add(named(scopeId, turn.head));
      for (const message of given) if (message instanceof SharedMessage) messages.add(named(scopeId, message.key));
    }
  const rows = new Set(sqlite.prepare<[], string>("select scope_id || ': ' || digest from instructions").pluck().all());
  return [
    ...[...messages].filter((one) => !rows.has(one)).map((one) => `missing: ${one}`),
    ...[...rows].filter((one) => !messages.has(one) && !heads.has(one)).map((one) => `of nothing: ${one}`),
  ];
}
