import {
  type AgentId,
  changesFromJson,
  changesToJson,
  type Injection,
  type ScopeChanges,
  type StoredScope,
  scopeFromJson,
  scopeToJson,
  type Turn,
} from "../core/index.js";
import { parsedJson } from "../core/text/json.js";
import { objectsOf, type Table, tableOf } from "../core/text/tables.js";
import { type StoredAnswer, StoreUnavailableError } from "./store.js";

/*
 * The JSON in the tables' text columns. Lists of like objects are written as a `Table`.
 */

/** A scope's whole state, for `scopes.snapshot`. What is forgotten stands in the user's row. */
export function encodeSnapshot(state: StoredScope): string {
  return JSON.stringify(scopeToJson(state));
}

export function decodeSnapshot(text: string): StoredScope {
  return decoded("a scope's snapshot", text, scopeFromJson);
}

/** What a commit changed, for `changes.changes`. */
export function encodeChanges(changes: ScopeChanges): string {
  return JSON.stringify(changesToJson(changes));
}

export function decodeChanges(text: string): ScopeChanges {
  return decoded("a scope's changes", text, changesFromJson);
}

/** The agent that a column names; empty: none. */
export function agentIn(column: string): AgentId | null {
  return column === "" ? null : (column as AgentId);
}

/** A turn's row, as far as it stands in columns of its own. */
export interface TurnColumns extends Pick<Turn, "id" | "conversationId" | "head"> {
  readonly turn: string;
}

/** The fields of a turn that `turns.turn` has; `keys` are those of its messages, where they are not their digests. */
interface TurnJson extends Omit<Turn, "id" | "conversationId" | "head" | "meant" | "injection"> {
  readonly meant?: Turn["meant"];
  readonly blocks?: Table;
  readonly annotations?: Injection["annotations"];
  readonly keys?: readonly string[];
}

/** @param keys of its messages in `messages` */
export function encodeTurn({ id: _i, conversationId: _c, head: _h, ...turn }: Turn, keys: readonly string[]): string {
  const { injection, meant, ...rest } = turn;
  const areSame = (list: readonly string[]) => list.every((one, at) => one === turn.given[at]);
  return JSON.stringify({
    ...rest,
    meant: areSame(meant) ? undefined : meant,
    keys: areSame(keys) ? undefined : keys,
    blocks: tableOf(injection.blocks),
    annotations: injection.annotations.length === 0 ? undefined : injection.annotations,
  });
}

export function decodeTurn({ turn, ...row }: TurnColumns): { readonly turn: Turn; readonly keys: readonly string[] } {
  return decoded("a turn", turn, ({ blocks, annotations = [], keys, meant, ...rest }: TurnJson) => {
    const injection: Injection = { blocks: objectsOf(blocks, ["isLabelled"]), annotations };
    return { turn: { ...rest, ...row, meant: meant ?? rest.given, injection }, keys: keys ?? rest.given };
  });
}

/** An answer without its messages, for `requests.answer`. */
export function encodeAnswer({ memories, ...answer }: StoredAnswer): string {
  return JSON.stringify({ ...answer, memories: tableOf(memories) });
}

type AnswerJson = Omit<StoredAnswer, "memories"> & { readonly memories?: Table };

export function decodeAnswer(text: string): StoredAnswer {
  return decoded("an answer", text, ({ memories, ...answer }: AnswerJson) => {
    return { ...answer, memories: objectsOf(memories) };
  });
}

/** Parsed JSON of a column that was written as such. */
export function decodedJson<T>(what: string, text: string): T {
  return decoded(what, text, (json: T) => json);
}

function decoded<Json, T>(what: string, text: string, decode: (json: Json) => T): T {
  const json = parsedJson(text);
  try {
    if (json === undefined) throw new Error("it is no JSON");
    return decode(json as Json);
  } catch (cause) {
    throw new StoreUnavailableError("damaged", { cause: new Error(`${what} is not what was written`, { cause }) });
  }
}
