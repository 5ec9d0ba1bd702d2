import { setImmediate as pause } from "node:timers/promises";
import {
  type ConversationId,
  CUT_MARK,
  type Label,
  labelsIn,
  type MemoryId,
  ownWords,
  type Scope,
  ScopeState,
  type StoredScope,
  type Turn,
} from "../core/index.js";
import type { Database, ReadRows, Statement, UserTransaction } from "./database.js";
import { decodeTurn, encodeTurn, type TurnColumns } from "./rows.js";
import { begin, deletionOf, forgottenIn, readScope, snapshotStatements } from "./scopes.js";
import type { ForgottenMemory, PendingSourceDeletions, ScopeVersion, Store, User } from "./store.js";
import { IS_HEAD, NO_HEAD, unusedMessages } from "./turns.js";
import { pendingIn, scopeRows } from "./users.js";

/** Bounds are the service's to enforce. */
const NO_BOUNDS = { maxIndexNodes: Number.POSITIVE_INFINITY, maxLoadedConversations: 1 };
/** Turns that are read before other work runs: some milliseconds. */
const AT_ONCE = 500;

/** Where one scope's history is cut: each conversation before a turn, and single prompts that go. */
interface Cuts {
  /** By conversation: the first turn that goes. */
  readonly conversations: Map<ConversationId, number>;
  readonly singles: Set<number>;
}

/** What was found of a memory in one scope, and what removes it. */
interface ForgottenInScope extends Cuts {
  readonly scope: Scope;
  readonly labels: ReadonlySet<Label>;
  readonly statements: readonly Statement[];
}

/** See `Store.forget`. */
export async function forget(
  database: Database,
  user: User,
  memoryId: MemoryId,
  { texts, isInSource, at }: Parameters<Store["forget"]>[2],
): Promise<ForgottenMemory> {
  // An unknown user's memory is never sent, either.
  await begin(database, { ...user, agentId: null }, at);
  const {
    files: _,
    words,
    ...receipt
  } = await database.hold(user, async (transaction) => {
    const scopes = await loadScopes(transaction.read, user);
    const gone = scopes.map((one) => forgetIn(one, memoryId));
    const words = [...new Set([...texts, ...gone.flatMap((one) => one.words)].map(withoutCut))].filter(
      (text) => text !== "",
    );
    const found: ForgottenInScope[] = [];
    for (const one of gone) found.push(await cutsIn(transaction.read, one, words, at));
    const receipt = await receiptOf(transaction.read, found);
    const statements = found.flatMap((one) => one.statements);
    await transaction.commit([...statements, await userStatement(transaction, user, memoryId, isInSource)]);
    return { ...receipt, words, files: "erased" as const };
  });
  return { ...receipt, files: await database.erase(words) };
}

/** A memory that was too long is quoted without the mark of its cut. */
function withoutCut(text: string): string {
  return text.endsWith(CUT_MARK) ? text.slice(0, -CUT_MARK.length) : text;
}

/** A scope as it is stored, in memory. */
export interface LoadedState {
  readonly scope: Scope;
  readonly version: ScopeVersion;
  readonly state: ScopeState;
}

/** Every scope of a user that has a state. */
export async function loadScopes(read: ReadRows, user: User): Promise<LoadedState[]> {
  const loaded: LoadedState[] = [];
  for (const { scope, hasState } of await scopeRows(read, user)) {
    if (!hasState) continue;
    const { version, newer } = await readScope(read, scope, null);
    if (version !== null && newer !== null) loaded.push({ scope, version, state: stateOf(newer) });
  }
  return loaded;
}

/** Nothing is counted in it. */
export function stateOf(stored: StoredScope): ScopeState {
  return new ScopeState(stored, () => 0, NO_BOUNDS);
}

interface GoneInScope extends LoadedState {
  readonly labels: ReadonlySet<Label>;
  /** Texts that no other memory of the scope has. */
  readonly words: readonly string[];
}

function forgetIn(loaded: LoadedState, memoryId: MemoryId): GoneInScope {
  const { register } = loaded.state;
  const texts = [...register.textsOf(memoryId)].map(([label, text]) => {
    return { label, words: ownWords(text, register.isDated(memoryId, label)) };
  });
  const labels = register.forget(memoryId);
  loaded.state.forget(labels);
  return { ...loaded, labels, words: texts.filter(({ label }) => labels.has(label)).map(({ words }) => words) };
}

/** Finds the first turn of each conversation that held one of the labels, or says one of the texts, and what cuts the history there. */
async function cutsIn(
  read: ReadRows,
  { scope, version, state, labels }: GoneInScope,
  words: readonly string[],
  at: number,
): Promise<ForgottenInScope> {
  const { scopeId } = version;
  const cuts: Cuts = { conversations: new Map(), singles: new Set() };
  const cut = (conversation: ConversationId | null, turn: number) => {
    const before = conversation === null ? null : (cuts.conversations.get(conversation) ?? turn);
    if (conversation === null || before === null) cuts.singles.add(turn);
    else cuts.conversations.set(conversation, Math.min(before, turn));
  };
  const requested: { turn: Turn; keys: readonly string[] }[] = [];
  const heads = await headsThatSay(read, scopeId, words);
  for await (const { turn, keys } of turnsOf(read, scopeId)) {
    const isGiven = [...labelsIn(turn.injection)].some((label) => labels.has(label));
    if (isGiven || heads.has(turn.head)) cut(turn.conversationId, turn.id);
    else if (turn.requested.some((label) => labels.has(label))) requested.push({ turn, keys });
  }
  for (const { conversation, turn } of await messagesThatSay(read, scopeId, words)) cut(conversation, turn);
  const isLeft = ({ id, conversationId }: Turn) =>
    conversationId === null
      ? !cuts.singles.has(id)
      : id < (cuts.conversations.get(conversationId) ?? Number.POSITIVE_INFINITY);
  const statements = [
    ...requested
      .filter(({ turn }) => isLeft(turn))
      .map(({ turn, keys }) => withoutRequested(scopeId, turn, keys, labels)),
    ...[...cuts.conversations].flatMap(([id, turn]) => cutConversation(scopeId, id, turn, at)),
    ...[...cuts.singles].flatMap((turn) => removeTurn(scopeId, turn)),
    ...unusedMessages(scopeId),
    ...snapshotStatements(version, state.stored()).statements,
  ];
  return { ...cuts, scope, labels, statements };
}

/** A scope's turns, oldest first; other work runs in between. */
export async function* turnsOf(
  read: ReadRows,
  scopeId: number,
): AsyncGenerator<{ readonly turn: Turn; readonly keys: readonly string[] }, void, undefined> {
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

/** How a text may stand in a message's JSON: as a part of a text, and of JSON in a text. */
function formsOf(text: string): readonly string[] {
  const escaped = (one: string) => JSON.stringify(one).slice(1, -1);
  const ascii = (one: string) =>
    one.replace(/[\u007f-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
  // Line breaks of a memory are stored as one kind.
  const whole = [...new Set([text, text.replaceAll("\n", "\r\n")])];
  return whole.flatMap((one) => {
    const once = escaped(one);
    return [...new Set([once, escaped(once), ascii(once), escaped(ascii(once))])];
  });
}

/** Whether a column has a parameter in it, in SQL of both databases. */
const SAYS = "replace(message, $2, '') <> message";

async function messagesThatSay(read: ReadRows, scopeId: number, words: readonly string[]) {
  const text = `select distinct conversation_id as conversation, turn_id as turn from messages
    where scope_id = $1 and ${NO_HEAD} and ${SAYS}`;
  const found = await saying<{ conversation: string; turn: number }>(read, text, scopeId, words);
  return found.map(({ conversation, turn }) => {
    return { conversation: conversation === "" ? null : (conversation as ConversationId), turn };
  });
}

/** Digests of instructions that say one of the texts. */
async function headsThatSay(read: ReadRows, scopeId: number, words: readonly string[]): Promise<ReadonlySet<string>> {
  const text = `select key from messages where scope_id = $1 and conversation_id = '' and ${IS_HEAD} and ${SAYS}`;
  const found = await saying<{ key: string }>(read, text, scopeId, words);
  return new Set(found.map(({ key }) => key.slice("head ".length)));
}

async function saying<R extends object>(read: ReadRows, text: string, scopeId: number, words: readonly string[]) {
  const found: R[][] = [];
  for (const form of new Set(words.flatMap(formsOf))) found.push(await read<R>(text, [scopeId, form]));
  return found.flat();
}

/** A turn that stays, without labels that are gone among those of its retrieved blocks. */
function withoutRequested(scopeId: number, turn: Turn, keys: readonly string[], gone: ReadonlySet<Label>): Statement {
  const left = { ...turn, requested: turn.requested.filter((label) => !gone.has(label)) };
  return {
    text: "update turns set turn = $3 where scope_id = $1 and id = $2",
    values: [scopeId, turn.id, encodeTurn(left, keys)],
  };
}

const LATER_TURNS = "select id from turns where scope_id = $1 and conversation_id = $2 and id >= $3";

/** Ends a conversation before a turn. */
function cutConversation(scopeId: number, id: ConversationId, turn: number, at: number): Statement[] {
  const values = [scopeId, id, turn];
  return [
    { text: `delete from requests where scope_id = $1 and turn_id in (${LATER_TURNS})`, values },
    { text: "delete from messages where scope_id = $1 and conversation_id = $2 and turn_id >= $3", values },
    { text: "delete from turns where scope_id = $1 and conversation_id = $2 and id >= $3", values },
    { text: "update conversations set forgotten_at = $3 where scope_id = $1 and id = $2", values: [scopeId, id, at] },
  ];
}

/** Removes a single prompt; its messages are `unusedMessages`. */
export function removeTurn(scopeId: number, turn: number): Statement[] {
  return (["requests", "turns"] as const).map((table) => deletionOf(table, scopeId, turn));
}

interface RemovedTurn {
  readonly at: number;
  readonly responseId: string | null;
  readonly engineConversation: string | null;
  readonly isPrompt: number;
}

/** What goes, read before it does. */
async function receiptOf(read: ReadRows, found: readonly ForgottenInScope[]): Promise<Omit<ForgottenMemory, "files">> {
  const text = `select t.at, t.response_id as "responseId", t.engine_conversation as "engineConversation",
    case when r.id is null then 0 else 1 end as "isPrompt"
    from turns t left join requests r on r.scope_id = t.scope_id and r.turn_id = t.id where t.scope_id = $1`;
  const rows: RemovedTurn[][] = [];
  for (const { statements: _, scope, conversations, singles } of found) {
    const scopeId = (await scopeRows(read, scope)).find((row) => row.scope.agentId === scope.agentId)?.id ?? 0;
    for (const [id, turn] of conversations)
      rows.push(await read<RemovedTurn>(`${text} and t.conversation_id = $2 and t.id >= $3`, [scopeId, id, turn]));
    for (const turn of singles) rows.push(await read<RemovedTurn>(`${text} and t.id = $2`, [scopeId, turn]));
  }
  const removed = rows.flat();
  const responses = removed.flatMap((one) => [one.responseId, one.engineConversation]).filter((id) => id !== null);
  return {
    labels: [...new Set(found.flatMap(({ labels }) => [...labels]))],
    conversations: found.flatMap(({ scope, conversations }) =>
      [...conversations.keys()].map((conversationId) => ({ agentId: scope.agentId, conversationId })),
    ),
    prompts: removed.filter(({ isPrompt }) => isPrompt === 1).length,
    newestAt: removed.reduce<number | null>((newest, { at }) => Math.max(newest ?? at, at), null),
    responses: [...new Set(responses)],
  };
}

/** Keeps in the user's row that a memory is never sent again, and whether its source has to delete it. */
async function userStatement(
  { read }: UserTransaction,
  user: User,
  memoryId: MemoryId,
  isInSource: boolean,
): Promise<Statement> {
  const [row] = await read<{ forgotten: string | null; pending: string | null }>(
    "select forgotten, pending from scopes where tenant = $1 and user_id = $2 and agent_id = ''",
    [user.tenant, user.userId],
  );
  const forgotten = [...new Set([...forgottenIn(row?.forgotten ?? null), memoryId])];
  const before: PendingSourceDeletions = pendingIn(row?.pending ?? null) ?? { everything: false, memoryIds: [] };
  const pending = isInSource
    ? { ...before, memoryIds: [...new Set([...before.memoryIds, memoryId])] }
    : pendingIn(row?.pending ?? null);
  return {
    text: "update scopes set forgotten = $3, pending = $4 where tenant = $1 and user_id = $2 and agent_id = ''",
    values: [user.tenant, user.userId, JSON.stringify(forgotten), pending === null ? null : JSON.stringify(pending)],
  };
}
