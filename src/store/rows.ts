import {
  type AgentId,
  digestOf,
  type Injection,
  NO_ROWS_CHANGED,
  type RowChanges,
  type ScopeChanges,
  type StoredBlock,
  type StoredScope,
  type Turn,
} from "../core/index.js";
import { parsedJson } from "../core/text/json.js";
import { objectsOf, type Table, tableOf } from "../core/text/tables.js";
import { type StoredAnswer, StoreUnavailableError } from "./store.js";

/*
 * The JSON in the tables' text columns. Lists of like objects are written as a `Table`.
 */

const OF_VERSIONS = ["found", "ofRun", "until", "dated"];

/** The digest of a block's text is made again of its text. */
function blocksTable(blocks: readonly StoredBlock[]): Table | undefined {
  return tableOf(blocks.map(({ textDigest: _made, ...block }) => block));
}

function blocksOf(table: Table | undefined): StoredBlock[] {
  return objectsOf<Omit<StoredBlock, "textDigest">>(table).map((block) => ({
    ...block,
    textDigest: digestOf(block.text),
  }));
}

interface RowsJson {
  readonly written: Table | undefined;
  readonly removed: readonly number[] | undefined;
}

function rowsJson<Key extends number>({ upserted, removed }: RowChanges<Key, object>): RowsJson | undefined {
  if (upserted.length === 0 && removed.length === 0) return undefined;
  return { written: tableOf(upserted), removed: removed.length === 0 ? undefined : removed };
}

function rowChanges<Key extends number, Row>(json: RowsJson | undefined): RowChanges<Key, Row> {
  if (json === undefined) return NO_ROWS_CHANGED;
  return { upserted: objectsOf(json.written), removed: (json.removed ?? []) as readonly Key[] };
}

type SnapshotJson = ReturnType<typeof snapshotJson>;

function snapshotJson({ counters, bankedTokens, register, nodes, recent, workers, published }: StoredScope) {
  return {
    counters,
    bankedTokens,
    blocks: blocksTable(register.blocks),
    versions: tableOf(register.versions),
    nodes: tableOf(nodes),
    recent: tableOf(recent),
    workers: tableOf(workers),
    clusters: tableOf(published.clusters),
    accesses: tableOf(published.accesses),
  };
}

/** A scope's whole state, for `scopes.snapshot`. What is forgotten stands in the user's row. */
export function encodeSnapshot(state: StoredScope): string {
  return JSON.stringify(snapshotJson(state));
}

export function decodeSnapshot(text: string): StoredScope {
  return decoded("a scope's snapshot", text, (json: SnapshotJson) => ({
    counters: { ...json.counters },
    bankedTokens: json.bankedTokens,
    register: { blocks: blocksOf(json.blocks), versions: objectsOf(json.versions, OF_VERSIONS), forgotten: [] },
    nodes: objectsOf(json.nodes),
    recent: objectsOf(json.recent),
    workers: objectsOf(json.workers),
    published: { clusters: objectsOf(json.clusters), accesses: objectsOf(json.accesses) },
  }));
}

type ChangesJson = ReturnType<typeof changesJson>;

function changesJson({ counters, bankedTokens, register, index, recent, workers, published }: ScopeChanges) {
  return {
    counters,
    bankedTokens,
    blocks: blocksTable(register.blocks),
    removedBlocks: register.removedBlocks.length === 0 ? undefined : register.removedBlocks,
    versions: tableOf(register.versions),
    nodes: rowsJson(index),
    recent: rowsJson(recent),
    workers: rowsJson(workers),
    /** Absent: published policies are not used. */
    published: published
      ? { clusters: rowsJson(published.clusters), accesses: rowsJson(published.accesses) }
      : undefined,
  };
}

/** What a commit changed, for `changes.changes`. */
export function encodeChanges(changes: ScopeChanges): string {
  return JSON.stringify(changesJson(changes));
}

export function decodeChanges(text: string): ScopeChanges {
  return decoded("a scope's changes", text, (json: ChangesJson) => ({
    counters: json.counters,
    bankedTokens: json.bankedTokens,
    register: {
      blocks: blocksOf(json.blocks),
      versions: objectsOf(json.versions, OF_VERSIONS),
      removedBlocks: json.removedBlocks ?? [],
      forgotten: [],
    },
    index: rowChanges(json.nodes),
    recent: rowChanges(json.recent),
    workers: rowChanges(json.workers),
    published:
      json.published === undefined
        ? null
        : { clusters: rowChanges(json.published.clusters), accesses: rowChanges(json.published.accesses) },
  }));
}

/** The agent that a column names; empty: none. */
export function agentIn(column: string): AgentId | null {
  return column === "" ? null : (column as AgentId);
}

/** A turn's row, as far as it stands in columns of its own. */
export interface TurnColumns {
  readonly id: number;
  readonly conversationId: string | null;
  readonly head: string;
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

export function decodeTurn(row: TurnColumns): { readonly turn: Turn; readonly keys: readonly string[] } {
  return decoded("a turn", row.turn, ({ blocks, annotations = [], keys, meant, ...rest }: TurnJson) => {
    const named = { id: row.id, conversationId: row.conversationId, head: row.head } as Pick<
      Turn,
      "id" | "conversationId" | "head"
    >;
    const injection: Injection = { blocks: objectsOf(blocks, ["isLabelled"]), annotations };
    return { turn: { ...rest, ...named, meant: meant ?? rest.given, injection }, keys: keys ?? rest.given };
  });
}

/** An answer without its messages, for `requests.answer`. */
export function encodeAnswer({ memories, ...answer }: StoredAnswer): string {
  return JSON.stringify({ ...answer, memories: tableOf(memories) });
}

export function decodeAnswer(text: string): StoredAnswer {
  return decoded(
    "an answer",
    text,
    ({ memories, ...answer }: Omit<StoredAnswer, "memories"> & { memories?: Table }) => ({
      ...answer,
      memories: objectsOf(memories),
    }),
  );
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
