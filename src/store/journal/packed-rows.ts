import {
  type Access,
  type ClusterNode,
  type Digest,
  digestOf,
  type IndexNode,
  type Label,
  type MemoryId,
  type MemoryVersion,
  type NodeId,
  type RecentRetrieval,
  type StoredBlock,
  type TurnId,
  type WorkerRow,
} from "../../core/index.js";
import type { DigestSeal, SealedDigest } from "../database/digest-seal.js";

/*
 * Rows of a scope's state as short arrays.
 */

/** Label, text, tokens; where it was superseded, the label of the block that superseded it. */
export type PackedBlock = readonly [number, string, number, number?];

/**
 * Memory, label, whether it is current (2: and a search found it); where the text has more than the memory's own words: block template, start and length of them; where
 * it is known when the memory ceases to hold: that time.
 */
export type PackedVersion =
  | readonly [string, number, 0 | 1 | 2, number?]
  | readonly [string, number, 0 | 1 | 2, string, number, number, number?];

/**
 * Id, parent, anchor (0: none), run, position, next position, uses, live, last use on the logical clock, milliseconds before the latest use
 * of the list, tokens.
 */
export type PackedNode = readonly [
  ...[number, number | null, 0 | SealedDigest, readonly Label[], number, number],
  ...[number, number, number, number, number],
];
/** The latest use among some nodes in milliseconds since the epoch, and the nodes: times from the latest have fewer digits. */
export type PackedNodes = readonly [number, readonly PackedNode[]];

/** Turn, then its labels. */
export type PackedRecent = readonly [number, ...number[]];

/** Id, name, labels. */
export type PackedWorker = readonly [number, string, readonly Label[]];

/** Id, parent, blocks, position, next position, distance, uses, last use on the logical clock, tickets. */
export type PackedCluster = readonly [
  ...[number, number | null, readonly Label[], number, number, number, number, number],
  readonly TurnId[],
];

/** Turn, how many blocks it promoted, then its labels. */
export type PackedAccess = readonly [number, number, ...number[]];

export function packBlock({ label, text, tokens, supersededBy }: StoredBlock): PackedBlock {
  return supersededBy === null ? [label, text, tokens] : [label, text, tokens, supersededBy];
}

export function unpackBlock([label, text, tokens, supersededBy]: PackedBlock): StoredBlock {
  return {
    label: label as Label,
    text,
    textDigest: digestOf(text),
    tokens,
    supersededBy: (supersededBy ?? null) as Label | null,
  };
}

export function packVersion({ memoryId, label, current, rendered, found, until }: MemoryVersion): PackedVersion {
  const isCurrent = current ? (found === true ? 2 : 1) : 0;
  const end: [number?] = until === undefined ? [] : [until];
  if (rendered === undefined) return [memoryId, label, isCurrent, ...end];
  return [memoryId, label, isCurrent, rendered.template, rendered.start, rendered.length, ...end];
}

export function unpackVersion(packed: PackedVersion): MemoryVersion {
  const [memoryId, label, current, template, start, length, end] = packed;
  const version = { memoryId: memoryId as MemoryId, label: label as Label, current: current !== 0 };
  const isRendered = typeof template === "string" && start !== undefined && length !== undefined;
  const until = isRendered ? end : (template as number | undefined);
  return {
    ...version,
    ...(current === 2 ? { found: true } : {}),
    ...(isRendered ? { rendered: { template: template as Digest, start, length } } : {}),
    ...(until === undefined ? {} : { until }),
  };
}

export function packNodes(nodes: readonly IndexNode[], digests: DigestSeal): PackedNodes {
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

export function unpackNodes([latest, nodes]: PackedNodes, digests: DigestSeal): IndexNode[] {
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

export function packRecent({ turn, labels }: RecentRetrieval): PackedRecent {
  return [turn, ...labels];
}

export function unpackRecent([turn, ...labels]: PackedRecent): RecentRetrieval {
  return { turn: turn as TurnId, labels: labels as Label[] };
}

export function packWorker({ id, name, labels }: WorkerRow): PackedWorker {
  return [id, name, labels];
}

export function unpackWorker([id, name, labels]: PackedWorker): WorkerRow {
  return { id, name, labels };
}

export function packCluster(node: ClusterNode): PackedCluster {
  const { id, parent, blocks, position, nextPosition, distance, uses, lastUsed, tickets } = node;
  return [id, parent, blocks, position, nextPosition, distance, uses, lastUsed, tickets];
}

export function unpackCluster(packed: PackedCluster): ClusterNode {
  const [id, parent, blocks, position, nextPosition, distance, uses, lastUsed, tickets] = packed;
  return {
    id: id as NodeId,
    parent: parent as NodeId | null,
    blocks,
    position,
    nextPosition,
    distance,
    uses,
    lastUsed,
    tickets,
  };
}

export function packAccess({ turn, promoted, labels }: Access): PackedAccess {
  return [turn, promoted, ...labels];
}

export function unpackAccess([turn, promoted, ...labels]: PackedAccess): Access {
  return { turn: turn as TurnId, labels: labels as Label[], promoted };
}
