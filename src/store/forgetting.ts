import {
  type ConversationId,
  type Label,
  labelsIn,
  type MemoryId,
  ownWords,
  type Turn,
  type TurnId,
  withoutCut,
} from "../core/index.js";
import { append } from "../core/text/collections.js";
import { formsInJson } from "../core/text/json.js";
import { type Cuts, cut, goneTurns, isLeft, type LoadedState, loadScopes, removeTurns, turnsOf } from "./cuts.js";
import { type Database, type ReadRows, type Statement, sql } from "./database.js";
import { encodeTurn } from "./rows.js";
import { begin, snapshotStatements, userRow } from "./scopes.js";
import type { ForgottenMemory, PendingSourceDeletions, Store, User } from "./store.js";
import { HEAD } from "./turns.js";

/** See `Store.forget`. */
export async function forget(
  database: Database,
  user: User,
  memoryId: MemoryId,
  { texts, isInSource, at }: Parameters<Store["forget"]>[2],
): Promise<ForgottenMemory> {
  // An unknown user's memory must never be sent either.
  await begin(database, { ...user, agentId: null }, at);
  const { receipt, words } = await database.hold(user, async (transaction) => {
    const { read } = transaction;
    const gone = (await loadScopes(read, user)).map((loaded) => forgetIn(loaded, memoryId));
    const all = [...texts, ...gone.flatMap((one) => one.words)].map(withoutCut);
    const words = [...new Set(all)].filter((text) => text !== "");
    const found: ForgottenInScope[] = [];
    for (const one of gone) found.push(await cutsIn(read, one, words, at));
    const removed = await receiptOf(read, found);
    const known = await userRow(read, user);
    // Prompts that an earlier call removed, also with another memory, may still be in an engine.
    const removedBefore = removed.labels.length > 0 ? at : (known?.forgotten.get(memoryId) ?? null);
    const receipt = { ...removed, newestAt: removed.newestAt ?? removedBefore };
    const forgotten = new Map(known?.forgotten).set(memoryId, receipt.newestAt);
    const pending = isInSource ? pendingWith(known?.pending ?? null, memoryId) : (known?.pending ?? null);
    const statements = found.flatMap((one) => one.statements);
    await transaction.commit([...statements, userStatement(user, forgotten, pending)]);
    return { receipt, words };
  });
  return { ...receipt, files: await database.erase(words) };
}

interface GoneInScope extends LoadedState {
  readonly labels: ReadonlySet<Label>;
  /** Texts that no other memory of the scope has. */
  readonly words: readonly string[];
  /** The other memories of the scope that have one of its texts. */
  readonly keptBy: readonly MemoryId[];
}

function forgetIn(loaded: LoadedState, memoryId: MemoryId): GoneInScope {
  const { register } = loaded.state;
  const texts = [...register.textsOf(memoryId)].map(([label, text]) => {
    return { label, words: ownWords(text, register.memories.isDated(memoryId, label)) };
  });
  const labels = register.forget(memoryId);
  loaded.state.forget(labels);
  return {
    ...loaded,
    labels,
    words: texts.filter(({ label }) => labels.has(label)).map(({ words }) => words),
    keptBy: texts.flatMap(({ label }) => (labels.has(label) ? [] : register.memories.holdersOf(label))),
  };
}

/** Where one scope's histories end, and why. */
interface ForgottenInScope extends GoneInScope {
  readonly cuts: Cuts;
  readonly statements: readonly Statement[];
}

/** Finds the first turn of each conversation that had one of the labels or contains one of the texts, and what cuts the history there. */
async function cutsIn(read: ReadRows, gone: GoneInScope, words: readonly string[], at: number) {
  const { version, state, labels } = gone;
  const { scopeId } = version;
  const cuts: Cuts = new Map();
  const heads = new Set<string>();
  for (const { key, conversation, turn } of await messagesThatSay(read, scopeId, words)) {
    if (key.startsWith(HEAD)) heads.add(key.slice(HEAD.length));
    else cut(cuts, conversation === "" ? null : conversation, turn);
  }
  const requested: { turn: Turn; keys: readonly string[] }[] = [];
  for await (const { turn, keys } of turnsOf(read, scopeId)) {
    const isGiven = [...labelsIn(turn.injection)].some((label) => labels.has(label));
    if (isGiven || heads.has(turn.head) || isSaidIn(turn, words)) cut(cuts, turn.conversationId, turn.id);
    else if (turn.requested.some((label) => labels.has(label))) requested.push({ turn, keys });
  }
  const ended = "update conversations set forgotten_at = $3 where scope_id = $1 and id = $2";
  const sayingWrites = "delete from writes where scope_id = $1 and replace(addition, $2, '') <> addition";
  const statements = [
    ...requested
      .filter(({ turn }) => isLeft(cuts, turn))
      .map(({ turn, keys }) => withoutRequested(scopeId, turn, keys, labels)),
    ...forms(words).map((form) => sql(sayingWrites, scopeId, form)),
    ...removeTurns(scopeId, cuts),
    ...conversationsIn(cuts).map((id) => sql(ended, scopeId, id, at)),
    ...forms(words).map((form) => sql(SAYS_IN_TOOLS, scopeId, form)),
    ...snapshotStatements(version, state.stored()).statements,
  ];
  return { ...gone, cuts, statements };
}

/** Whether the instructions that a turn was given say one of the texts. */
function isSaidIn({ injection }: Turn, words: readonly string[]): boolean {
  return injection.annotations.some((annotation) => {
    if (annotation.kind !== "instructions") return false;
    const said = [...annotation.lines, ...annotation.removed].join("\n");
    return words.some((text) => said.includes(text));
  });
}

function conversationsIn(cuts: Cuts): ConversationId[] {
  return [...cuts.keys()].filter((key) => typeof key !== "number");
}

interface SayingRow {
  readonly key: string;
  /** Empty: none. */
  readonly conversation: ConversationId | "";
  readonly turn: TurnId;
}

/** Messages and instructions that contain one of the texts. */
async function messagesThatSay(read: ReadRows, scopeId: number, words: readonly string[]): Promise<SayingRow[]> {
  const text = `select key, conversation_id as conversation, turn_id as turn from messages
    where scope_id = $1 and replace(message, $2, '') <> message`;
  const found: SayingRow[][] = [];
  for (const form of forms(words)) found.push(await read<SayingRow>(text, [scopeId, form]));
  return found.flat();
}

/** Tools may quote a memory; without them the next prompt's are sent as they come. */
const SAYS_IN_TOOLS = `update conversations set sent_after = null
  where scope_id = $1 and sent_after is not null and replace(sent_after, $2, '') <> sent_after`;

function forms(words: readonly string[]): readonly string[] {
  return [...new Set(words.flatMap(formsInJson))];
}

/** A remaining turn, without the forgotten labels among its retrieved blocks. */
function withoutRequested(scopeId: number, turn: Turn, keys: readonly string[], gone: ReadonlySet<Label>): Statement {
  const left = { ...turn, requested: turn.requested.filter((label) => !gone.has(label)) };
  const text = "update turns set turn = $3 where scope_id = $1 and id = $2";
  return sql(text, scopeId, turn.id, encodeTurn(left, keys));
}

interface RemovedTurn {
  readonly at: number;
  readonly responseId: string | null;
  readonly engineConversation: string | null;
  readonly isPrompt: number;
}

/** Reads what will be removed. */
async function receiptOf(read: ReadRows, found: readonly ForgottenInScope[]): Promise<Omit<ForgottenMemory, "files">> {
  const removed: RemovedTurn[] = [];
  for (const { version, cuts } of found)
    for (const [key, first] of cuts) {
      const { where, values } = goneTurns(key, first);
      const text = `select t.at, t.response_id as "responseId", t.engine_conversation as "engineConversation",
        case when r.id is null then 0 else 1 end as "isPrompt"
        from turns t left join requests r on r.scope_id = t.scope_id and r.turn_id = t.id where t.scope_id = $1 and ${where}`;
      append(removed, await read<RemovedTurn>(text, [version.scopeId, ...values]));
    }
  const responses = removed.flatMap((one) => [one.responseId, one.engineConversation]).filter((id) => id !== null);
  return {
    labels: [...new Set(found.flatMap(({ labels }) => [...labels]))],
    keptBy: [...new Set(found.flatMap(({ keptBy }) => keptBy))],
    conversations: found.flatMap(({ agentId, cuts }) =>
      conversationsIn(cuts).map((conversationId) => ({ agentId, conversationId })),
    ),
    prompts: removed.filter(({ isPrompt }) => isPrompt === 1).length,
    newestAt: removed.reduce<number | null>((newest, { at }) => Math.max(newest ?? at, at), null),
    responses: [...new Set(responses)],
  };
}

function pendingWith(before: PendingSourceDeletions | null, memoryId: MemoryId): PendingSourceDeletions {
  const { everything = false, memoryIds = [] } = before ?? {};
  return { everything, memoryIds: [...new Set([...memoryIds, memoryId])] };
}

/** Records in the user's row which memories are never sent again, and what their source must delete. */
function userStatement(
  { tenant, userId }: User,
  forgotten: ReadonlyMap<MemoryId, number | null>,
  pending: PendingSourceDeletions | null,
): Statement {
  const text = "update scopes set forgotten = $3, pending = $4 where tenant = $1 and user_id = $2 and agent_id = ''";
  return sql(text, tenant, userId, JSON.stringify([...forgotten]), pending && JSON.stringify(pending));
}
