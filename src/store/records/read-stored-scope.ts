import { EMPTY_SCOPE, type Label, type MemoryId, type Scope } from "../../core/index.js";
import type { LoadedScope } from "../api/store.js";
import type { DigestSeal } from "../database/digest-seal.js";
import type { Statements } from "../database/statements.js";
import { readAccess, readBlock, readClusterNode, readNode, readOrderingRows } from "./rows.js";
import { keyOf } from "./write-changes.js";

/** See `Store.loadScope`. To be called in a transaction, as it takes several statements. */
export function readStoredScope(statements: Statements, digests: DigestSeal, scope: Scope): LoadedScope {
  const stored = statements.scope.get(keyOf(scope));
  const forgotten = statements.forgotten.all(keyOf(scope)).map((row) => row.memoryId as MemoryId);
  if (stored === undefined) {
    return { scope: { ...EMPTY_SCOPE, register: { ...EMPTY_SCOPE.register, forgotten } }, version: null };
  }
  const { scopeId, version, nextLabel, nextNode, nextTurn, requests, bankedTokens } = stored;
  const versions = statements.versions.all({ scopeId }).map((row) => ({
    memoryId: row.memoryId as MemoryId,
    label: row.label as Label,
    current: row.current === 1,
  }));
  return {
    scope: {
      counters: { nextLabel, nextNode, nextTurn, requests },
      bankedTokens,
      register: { blocks: statements.blocks.all({ scopeId }).map(readBlock), versions, forgotten },
      nodes: statements.nodes.all({ scopeId }).map((row) => readNode(row, digests)),
      ...readOrderingRows(statements.orderingRows.all({ scopeId })),
      published: {
        clusters: () => statements.publishedRows.all({ scopeId, kind: "cluster" }).map(readClusterNode),
        accesses: () => statements.publishedRows.all({ scopeId, kind: "access" }).map(readAccess),
      },
    },
    version: { scopeId, commits: version },
  };
}
