import type { Injection } from "../prompt/section.js";
import { digestOf } from "../text/ids.js";
import { type ChatMessage, messageDigest } from "../text/message.js";
import { objectsOf, type Table, tableOf } from "../text/tables.js";
import type { Turn } from "./conversation.js";

export type NamedTurn = Pick<Turn, "id" | "conversationId" | "head">;

/** With the keys by which its messages are stored. */
export interface KeyedTurn {
  readonly turn: Turn;
  readonly keys: readonly string[];
}

/** Absent `meant` and `keys` equal the digests of its messages. */
export interface TurnJson extends Omit<Turn, keyof NamedTurn | "meant" | "injection"> {
  readonly meant?: Turn["meant"] | undefined;
  readonly blocks?: Table | undefined;
  readonly annotations?: Injection["annotations"] | undefined;
  readonly keys?: readonly string[] | undefined;
}

export function turnToJson(turn: Turn, keys: readonly string[]): TurnJson {
  const { injection, meant } = turn;
  const areSame = (list: readonly string[]) => list.every((one, at) => one === turn.given[at]);
  // Field by field: V8 takes some 10 µs to leave some out of so long an object.
  return {
    parent: turn.parent,
    given: turn.given,
    placement: turn.placement,
    retention: turn.retention,
    freshStart: turn.freshStart,
    keptTurns: turn.keptTurns,
    requested: turn.requested,
    prompt: turn.prompt,
    anchor: turn.anchor,
    promptTokens: turn.promptTokens,
    computedTokens: turn.computedTokens,
    epoch: turn.epoch,
    behind: turn.behind,
    meant: areSame(meant) ? undefined : meant,
    keys: areSame(keys) ? undefined : keys,
    blocks: tableOf(injection.blocks),
    annotations: injection.annotations.length === 0 ? undefined : injection.annotations,
  };
}

export function turnFromJson(named: NamedTurn, json: TurnJson): KeyedTurn {
  const { blocks, annotations = [], keys, meant, ...rest } = json;
  const injection: Injection = { blocks: objectsOf(blocks, ["isLabelled"]), annotations };
  return { turn: { ...rest, ...named, meant: meant ?? rest.given, injection }, keys: keys ?? rest.given };
}

/** A message's store key: equal keys, equal JSON. A digest of its JSON, unless it is plain: digests ignore the order of fields. */
export function messageKey(message: ChatMessage, at: number, { id, conversationId }: Turn): string {
  if (conversationId === null) return `${id}/${at}`;
  const [first, second, ...others] = Object.keys(message);
  const isPlain = first === "role" && second === "content" && others.length === 0;
  return isPlain && typeof message.content === "string" ? messageDigest(message) : digestOf(JSON.stringify(message));
}
