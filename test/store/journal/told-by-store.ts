import { expect } from "vitest";
import {
  type ConversationId,
  type Digest,
  type MemoryId,
  type NodeId,
  type RequestId,
  type Scope,
  ScopeState,
  type UserId,
} from "../../../src/core/index.js";
import type { ExportedRow, Store } from "../../../src/store/api/store.js";
import { countTokens } from "../api/stored-compose.js";
import { turnsUpTo } from "./driven-store.js";

/** What is asked of a store. */
export interface Questions {
  readonly scopes: readonly Scope[];
  readonly conversations: readonly string[];
  readonly requests: readonly string[];
  readonly memories: readonly string[];
  readonly sections: readonly Digest[];
  /** The last time at which anything was composed. */
  readonly until: number;
  /** Whether another request was composed under the id of one whose answer is gone. */
  readonly areIdsReused: boolean;
}

/** Every answer that a store gives, in an order of its own where the store's says nothing. */
export async function toldBy(store: Store, questions: Questions) {
  const { scopes, requests, memories } = questions;
  const users = [...new Set(scopes.map(({ userId }) => userId))];
  const live = await store.findLiveRequests("default", requests as RequestId[]);
  return {
    scopes: await Promise.all(scopes.map((scope) => toldOf(store, scope, questions))),
    live: sorted(live),
    users: await Promise.all(users.map((userId) => toldOfUser(store, userId))),
    holders: await Promise.all(memories.map((memory) => allPages((after) => holders(store, memory, after)))),
    old: await Promise.all(
      [questions.until / 2, questions.until].map((time) => allPages((after) => store.scopesWithOldTurns(time, after))),
    ),
  };
}

async function toldOf(
  store: Store,
  scope: Scope,
  { conversations, requests, sections, until, areIdsReused }: Questions,
) {
  const loaded = await store.loadScope(scope);
  // A node's times of use are stored as they are, or as loading derives them from what extends it.
  const state = new ScopeState(loaded.scope, countTokens).stored();
  // Whoever loads it takes from this that nothing is under way.
  expect(await store.underWaySince(scope, loaded.newestAt)).toBeNull();
  const { published, register, nodes, recent, workers, ...counted } = state;
  const turns = turnsUpTo(counted.counters.nextTurn - 1);
  const ids = requests as readonly RequestId[];
  const served = await Promise.all(ids.map((id) => store.findServed(scope, id)));
  const leaves = [...new Set(served.flatMap((one) => one?.leaf ?? []))] as NodeId[];
  const middle = turns[Math.floor(turns.length / 2)] ?? turnsUpTo(1)[0];
  return {
    state: {
      ...counted,
      blocks: register.blocks,
      versions: sorted(register.versions),
      forgotten: sorted(register.forgotten),
      nodes: [...nodes].sort((a, b) => a.id - b.id),
      recent: sorted(recent),
      workers: sorted(workers),
      published: [sorted(published.clusters), sorted(published.accesses)],
    },
    served,
    answered: await Promise.all(ids.map((id) => store.findRequest(scope, id))),
    prompts: await Promise.all(ids.slice(-4).map((id) => store.findContinued(scope, id))),
    workers: await Promise.all(turns.map((turn) => store.findWorker(scope, turn))),
    reported: await Promise.all(turns.map((turn) => store.findReportedBefore(scope, turn))),
    since: await Promise.all(
      leaves.map((leaf) =>
        Promise.all([0, middle].map((turn) => store.countServedSince(scope, leaf, turn as never, 3))),
      ),
    ),
    open: await Promise.all([0, until / 2, until - 1_000].map((time) => store.underWaySince(scope, time))),
    newest: [await store.liveRequests(scope, 3), await store.liveRequests(scope, 1_000)],
    said: await Promise.all(
      (conversations as readonly ConversationId[]).map(async (id) => {
        const turns = await store.loadConversation(scope, id);
        const { conversation } = await store.loadScope(scope, id);
        if (conversation !== null) expect(conversation).toEqual(turns);
        return [turns, await store.findHistory(scope, id)];
      }),
    ),
    // The journal counts each time that something was composed, the model each id once.
    counts: { ...(await store.counts(scope)), ...(areIdsReused ? { requests: null } : {}) },
    sections: await store.knownSections(scope, sections),
    scanned: withoutMessages(await store.scanTurns(scope, until / 2, 0, 1_000)),
    found: foundOf(await store.findExpired(scope, until / 2, turns)),
  };
}

async function toldOfUser(store: Store, userId: UserId) {
  const exported = await store.exportUser("default", userId, () => Promise.resolve());
  return {
    scopes: sorted(await store.scopesOf("default", userId)),
    pending: await store.pendingInSource("default", userId),
    exported: sorted(
      exported.scopes.map(({ agentId, scope: { version: _version, ...scope }, tables }) => ({
        agentId,
        scope,
        tables: Object.fromEntries(Object.entries(tables).map(([name, rows]) => [name, exportedRows(name, rows)])),
      })),
    ),
    forgotten: exported.forgottenMemories,
  };
}

/**
 * Rows as they are compared. A conversation of which the first prompt was taken back began then, or with the next; a node's times of use are
 * what was stored, or what loading derives from the nodes that extend it. The model does not tell how a node's labels were written once.
 */
function exportedRows(name: string, rows: readonly ExportedRow[]) {
  const untold =
    name === "conversations" ? { created_at: null } : name === "index_nodes" ? { last_used: null, used_at: null } : {};
  return sorted(rows.map((row) => ({ ...row, ...untold })));
}

function withoutMessages<Found extends { readonly expired: readonly object[]; readonly remaining: readonly object[] }>(
  found: Found,
) {
  const strip = (turns: readonly object[]) => sorted(turns.map((turn) => ({ ...turn, messages: null })));
  return { ...found, expired: strip(found.expired), remaining: strip(found.remaining) };
}

/** A request composed again under its id stands in the journal where the first one did. */
function foundOf({ expired, live }: Awaited<ReturnType<Store["findExpired"]>>) {
  return { ...withoutMessages({ expired, remaining: [] }), live: sorted(live) };
}

function holders(store: Store, memory: string, after: number) {
  return store.scopesWithMemory("default", memory as MemoryId, after);
}

async function allPages(page: (after: number) => ReturnType<Store["scopesWithMemory"]>) {
  const all: Scope[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const { scopes, next }: Awaited<ReturnType<Store["scopesWithMemory"]>> = await page(after);
    all.push(...scopes);
    after = next;
  }
  return sorted(all);
}

/** By their JSON. */
function sorted<Value>(values: readonly Value[]): readonly Value[] {
  return [...values].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}
