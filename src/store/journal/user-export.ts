import type { UserId } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import type { ExportedRow, ExportedScope, ExportedUser, LoadedScope } from "../api/store.js";
import { type ScopeRow, WITH_TURNS } from "./journal-database.js";
import { decodedOf, type JournalParts, listInPages, reportIn, sharedKeys, sharedRows } from "./journal-parts.js";
import { requestsNamed } from "./request-reading.js";
import { isInstructions, messagesInRow } from "./said-codec.js";
import { loadScope, TurnReading, type TurnRecord } from "./turn-reading.js";

/** Records of a page; other work runs in between. */
const RECORDS_AT_ONCE = 64;

/**
 * See `Store.exportUser`. The journal's records and the state that they fold to, as tables: names of columns are for good, digests are left
 * out, as they would confirm a guess of a short text, and so is a scope's number, which counts other users.
 */
export async function exportUser(
  parts: JournalParts,
  tenant: string,
  userId: UserId,
  pause: () => Promise<void>,
): Promise<ExportedUser> {
  const scopes: ExportedScope[] = [];
  for (const row of await parts.database.scopesOf(tenant, userId)) {
    scopes.push(await exportScope(parts, row, pause));
    await pause();
  }
  const forgotten = await parts.database.forgottenOf(tenant, userId);
  return { scopes, forgottenMemories: [...forgotten].sort() };
}

async function exportScope(
  parts: JournalParts,
  { scopeId, scope, createdAt }: ScopeRow,
  pause: () => Promise<void>,
): Promise<ExportedScope> {
  const loaded = await loadScope(parts, scope);
  const { counters, bankedTokens } = loaded.scope;
  const said = await exportSaid(parts, scopeId, pause);
  const heads = await exportHeads(parts, scopeId);
  const responses = await parts.database.responsesOf(scopeId);
  return {
    agentId: scope.agentId,
    scope: snakeCased({ version: loaded.version?.commits ?? 0, ...counters, createdAt, bankedTokens }),
    tables: {
      ...stateTables(loaded.scope),
      conversations: said.conversations,
      heads,
      turns: said.turns,
      requests: said.requests,
      responses: responses.map(snakeCased),
    },
  };
}

function stateTables({ register, nodes, recent, workers, published }: LoadedScope["scope"]) {
  const ordering = (kind: string, id: number, row: object) => ({ kind, id, row: snakeCased(row) });
  return {
    blocks: register.blocks.map(({ label, text, tokens, supersededBy }) => ({
      label,
      text,
      tokens,
      superseded_by: supersededBy,
    })),
    memory_versions: register.versions.map(({ memoryId, label, current, found, ofRun, until, dated }) => ({
      memory_id: memoryId,
      label,
      current,
      found: found ?? false,
      of_run: ofRun ?? false,
      until: until ?? null,
      dated: dated ?? false,
    })),
    index_nodes: nodes.map(({ id, parent, run, position, nextPosition, uses, live, lastUsed, usedAt, tokens }) =>
      snakeCased({ id, parent, run, position, nextPosition, uses, live, lastUsed, usedAt, tokens }),
    ),
    ordering_rows: [
      ...published.accesses.map(({ turn, ...row }) => ordering("access", turn, row)),
      ...published.clusters.map(({ id, ...row }) => ordering("cluster", id, row)),
      ...recent.map(({ turn, labels }) => ordering("recent", turn, [...labels])),
      ...workers.map(({ id, ...row }) => ordering("worker", id, row)),
    ],
  };
}

/** The instructions among the shared rows; messages are listed with the turns that were given them. */
async function exportHeads(parts: JournalParts, scopeId: number): Promise<readonly ExportedRow[]> {
  const rows: ExportedRow[] = [];
  for await (const { json } of sharedRows(parts, scopeId, await sharedKeys(parts, scopeId)))
    if (isInstructions(json)) rows.push({ messages: decodedOf({ scopeId }, () => messagesInRow(json)) });
  return rows;
}

/** A conversation as its records have it. */
interface ExportedConversation extends ExportedRow {
  readonly id: string;
  readonly turns: number;
  readonly created_at: number;
  readonly last_turn_at: number;
}

async function exportSaid(parts: JournalParts, scopeId: number, pause: () => Promise<void>) {
  const turns: ExportedRow[] = [];
  const requests: ExportedRow[] = [];
  const conversations = new Map<string, ExportedConversation>();
  for await (const keys of listInPages(parts.database, scopeId, { kinds: WITH_TURNS }, RECORDS_AT_ONCE)) {
    // Records of a page are read once, and not kept.
    const reading = new TurnReading(parts, scopeId);
    const records = await reading.recordsOf(keys);
    for (const record of records) {
      append(turns, await turnRows(reading, record));
      countTurn(conversations, record);
    }
    append(requests, await requestRows(parts, scopeId, records));
    await pause();
  }
  const byId = [...conversations.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return { turns, requests, conversations: byId };
}

async function turnRows(reading: TurnReading, { key, turns }: TurnRecord): Promise<readonly ExportedRow[]> {
  const texts = await reading.givenOf(turns.map(({ given }) => ({ said: given })));
  return turns.map(({ turn }, at) => {
    const {
      head: _head,
      prompt: _prompt,
      anchor: _anchor,
      meant: _meant,
      behind: _behind,
      given: _given,
      ...named
    } = turn;
    const { id, conversationId, parent, placement, injection, retention, requested, ...rest } = named;
    const { freshStart, keptTurns, promptTokens, computedTokens, epoch } = rest;
    return {
      ...{
        id,
        conversation_id: conversationId,
        parent,
        given: texts[at],
        placement,
        injection: snakeCased(injection),
        retention,
      },
      ...{ fresh_start: freshStart, kept_turns: keptTurns, requested },
      ...{ prompt_tokens: promptTokens, computed_tokens: computedTokens, epoch },
      created_at: key.at,
    };
  });
}

function countTurn(conversations: Map<string, ExportedConversation>, { key, turns }: TurnRecord): void {
  const own = turns.at(-1)?.turn;
  if (own === undefined || own.conversationId === null) return;
  const id = own.conversationId;
  const known = conversations.get(id);
  const count = (known?.turns ?? 0) + (own.promptTokens > 0 ? 1 : 0);
  conversations.set(id, { id, turns: count, created_at: known?.created_at ?? key.at, last_turn_at: key.at });
}

async function requestRows(
  parts: JournalParts,
  scopeId: number,
  records: readonly TurnRecord[],
): Promise<readonly ExportedRow[]> {
  const ids = records.flatMap(({ key }) => key.requestId ?? []);
  const named = new Map((await requestsNamed(parts.database, scopeId, ids)).map((one) => [one.composed.seq, one]));
  const rows: ExportedRow[] = [];
  for (const { key, request } of records) {
    const of = named.get(key.seq);
    if (of === undefined || request === null) continue;
    const [report] = of.reported === null ? [] : await parts.database.read([of.reported.seq]);
    rows.push({
      request_id: key.requestId,
      turn: key.turn,
      leaf: key.leaf,
      answer: snakeCased(request.answer),
      evicted: of.isEvicted,
      observed: report === undefined ? null : snakeCased(reportIn(parts, report)),
      created_at: key.at,
    });
  }
  return rows;
}

/** The same with field names in `snake_case`. */
function snakeCased<Value extends object>(value: Value): ExportedRow {
  return cased(value) as ExportedRow;
}

function cased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cased);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      cased(inner),
    ]),
  );
}
