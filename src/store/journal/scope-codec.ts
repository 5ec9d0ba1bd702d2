import {
  type Access,
  type ClusterNode,
  type Digest,
  digestOf,
  type IndexNode,
  type Label,
  type MemoryId,
  type MemoryVersion,
  NO_ROWS_CHANGED,
  type NodeId,
  type RecentRetrieval,
  type RowChanges,
  type ScopeChanges,
  type ScopeCounters,
  type StoredBlock,
  type StoredScope,
  type TurnId,
  type WorkerRow,
} from "../../core/index.js";
import type { DigestSeal, SealedDigest } from "../database/digest-seal.js";
import { FORMAT, unpackedBody } from "./said-codec.js";

/** Label, text, tokens; where it was superseded, the label of the block that superseded it. */
type PackedBlock = readonly [number, string, number, number?];

/**
 * Memory, label, whether it is current; where it is known when the memory ceases to hold, that time; where the text has a date before the
 * memory's own words, 1.
 */
type PackedVersion = readonly [string, number, CurrentBits, (number | null)?, 1?];
/** 0: not current. Else 1, and 1 more where a search found the memory, and 2 more where it belongs to a run. */
type CurrentBits = 0 | 1 | 2 | 3 | 4;

/**
 * Id, parent, anchor (0: none), run, position, next position, uses, live, last use on the logical clock, milliseconds before the latest use
 * of the list, tokens.
 */
type PackedNode = readonly [
  ...[number, number | null, 0 | SealedDigest, readonly Label[], number, number],
  ...[number, number, number, number, number],
];
/** The latest use among some nodes in milliseconds since the epoch, and the nodes: times from the latest have fewer digits. */
type PackedNodes = readonly [number, readonly PackedNode[]];

type Packed = readonly unknown[];

/** The fields of a row in the order in which they are stored. The values of `spread`, a row's second field, follow the others there. */
function fieldsOf<Row extends object>(names: readonly (keyof Row)[], spread?: keyof Row) {
  return {
    pack(row: Row): Packed {
      const fields = names.map((name) => row[name]);
      return spread === undefined ? fields : [...fields, ...(row[spread] as Packed)];
    },
    unpack(packed: Packed): Row {
      const fields = names.map((name, at) => [name, packed[at]]);
      if (spread !== undefined) fields.splice(1, 0, [spread, packed.slice(names.length)]);
      return Object.fromEntries(fields) as unknown as Row;
    },
  };
}

const COUNTERS = fieldsOf<ScopeCounters>(["nextLabel", "nextNode", "nextTurn", "requests"]);
const RECENT = fieldsOf<RecentRetrieval>(["turn"], "labels");
const WORKER = fieldsOf<WorkerRow>(["id", "name", "labels"]);
const CLUSTER = fieldsOf<ClusterNode>([
  ...(["id", "parent", "blocks", "position", "nextPosition"] as const),
  ...(["distance", "uses", "lastUsed", "tickets"] as const),
]);
const ACCESS = fieldsOf<Access>(["turn", "promoted"], "labels");

/** Of one kind, what was removed, then what was written. */
type PackedRows = readonly [readonly number[], readonly Packed[]];

function packRows<Key extends number, Row>(of: { pack(row: Row): Packed }, changes: RowChanges<Key, Row>): PackedRows {
  return [changes.removed, changes.upserted.map(of.pack)];
}

function unpackRows<Key extends number, Row>(
  of: { unpack(packed: Packed): Row },
  [removed, written]: PackedRows,
): RowChanges<Key, Row> {
  return { upserted: written.map(of.unpack), removed: removed as readonly Key[] };
}

type PackedState = readonly [
  ...[typeof FORMAT, Packed, number],
  readonly [readonly PackedBlock[], readonly PackedVersion[], readonly string[]],
  PackedNodes,
  ...[readonly Packed[], readonly Packed[]],
  readonly [readonly Packed[], readonly Packed[]],
];

/** Of each kind what was removed, then what was written. 0: nothing, or (published) not used. */
type PackedChanges = readonly [
  ...[typeof FORMAT, Packed, number],
  readonly [readonly number[], readonly string[], readonly PackedBlock[], readonly PackedVersion[]],
  readonly [readonly number[], PackedNodes],
  ...[PackedRows, 0 | PackedRows],
  0 | readonly [...PackedRows, ...PackedRows],
];

/**
 * A scope's state and its changes as text. Digests of what a user wrote are sealed; a block's is computed again from its text. Text that
 * this did not write is a `DamagedRecordError`.
 */
export class ScopeCodec {
  constructor(private readonly digests: DigestSeal) {}

  encodeState({ counters, bankedTokens, register, nodes, recent, workers, published }: StoredScope): string {
    const packed: PackedState = [
      FORMAT,
      COUNTERS.pack(counters),
      bankedTokens,
      [register.blocks.map(packBlock), register.versions.map(packVersion), [...register.forgotten]],
      packNodes(nodes, this.digests),
      recent.map(RECENT.pack),
      workers.map(WORKER.pack),
      [published.clusters.map(CLUSTER.pack), published.accesses.map(ACCESS.pack)],
    ];
    return JSON.stringify(packed);
  }

  decodeState(text: string): StoredScope {
    return unpackedBody("a scope's state", text, (packed: PackedState) => this.#unpackState(packed));
  }

  #unpackState([, counters, bankedTokens, register, nodes, recent, workers, published]: PackedState): StoredScope {
    const [blocks, versions, forgotten] = register;
    return {
      counters: COUNTERS.unpack(counters),
      bankedTokens,
      register: {
        blocks: blocks.map(unpackBlock),
        versions: versions.map(unpackVersion),
        forgotten: forgotten as MemoryId[],
      },
      nodes: unpackNodes(nodes, this.digests),
      recent: recent.map(RECENT.unpack),
      workers: workers.map(WORKER.unpack),
      published: { clusters: published[0].map(CLUSTER.unpack), accesses: published[1].map(ACCESS.unpack) },
    };
  }

  encodeChanges({ counters, bankedTokens, register, index, recent, workers, published }: ScopeChanges): string {
    const packed: PackedChanges = [
      FORMAT,
      COUNTERS.pack(counters),
      bankedTokens,
      [
        register.removedBlocks,
        [...register.forgotten],
        register.blocks.map(packBlock),
        register.versions.map(packVersion),
      ],
      [index.removed, packNodes(index.upserted, this.digests)],
      packRows(RECENT, recent),
      workers.removed.length === 0 && workers.upserted.length === 0 ? 0 : packRows(WORKER, workers),
      published === null ? 0 : [...packRows(CLUSTER, published.clusters), ...packRows(ACCESS, published.accesses)],
    ];
    return JSON.stringify(packed);
  }

  decodeChanges(text: string): ScopeChanges {
    return unpackedBody("a scope's changes", text, (packed: PackedChanges) => this.#unpackChanges(packed));
  }

  #unpackChanges([, counters, bankedTokens, register, index, recent, workers, published]: PackedChanges): ScopeChanges {
    const [removedBlocks, forgotten, blocks, versions] = register;
    return {
      counters: COUNTERS.unpack(counters),
      bankedTokens,
      register: {
        blocks: blocks.map(unpackBlock),
        versions: versions.map(unpackVersion),
        removedBlocks: removedBlocks as Label[],
        forgotten: forgotten as MemoryId[],
      },
      index: { upserted: unpackNodes(index[1], this.digests), removed: index[0] as NodeId[] },
      recent: unpackRows(RECENT, recent),
      workers: workers === 0 ? NO_ROWS_CHANGED : unpackRows(WORKER, workers),
      published: published === 0 ? null : unpackPublished(published),
    };
  }
}

function unpackPublished([clustersRemoved, clusters, accessesRemoved, accesses]: Exclude<PackedChanges[7], 0>) {
  return {
    clusters: unpackRows<NodeId, ClusterNode>(CLUSTER, [clustersRemoved, clusters]),
    accesses: unpackRows<TurnId, Access>(ACCESS, [accessesRemoved, accesses]),
  };
}

function packBlock({ label, text, tokens, supersededBy }: StoredBlock): PackedBlock {
  return supersededBy === null ? [label, text, tokens] : [label, text, tokens, supersededBy];
}

function unpackBlock([label, text, tokens, supersededBy]: PackedBlock): StoredBlock {
  return {
    label: label as Label,
    text,
    textDigest: digestOf(text),
    tokens,
    supersededBy: (supersededBy ?? null) as Label | null,
  };
}

function packVersion({ memoryId, label, current, dated, found, ofRun, until }: MemoryVersion): PackedVersion {
  const isCurrent = (current ? 1 + Number(found === true) + 2 * Number(ofRun === true) : 0) as CurrentBits;
  if (dated === true) return [memoryId, label, isCurrent, until ?? null, 1];
  return until === undefined ? [memoryId, label, isCurrent] : [memoryId, label, isCurrent, until];
}

function unpackVersion(packed: PackedVersion): MemoryVersion {
  const [memoryId, label, current, until, dated] = packed;
  return {
    memoryId: memoryId as MemoryId,
    label: label as Label,
    current: current !== 0,
    ...(dated === 1 ? { dated: true } : {}),
    ...(current === 2 || current === 4 ? { found: true } : {}),
    ...(current > 2 ? { ofRun: true } : {}),
    ...(until == null ? {} : { until }),
  };
}

function packNodes(nodes: readonly IndexNode[], digests: DigestSeal): PackedNodes {
  let latest = 0;
  for (const { usedAt } of nodes) latest = Math.max(latest, usedAt);
  const packed = nodes.map(
    (node): PackedNode => [
      node.id,
      node.parent,
      packAnchor(node.anchor, digests),
      node.run,
      node.position,
      node.nextPosition,
      node.uses,
      node.live,
      node.lastUsed,
      latest - node.usedAt,
      node.tokens,
    ],
  );
  return [latest, packed];
}

function unpackNodes([latest, nodes]: PackedNodes, digests: DigestSeal): IndexNode[] {
  const anchors = unpackAnchors(
    nodes.map(([, , anchor]) => anchor),
    digests,
  );
  return nodes.map(([id, parent, , run, position, nextPosition, uses, live, lastUsed, before, tokens], at) => ({
    id: id as NodeId,
    parent: parent as NodeId | null,
    anchor: anchors[at] as Digest | null,
    run: run,
    position,
    nextPosition,
    uses,
    live,
    lastUsed,
    usedAt: latest - before,
    tokens,
  }));
}

function packAnchor(anchor: Digest | null, digests: DigestSeal): PackedNode[2] {
  return anchor === null ? 0 : digests.seal(anchor);
}

function unpackAnchors(anchors: readonly PackedNode[2][], digests: DigestSeal): (Digest | null)[] {
  const opened = digests.openAll(anchors.filter((anchor) => anchor !== 0));
  let next = 0;
  return anchors.map((anchor) => (anchor === 0 ? null : (opened[next++] as Digest)));
}
