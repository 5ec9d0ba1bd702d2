import type { AgentId, Scope } from "../core/text/ids.js";
import { isRecord } from "../core/text/json.js";
import { unstorable } from "../core/text/memory-text.js";
import type { Mem0Item } from "./mem0-answer.js";
import { breaks, storeConditions, withLists } from "./mem0-conditions.js";
import { type AddedMessage, MemorySourceError, type MessageAddition, type SearchOptions } from "./memory-source.js";

/** A scope under Mem0's names. Null: no agent. */
export interface Mem0Scope {
  readonly userId: string;
  readonly agentId: string | null;
}

interface Mem0Ids {
  readonly user_id: string;
  readonly agent_id?: string;
}

export interface Mem0Search extends Mem0Scope, SearchOptions {}

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

export interface AddCallOptions {
  userId: string;
  agentId?: string;
  runId?: string;
  infer?: boolean;
  metadata?: Record<string, unknown>;
}

export function addArguments({ userId, agentId }: Mem0Scope, { messages, runId, metadata, infer }: MessageAddition) {
  const options: AddCallOptions = {
    userId,
    ...(agentId === null ? {} : { agentId }),
    ...(runId == null ? {} : { runId }),
    ...(infer == null ? {} : { infer }),
    ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
  };
  const sent: AddedMessage[] = messages.map(({ role, content }) => ({ role, content }));
  return [sent, options] as const satisfies readonly [unknown, unknown];
}

/** {@link searchOptions} as Mem0's APIs name them. */
export function searchFields(options: SearchOptions) {
  const { showExpired: show_expired, referenceDate: reference_date, ...others } = searchOptions(options);
  return { ...others, show_expired, reference_date };
}

/** An addition as Mem0's APIs take it. */
export function addFields(scope: Mem0Scope, { messages, runId, infer, metadata }: MessageAddition) {
  return { messages, ...filtersOf(scope), run_id: runId ?? undefined, infer: infer ?? undefined, metadata };
}

/** Mem0 takes ids only in `filters`, and only in snake_case. */
export function filtersOf({ userId, agentId }: Mem0Scope): Mem0Ids {
  return { user_id: userId, ...(agentId === null ? {} : { agent_id: agentId }) };
}

/** The open-source Mem0 looks for ids at the top. */
export function searchFilters(search: Mem0Search): Mem0Ids & Readonly<Record<string, unknown>> {
  return { ...(search.filters && withLists(search.filters)), ...filtersOf(search) };
}

export function embeddedFilters(search: Mem0Search): Mem0Ids & Readonly<Record<string, unknown>> {
  return { ...(search.filters && storeConditions(search.filters)), ...filtersOf(search) };
}

function namesIn(item: Mem0Item) {
  return {
    user: item.user_id ?? item.userId,
    agent: item.agent_id ?? item.agentId,
    run: item.run_id ?? item.runId,
  };
}

/** Whether a found item may be shown: it must not name another user, another agent than a requested one, or a run. A server may ignore filters. */
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

/** Whether a memory found for a user before names no other user now. False for no item. */
export function isStillOf(item: unknown, { userId }: Mem0Scope): boolean {
  return isRecord(item) && (namesIn(item).user ?? userId) === userId;
}

/** Whether an item is proven to be the scope's, as deleting it requires. Without an agent, any of the user's qualifies. */
export function isOwnedBy(item: unknown, scope: Mem0Scope): boolean {
  if (!isRecord(item)) return false;
  const { user, agent } = namesIn(item);
  return user === scope.userId && (scope.agentId === null || agent === scope.agentId);
}

/** Its users keep their own names at Mem0. */
const DEFAULT_TENANT = "default";

/** No escaped name can be this, because four hex digits always follow `%`. */
const NO_AGENT = "%none";

const TENANT_PREFIX = "memprefix/";

export type UserScope = Pick<Scope, "tenant" | "userId">;

/**
 * Injective over (tenant, user). Mem0 cannot take names unmodified: it trims them (" ada" would read "ada"'s memories), rejects inner white space,
 * drops an empty name from its filters, and its store takes `*` for every user.
 */
export function embeddedUserName(scope: UserScope): string {
  const user = escapedName(scope.userId);
  return scope.tenant === DEFAULT_TENANT ? user : `${escapedName(scope.tenant)}:${user}`;
}

/** "No agent" is a name of its own, because Mem0 takes an absent one for "any": no agent's memories appear in a prompt that names no agent. */
export function embeddedScope(scope: Scope): Mem0Scope & { readonly agentId: string } {
  return { userId: embeddedUserName(scope), agentId: scope.agentId === null ? NO_AGENT : escapedName(scope.agentId) };
}

/** Reverses {@link embeddedScope}; null for "no agent". */
export function embeddedAgent(name: string): AgentId | null {
  if (name === NO_AGENT) return null;
  if (name === "%") return "" as AgentId;
  return name.replace(/%([0-9a-f]{4})/g, (_, unit: string) =>
    String.fromCharCode(Number.parseInt(unit, 16)),
  ) as AgentId;
}

/**
 * In the default tenant the caller's own name, else `memprefix/<tenant>/<user>`. Throws {@link MemorySourceError} `unsupported` for a name that Mem0
 * would confuse: `*` (any user), an empty one (`deleteUsers({ userId: "" })` deletes all users), one that trimming changes, one without a UTF-8
 * form, or one with another tenant's prefix.
 */
export function sharedUserName(source: string, scope: UserScope): string {
  if (scope.tenant !== DEFAULT_TENANT)
    return `${TENANT_PREFIX}${escapedName(scope.tenant)}/${escapedName(scope.userId)}`;
  if (scope.userId.startsWith(TENANT_PREFIX))
    throw unsupported(source, `use a user id that starts with "${TENANT_PREFIX}"`);
  return unambiguous(source, "user", scope.userId);
}

/** Throws like {@link sharedUserName}. */
export function sharedScope(source: string, scope: Scope): Mem0Scope {
  return {
    userId: sharedUserName(source, scope),
    agentId: scope.agentId === null ? null : unambiguous(source, "agent", scope.agentId),
  };
}

/** Python and JavaScript trim different control characters. */
const TRIMMED_EDGE = /^[\s\p{Control}]|[\s\p{Control}]$/u;

function unambiguous(source: string, what: string, name: string): string {
  if (name === "" || name === "*")
    throw unsupported(source, `use the ${what} id "${name}", which means any ${what} there`);
  if (TRIMMED_EDGE.test(name)) throw unsupported(source, `use a ${what} id with white space around it`);
  if (unstorable(name) !== null) throw unsupported(source, `use a ${what} id that is not well-formed text`);
  return name;
}

/** Injective, and the identity on ordinary names: every other UTF-16 unit becomes `%` and four hex digits. The empty name becomes `%`. */
function escapedName(name: string): string {
  if (name === "") return "%";
  return name.replace(/[^A-Za-z0-9._@-]/g, (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function unsupported(source: string, operation: string): MemorySourceError {
  return new MemorySourceError(source, { kind: "unsupported", operation });
}
