import { z } from "zod";
import {
  type Access,
  type ClusterNode,
  type Digest,
  digestOf,
  EMPTY_SCOPE,
  earlierForm,
  type IndexNode,
  type Label,
  type MemoryId,
  type MemoryVersion,
  type NodeId,
  type RenderedWords,
  type Scope,
  type ScopeChanges,
  type StoredBlock,
  type StoredScope,
  type TurnId,
  type WorkerRow,
  withEarlierForm,
} from "../../core/index.js";
import type { LoadedScope } from "../api/store.js";
import type { DigestSeal } from "../database/digest-seal.js";
import { keyOf, type ScopeKey } from "../database/scope-key.js";
import type { BlockRow, NodeRow, OrderingRow, Statements, VersionRow } from "../database/statements.js";
import { readLabels } from "./rows.js";

export { keyOf, readScope } from "../database/scope-key.js";

/** Writes a scope's changes. Runs inside the caller's transaction. */
export function writeChanges(
  statements: Statements,
  digests: DigestSeal,
  key: ScopeKey,
  scopeId: number,
  changes: ScopeChanges,
): void {
  const { removedBlocks } = changes.register;
  for (const label of removedBlocks) statements.removeBlock.run({ scopeId, label });
  if (removedBlocks.length > 0)
    statements.removeVersionsOf.run({ scopeId, labels: JSON.stringify([...removedBlocks]) });
  for (const memoryId of changes.register.forgotten) {
    statements.removeVersionsBy.run({ scopeId, memoryId });
    statements.keepForgotten.run({ ...key, memoryId });
  }
  statements.keepBlock.runAll(
    changes.register.blocks.map(({ label, text, tokens, supersededBy }) => ({
      scopeId,
      label,
      text,
      tokens,
      supersededBy,
    })),
  );
  statements.keepVersion.runAll(
    changes.register.versions.map(({ memoryId, label, current, rendered }) => {
      const { template = null, start: ownStart = null, length: ownLength = null } = rendered ?? {};
      return { scopeId, memoryId, label, current: current ? 1 : 0, template, ownStart, ownLength };
    }),
  );
  for (const id of changes.index.removed) statements.removeNode.run({ scopeId, id });
  statements.keepNode.runAll(
    changes.index.upserted.map((node) => ({
      scopeId,
      ...node,
      ...anchorRow(node.anchor, digests),
      run: JSON.stringify(node.run),
    })),
  );
  const { recent, workers, published } = changes;
  const drop = (kind: OrderingRow["kind"], ids: readonly number[]) => {
    for (const id of ids) statements.removeOrderingRow.run({ scopeId, kind, id });
  };
  const keep = (kind: OrderingRow["kind"], id: number, row: unknown) =>
    statements.keepOrderingRow.run({ scopeId, kind, id, row: JSON.stringify(row) });
  drop("recent", recent.removed);
  for (const { turn, labels } of recent.upserted) keep("recent", turn, labels);
  drop("worker", workers.removed);
  for (const { id, ...worker } of workers.upserted) keep("worker", id, worker);
  if (published === null) return;
  const { accesses, clusters } = published;
  drop("access", accesses.removed);
  for (const { turn, labels, promoted } of accesses.upserted) keep("access", turn, { labels, promoted });
  drop("cluster", clusters.removed);
  for (const { id, ...node } of clusters.upserted) keep("cluster", id, node);
}

/** See `Store.loadScope`. To be called in a transaction, as it takes several statements. */
export function readStoredScope(
  statements: Statements,
  digests: DigestSeal,
  scope: Scope,
): Omit<LoadedScope, "deletions"> {
  const stored = statements.scope.get(keyOf(scope));
  const forgotten = statements.forgotten.all(keyOf(scope)).map((row) => row.memoryId as MemoryId);
  if (stored === undefined) {
    return { scope: { ...EMPTY_SCOPE, register: { ...EMPTY_SCOPE.register, forgotten } }, version: null };
  }
  const { scopeId, version, nextLabel, nextNode, nextTurn, requests, bankedTokens } = stored;
  const versions = statements.versions.all({ scopeId }).map(readVersion);
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

const labels = z.array(z.int());

function readBlock(row: BlockRow): StoredBlock {
  return {
    label: row.label as Label,
    text: row.text,
    textDigest: digestOf(row.text),
    tokens: row.tokens,
    supersededBy: row.supersededBy as Label | null,
  };
}

function readVersion(row: VersionRow): MemoryVersion {
  const rendered = readRendered(row);
  return {
    memoryId: row.memoryId as MemoryId,
    label: row.label as Label,
    current: row.current === 1,
    ...(rendered === undefined ? {} : { rendered }),
  };
}

/** Where a version's own words stand in its block's text; undefined: they are all of it. */
export function readRendered(row: Pick<VersionRow, "template" | "ownStart" | "ownLength">): RenderedWords | undefined {
  const { template, ownStart, ownLength } = row;
  if (template === null || ownStart === null || ownLength === null) return undefined;
  return { template: template as Digest, start: ownStart, length: ownLength };
}

function anchorRow(anchor: Digest | null, digests: DigestSeal): Pick<NodeRow, "anchor" | "bracketed"> {
  if (anchor === null) return { anchor, bracketed: 0 };
  const before = withEarlierForm(anchor);
  return before === null
    ? { anchor: digests.seal(anchor), bracketed: 0 }
    : { anchor: digests.seal(before), bracketed: 1 };
}

function readAnchor({ anchor, bracketed }: Pick<NodeRow, "anchor" | "bracketed">, digests: DigestSeal): Digest | null {
  if (anchor === null) return null;
  const opened = digests.open(anchor);
  return bracketed === 1 ? earlierForm(opened) : opened;
}

function readNode(row: NodeRow, digests: DigestSeal): IndexNode {
  return {
    id: row.id as NodeId,
    parent: row.parent as NodeId | null,
    anchor: readAnchor(row, digests),
    run: readLabels(row.run),
    position: row.position,
    nextPosition: row.nextPosition,
    uses: row.uses,
    live: row.live,
    lastUsed: row.lastUsed,
    usedAt: row.usedAt,
    tokens: row.tokens,
  };
}

const access = z.object({ labels, promoted: z.int() });
const worker = z.object({ name: z.string(), labels });
const clusterNode = z.object({
  parent: z.int().nullable(),
  blocks: labels,
  position: z.int(),
  nextPosition: z.int(),
  distance: z.number(),
  uses: z.int(),
  lastUsed: z.int(),
  tickets: labels,
});

function readOrderingRows(rows: readonly OrderingRow[]): Pick<StoredScope, "recent" | "workers"> {
  const of = (kind: OrderingRow["kind"]) => rows.filter((row) => row.kind === kind);
  return {
    workers: of("worker").map(({ id, row }) => ({ id, ...worker.parse(JSON.parse(row)) }) as unknown as WorkerRow),
    recent: of("recent").map(({ id, row }) => ({ turn: id as TurnId, labels: readLabels(row) })),
  };
}

function readClusterNode({ id, row }: Pick<OrderingRow, "id" | "row">): ClusterNode {
  return { id, ...clusterNode.parse(JSON.parse(row)) } as unknown as ClusterNode;
}

function readAccess({ id, row }: Pick<OrderingRow, "id" | "row">): Access {
  return { turn: id, ...access.parse(JSON.parse(row)) } as unknown as Access;
}
