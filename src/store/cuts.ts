import { setImmediate as pause } from "node:timers/promises";
import {
  type AgentId,
  type ConversationId,
  type KeyedTurn,
  ScopeState,
  type StoredScope,
  type Turn,
  type TurnId,
} from "../core/index.js";
import { type ReadRows, type SqlValue, type Statement, sql } from "./database.js";
import { decodeTurn, type TurnColumns } from "./rows.js";
import { deletionOf, readScope } from "./scopes.js";
import type { ScopeVersion, User } from "./store.js";
import { unusedMessages } from "./turns.js";
import { scopeRows } from "./users.js";

/** The service enforces bounds. */
const NO_BOUNDS = { maxIndexNodes: Number.POSITIVE_INFINITY, maxLoadedConversations: 1 };
/** Turns read before other work runs: some milliseconds. */
const AT_ONCE = 500;

export interface LoadedState {
  readonly agentId: AgentId | null;
  readonly version: ScopeVersion;
  readonly state: ScopeState;
}

/** Every scope of a user that has a state. */
export async function loadScopes(read: ReadRows, user: User): Promise<LoadedState[]> {
  const loaded: LoadedState[] = [];
  for (const { scope, hasState } of await scopeRows(read, user)) {
    if (!hasState) continue;
    const { version, newer } = await readScope(read, scope, null);
    if (version !== null && newer !== null) loaded.push({ agentId: scope.agentId, version, state: stateOf(newer) });
  }
  return loaded;
}

/** A state whose blocks have no token counts. */
export function stateOf(stored: StoredScope): ScopeState {
  return new ScopeState(stored, () => 0, NO_BOUNDS);
}

/** A scope's turns, oldest first; other work runs in between. */
export async function* turnsOf(read: ReadRows, scopeId: number): AsyncGenerator<KeyedTurn> {
  const text = `select t.id, t.conversation_id as "conversationId", t.head, t.turn from turns t
    where t.scope_id = $1 and t.id > $2 order by t.id limit ${AT_ONCE}`;
  for (let after = 0; ; ) {
    const rows = await read<TurnColumns>(text, [scopeId, after]);
    for (const row of rows) yield decodeTurn(row);
    if (rows.length < AT_ONCE) return;
    after = rows.at(-1)?.id ?? after;
    await pause();
  }
}

/** Where histories end: by conversation, the first turn to remove; by single prompt, its turn. */
export type Cuts = Map<ConversationId | TurnId, TurnId>;

/** Ends a conversation before a turn, or removes a single prompt's. */
export function cut(cuts: Cuts, conversation: ConversationId | null, turn: TurnId): void {
  const key = conversation ?? turn;
  const before = cuts.get(key);
  if (before === undefined || turn < before) cuts.set(key, turn);
}

export function isLeft(cuts: Cuts, { id, conversationId }: Turn): boolean {
  return id < (cuts.get(conversationId ?? id) ?? Number.POSITIVE_INFINITY);
}

/** A condition on turns `t` to remove, with its values from `$2` on. */
export function goneTurns(key: ConversationId | TurnId, first: TurnId): { where: string; values: readonly SqlValue[] } {
  if (typeof key === "number") return { where: "t.id = $2", values: [key] };
  return { where: "t.conversation_id = $2 and t.id >= $3", values: [key, first] };
}

export function removeTurns(scopeId: number, cuts: Cuts): Statement[] {
  const removed = [...cuts].flatMap(([key, first]): Statement[] => {
    if (typeof key === "number")
      return (["requests", "writes", "turns"] as const).map((table) => deletionOf(table, scopeId, key));
    const values = [scopeId, key, first] as const;
    const later = "select id from turns where scope_id = $1 and conversation_id = $2 and id >= $3";
    return [
      sql(`delete from requests where scope_id = $1 and turn_id in (${later})`, ...values),
      sql(`delete from writes where scope_id = $1 and turn_id in (${later})`, ...values),
      sql("delete from messages where scope_id = $1 and conversation_id = $2 and turn_id >= $3", ...values),
      sql("delete from turns where scope_id = $1 and conversation_id = $2 and id >= $3", ...values),
    ];
  });
  return [...removed, ...unusedMessages(scopeId)];
}
