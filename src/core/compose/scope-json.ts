import type { StoredBlock } from "../blocks/context-block.js";
import { NO_ROWS_CHANGED, type RowChanges } from "../text/collections.js";
import { objectsOf, type Table, tableOf } from "../text/tables.js";
import type { ScopeChanges } from "./scope-state.js";

/* A scope's changes as JSON in which lists are tables. */

const OF_VERSIONS = ["found", "ofRun", "origin", "until", "dated"];

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

export function changesToJson(changes: ScopeChanges) {
  const { register } = changes;
  return {
    counters: changes.counters,
    bankedTokens: changes.bankedTokens,
    blocks: tableOf(register.blocks),
    removedBlocks: register.removedBlocks.length === 0 ? undefined : register.removedBlocks,
    versions: tableOf(register.versions),
    nodes: rowsJson(changes.nodes),
    recent: rowsJson(changes.recent),
    workers: rowsJson(changes.workers),
    clusters: rowsJson(changes.clusters),
    accesses: rowsJson(changes.accesses),
  };
}

export function changesFromJson(json: ChangesJson): ScopeChanges {
  return {
    counters: json.counters,
    bankedTokens: json.bankedTokens,
    register: {
      blocks: objectsOf<StoredBlock>(json.blocks),
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
