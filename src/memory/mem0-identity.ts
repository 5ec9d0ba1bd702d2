import type { AgentId, Scope } from "../core/text/ids.js";
import { isRecord } from "../core/text/json.js";
import { unstorable } from "../core/text/memory-text.js";
import type { Mem0Item } from "./mem0-answer.js";
import { breaks, storeConditions, withLists } from "./mem0-conditions.js";
import { MemorySourceError, type NewMemory, type SearchOptions } from "./memory-source.js";

/** Whose memories, under the names that Mem0 knows them by (see `mem0-identity.ts`). */
export interface Mem0Scope {
  readonly userId: string;
  /** Null: named to Mem0 by the user alone. */
  readonly agentId: string | null;
}

/** Ids of a search's `filters`. */
interface Mem0Ids {
  readonly user_id: string;
  readonly agent_id?: string;
}

/** What a search is for, under the names that Mem0 knows it by. */
export interface Mem0Search extends Mem0Scope, SearchOptions {}

/** What a search says besides its filters, in the names of Mem0's SDKs; nothing where it says nothing. */
export function searchOptions({ showExpired, rerank, referenceDate, threshold }: SearchOptions): {
  showExpired?: true;
  rerank?: true;
  referenceDate?: string | number;
  threshold?: number;
} {
  return {
    ...(showExpired ? { showExpired } : {}),
    ...(rerank ? { rerank } : {}),
    ...(referenceDate == null ? {} : { referenceDate }),
    ...(threshold == null ? {} : { threshold }),
  };
}

/** The arguments of Mem0's `add` that keep one text as it is. */
export function addArguments({ userId, agentId }: Mem0Scope, { text, metadata }: NewMemory) {
  const options = {
    userId,
    ...(agentId === null ? {} : { agentId }),
    infer: false as const,
    ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
  };
  const messages = [{ role: "user" as const, content: text }];
  return [messages, options] as const satisfies readonly [unknown, unknown];
}

/** The ids of a scope: Mem0 takes them only in `filters`, and only in snake_case. */
export function filtersOf({ userId, agentId }: Mem0Scope): Mem0Ids {
  return { user_id: userId, ...(agentId === null ? {} : { agent_id: agentId }) };
}

/** The `filters` of a search, its conditions beside its ids: as the open-source Mem0 takes them, which looks for ids at the top. */
export function searchFilters(search: Mem0Search): Mem0Ids & Readonly<Record<string, unknown>> {
  return { ...(search.filters && withLists(search.filters)), ...filtersOf(search) };
}

/** The same for the embedded store. */
export function embeddedFilters(search: Mem0Search): Mem0Ids & Readonly<Record<string, unknown>> {
  return { ...(search.filters && storeConditions(search.filters)), ...filtersOf(search) };
}

/** Whose an item says that it is, in either spelling. */
function namesIn(item: Mem0Item) {
  return {
    user: item.user_id ?? item.userId,
    agent: item.agent_id ?? item.agentId,
    run: item.run_id ?? item.runId,
  };
}

/**
 * Whether an item that a search returned may be shown: it must not say that it is another user's, or another agent's
 * where one is asked for, or a run's. The filters should have seen to that; a server that overlooks them must not make one user's memories
 * another's. The open-source Mem0 finds those of all runs; and of two conditions on a field it may have overlooked one.
 */
export function belongsTo({ userId, agentId, ...of }: Mem0Search): (item: Mem0Item) => boolean {
  const checked = of.isChecked === true ? (of.filters ?? null) : null;
  return (item) => {
    const { user, agent, run } = namesIn(item);
    return (
      (user ?? userId) === userId &&
      (agentId === null || (agent ?? agentId) === agentId) &&
      run == null &&
      (checked === null || !breaks(checked, item))
    );
  };
}

/** Whether a memory that was found for a user before may be the user's now: it does not say that it is another's. False for no item. */
export function isStillOf(item: unknown, { userId }: Mem0Scope): boolean {
  return isRecord(item) && (namesIn(item).user ?? userId) === userId;
}

/**
 * Whether an item is proven to be the scope's, which it must be before it is deleted. With an agent in the scope it must be that agent's;
 * without one, any of the user's qualifies. False for anything that is not an item.
 */
export function isOwnedBy(item: unknown, scope: Mem0Scope): boolean {
  if (!isRecord(item)) return false;
  const { user, agent } = namesIn(item);
  return user === scope.userId && (scope.agentId === null || agent === scope.agentId);
}

/** The tenant of an installation that has only one. Its users keep their own names at Mem0. */
const DEFAULT_TENANT = "default";

/** Stands for "no agent" in the embedded store; no escaped name can be this, because `%` is always followed by four hex digits. */
const NO_AGENT = "%none";

/** Where the users of other tenants live in a Mem0 that memprefix shares with others. */
const TENANT_PREFIX = "memprefix/";

/** The user part of a {@link Scope}. */
export type UserScope = Pick<Scope, "tenant" | "userId">;

/**
 * A user's name in the embedded store: injective over (tenant, user), so that no two users share one. Mem0 cannot take names
 * unmodified: it trims them (" ada" would read "ada"'s memories), refuses white space inside, drops an empty name from its filters, and its
 * store takes `*` for "any value", which would be everybody.
 */
export function embeddedUserName(scope: UserScope): string {
  const user = escapedName(scope.userId);
  return scope.tenant === DEFAULT_TENANT ? user : `${escapedName(scope.tenant)}:${user}`;
}

/**
 * A scope's names in the embedded store. "No agent" is a name of its own there, because Mem0 takes an absent one for "any": so a scope
 * without an agent is as much a scope as any other, and nothing of one agent's shows in a prompt that names no agent.
 */
export function embeddedScope(scope: Scope): Mem0Scope & { readonly agentId: string } {
  return { userId: embeddedUserName(scope), agentId: scope.agentId === null ? NO_AGENT : escapedName(scope.agentId) };
}

/** The agent whose name this is in the embedded store; null for "no agent". */
export function embeddedAgent(name: string): AgentId | null {
  if (name === NO_AGENT) return null;
  if (name === "%") return "" as AgentId;
  return name.replace(/%([0-9a-f]{4})/g, (_, unit: string) =>
    String.fromCharCode(Number.parseInt(unit, 16)),
  ) as AgentId;
}

/**
 * A user's name in a Mem0 that memprefix does not own: in the default tenant the caller's own, because the memories are already there
 * under that name; in other tenants `memprefix/<tenant>/<user>`. Throws {@link MemorySourceError} `unsupported` for a name that Mem0 would
 * take for another one: `*` (any user), an empty one (no filter; `deleteUsers({ userId: "" })` deletes all users), one that changes
 * when it is trimmed, one without a UTF-8 form, or one that poses as another tenant's.
 */
export function sharedUserName(source: string, scope: UserScope): string {
  if (scope.tenant !== DEFAULT_TENANT)
    return `${TENANT_PREFIX}${escapedName(scope.tenant)}/${escapedName(scope.userId)}`;
  if (scope.userId.startsWith(TENANT_PREFIX))
    throw unsupported(source, `use a user id that starts with "${TENANT_PREFIX}"`);
  return unambiguous(source, "user", scope.userId);
}

/** A scope's names in a Mem0 that memprefix does not own. Throws like {@link sharedUserName}. */
export function sharedScope(source: string, scope: Scope): Mem0Scope {
  return {
    userId: sharedUserName(source, scope),
    agentId: scope.agentId === null ? null : unambiguous(source, "agent", scope.agentId),
  };
}

/** Trimmed by Python or by JavaScript: their ideas of white space differ in the control characters. */
const TRIMMED_EDGE = /^[\s\p{Control}]|[\s\p{Control}]$/u;

function unambiguous(source: string, what: string, name: string): string {
  if (name === "" || name === "*")
    throw unsupported(source, `use the ${what} id "${name}", which means any ${what} there`);
  if (TRIMMED_EDGE.test(name)) throw unsupported(source, `use a ${what} id with white space around it`);
  if (unstorable(name) !== null) throw unsupported(source, `use a ${what} id that is not well-formed text`);
  return name;
}

/**
 * Injective, and the identity on ordinary names (`ada`, `user_1`, `ada@example.org`): every other UTF-16 unit becomes `%` and four hex
 * digits, lone surrogates included. The empty name becomes a bare `%`.
 */
function escapedName(name: string): string {
  if (name === "") return "%";
  return name.replace(/[^A-Za-z0-9._@-]/g, (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function unsupported(source: string, operation: string): MemorySourceError {
  return new MemorySourceError(source, { kind: "unsupported", operation });
}
