import {
  type AgentId,
  type KeyedTurn,
  type NamedTurn,
  type Scope,
  type Turn,
  type TurnJson,
  turnFromJson,
  turnToJson,
} from "../core/index.js";
import { parsedJson } from "../core/text/json.js";
import { objectsOf, type Table, tableOf } from "../core/text/tables.js";
import { type StoredAnswer, StoreUnavailableError } from "./store.js";

/** A text that both databases can store outside of JSON. */
export function storable(text: string): string {
  return text.replaceAll("\0", "\u{fffd}").toWellFormed();
}

/** Empty: none. */
export function agentIn(column: string): AgentId | null {
  return column === "" ? null : (column as AgentId);
}

/** A scope's columns. */
export function scopeName({ tenant, userId, agentId }: Scope): readonly string[] {
  return [tenant, userId, agentId ?? ""];
}

/** A turn's row, with the rest of the turn as JSON. */
export interface TurnColumns extends NamedTurn {
  readonly turn: string;
}

/** @param keys of its messages in `messages` */
export function encodeTurn(turn: Turn, keys: readonly string[]): string {
  return JSON.stringify(turnToJson(turn, keys));
}

export function decodeTurn({ turn, ...row }: TurnColumns): KeyedTurn {
  return decoded("a turn", turn, (json: TurnJson) => turnFromJson(row, json));
}

/** An answer without its messages, for `requests.answer`. */
export function encodeAnswer({ plan, warnings, grounds, worker, memories }: StoredAnswer): string {
  return JSON.stringify({ plan, warnings, grounds, worker, memories: tableOf(memories) });
}

type AnswerJson = Omit<StoredAnswer, "memories"> & { readonly memories?: Table };

export function decodeAnswer(text: string): StoredAnswer {
  return decoded("an answer", text, ({ memories, ...answer }: AnswerJson) => {
    return { ...answer, memories: objectsOf(memories) };
  });
}

/** Decodes a column's JSON. */
export function decoded<Json, T>(what: string, text: string, decode: (json: Json) => T): T {
  const json = parsedJson(text);
  try {
    if (json === undefined) throw new Error("it is no JSON");
    return decode(json as Json);
  } catch (cause) {
    throw new StoreUnavailableError("damaged", { cause: new Error(`${what} is not what was written`, { cause }) });
  }
}

/** Parsed JSON of a column that was written as such. */
export function decodedJson<T>(what: string, text: string): T {
  return decoded(what, text, (json: T) => json);
}
