import type { StoredBlock } from "../blocks/context-block.js";
import { NO_ROWS_CHANGED, type RowChanges } from "../text/collections.js";
import { digestOf } from "../text/ids.js";
import { objectsOf, type Table, tableOf } from "../text/tables.js";
import type { ScopeChanges } from "./scope-state.js";

/* A scope's changes as JSON in which lists are tables. */

const OF_VERSIONS = ["found", "ofRun", "origin", "until", "dated"];

/** Omits digests, which are recomputed from texts. */
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

export type ChangesJson = ReturnType<typeof changesToJson>;

export function changesToJson({ counters, bankedTokens, register, ...rows }: ScopeChanges) {
  return {
    counters,
    bankedTokens,
    blocks: blocksTable(register.blocks),
    removedBlocks: register.removedBlocks.length === 0 ? undefined : register.removedBlocks,
    versions: tableOf(register.versions),
    nodes: rowsJson(rows.nodes),
    recent: rowsJson(rows.recent),
    workers: rowsJson(rows.workers),
    clusters: rowsJson(rows.clusters),
    accesses: rowsJson(rows.accesses),
  };
}

export function changesFromJson(json: ChangesJson): ScopeChanges {
  return {
    counters: json.counters,
    bankedTokens: json.bankedTokens,
    register: {
      blocks: blocksOf(json.blocks),
      versions: objectsOf(json.versions, OF_VERSIONS),
      removedBlocks: json.removedBlocks ?? [],
      forgotten: [],
    },
    nodes: rowChanges(json.nodes),
    recent: rowChanges(json.recent),
    workers: rowChanges(json.workers),
    clusters: rowChanges(json.clusters),
    accesses: rowChanges(json.accesses),
  };
}
