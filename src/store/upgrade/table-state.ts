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
  type StoredBlock,
  type StoredScope,
  type TurnId,
  type WorkerRow,
} from "../../core/index.js";
import type { LoadedScope } from "../api/store.js";
import type { DigestSeal } from "../database/digest-seal.js";
import { keyOf } from "../database/scope-key.js";
import { parsedBody } from "../journal/damaged-record.js";
import { readLabels } from "./table-rows.js";
import type { BlockRow, NodeRow, OrderingRow, StateStatements, VersionRow } from "./table-statements.js";

/** A scope's state, and its version in the tables. To be called in a transaction, as it takes several statements. */
export function readTableState(
  statements: StateStatements,
  digests: DigestSeal,
  scope: Scope,
): Pick<LoadedScope, "scope" | "version"> {
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
    workers: of("worker").map(
      ({ id, row }) => ({ id, ...parsedBody("a worker", row, worker) }) as unknown as WorkerRow,
    ),
    recent: of("recent").map(({ id, row }) => ({ turn: id as TurnId, labels: readLabels(row) })),
  };
}

function readClusterNode({ id, row }: Pick<OrderingRow, "id" | "row">): ClusterNode {
  return { id, ...parsedBody("a node of the cluster tree", row, clusterNode) } as unknown as ClusterNode;
}

function readAccess({ id, row }: Pick<OrderingRow, "id" | "row">): Access {
  return { turn: id, ...parsedBody("an access", row, access) } as unknown as Access;
}
