import type {
  Label,
  MemoryId,
  NodeId,
  PublishedChanges,
  ScopeChanges,
  ScopeCounters,
  StoredScope,
  TurnId,
  WorkerChanges,
} from "../../core/index.js";
import type { DigestSeal } from "../database/digest-seal.js";
import { FORMAT, unpackedBody } from "./damaged-record.js";
import {
  type PackedAccess,
  type PackedBlock,
  type PackedCluster,
  type PackedNodes,
  type PackedRecent,
  type PackedVersion,
  type PackedWorker,
  packAccess,
  packBlock,
  packCluster,
  packNodes,
  packRecent,
  packVersion,
  packWorker,
  unpackAccess,
  unpackBlock,
  unpackCluster,
  unpackNodes,
  unpackRecent,
  unpackVersion,
  unpackWorker,
} from "./packed-rows.js";

/** Next label, next node, next turn, requests. */
type PackedCounters = readonly [number, number, number, number];

type PackedState = readonly [
  ...[typeof FORMAT, PackedCounters, number],
  readonly [readonly PackedBlock[], readonly PackedVersion[], readonly string[]],
  PackedNodes,
  readonly PackedRecent[],
  readonly PackedWorker[],
  readonly [readonly PackedCluster[], readonly PackedAccess[]],
];

/** Of each kind what was removed, then what was written. 0: nothing, or (published) not used. */
type PackedChanges = readonly [
  ...[typeof FORMAT, PackedCounters, number],
  readonly [readonly number[], readonly string[], readonly PackedBlock[], readonly PackedVersion[]],
  readonly [readonly number[], PackedNodes],
  readonly [readonly number[], readonly PackedRecent[]],
  0 | readonly [readonly number[], readonly PackedWorker[]],
  0 | readonly [readonly number[], readonly PackedCluster[], readonly number[], readonly PackedAccess[]],
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
      packCounters(counters),
      bankedTokens,
      [register.blocks.map(packBlock), register.versions.map(packVersion), [...register.forgotten]],
      packNodes(nodes, this.digests),
      recent.map(packRecent),
      workers.map(packWorker),
      [published.clusters.map(packCluster), published.accesses.map(packAccess)],
    ];
    return JSON.stringify(packed);
  }

  decodeState(text: string): StoredScope {
    return unpackedBody("a scope's state", text, (packed: PackedState) => this.#unpackState(packed));
  }

  #unpackState([, counters, bankedTokens, register, nodes, recent, workers, published]: PackedState): StoredScope {
    const [blocks, versions, forgotten] = register;
    return {
      counters: unpackCounters(counters),
      bankedTokens,
      register: {
        blocks: blocks.map(unpackBlock),
        versions: versions.map(unpackVersion),
        forgotten: forgotten as MemoryId[],
      },
      nodes: unpackNodes(nodes, this.digests),
      recent: recent.map(unpackRecent),
      workers: workers.map(unpackWorker),
      published: { clusters: published[0].map(unpackCluster), accesses: published[1].map(unpackAccess) },
    };
  }

  encodeChanges({ counters, bankedTokens, register, index, recent, workers, published }: ScopeChanges): string {
    const packed: PackedChanges = [
      FORMAT,
      packCounters(counters),
      bankedTokens,
      [
        register.removedBlocks,
        [...register.forgotten],
        register.blocks.map(packBlock),
        register.versions.map(packVersion),
      ],
      [index.removed, packNodes(index.upserted, this.digests)],
      [recent.removed, recent.upserted.map(packRecent)],
      packWorkers(workers),
      packPublished(published),
    ];
    return JSON.stringify(packed);
  }

  decodeChanges(text: string): ScopeChanges {
    return unpackedBody("a scope's changes", text, (packed: PackedChanges) => this.#unpackChanges(packed));
  }

  #unpackChanges([, counters, bankedTokens, register, index, recent, workers, published]: PackedChanges): ScopeChanges {
    const [removedBlocks, forgotten, blocks, versions] = register;
    return {
      counters: unpackCounters(counters),
      bankedTokens,
      register: {
        blocks: blocks.map(unpackBlock),
        versions: versions.map(unpackVersion),
        removedBlocks: removedBlocks as Label[],
        forgotten: forgotten as MemoryId[],
      },
      index: { upserted: unpackNodes(index[1], this.digests), removed: index[0] as NodeId[] },
      recent: { upserted: recent[1].map(unpackRecent), removed: recent[0] as TurnId[] },
      workers: workers === 0 ? NO_ROWS : { upserted: workers[1].map(unpackWorker), removed: workers[0] },
      published: unpackPublished(published),
    };
  }
}

const NO_ROWS: WorkerChanges = { upserted: [], removed: [] };

function packCounters({ nextLabel, nextNode, nextTurn, requests }: ScopeCounters): PackedCounters {
  return [nextLabel, nextNode, nextTurn, requests];
}

function unpackCounters([nextLabel, nextNode, nextTurn, requests]: PackedCounters): ScopeCounters {
  return { nextLabel, nextNode, nextTurn, requests };
}

function packWorkers({ removed, upserted }: WorkerChanges): PackedChanges[6] {
  return removed.length === 0 && upserted.length === 0 ? 0 : [removed, upserted.map(packWorker)];
}

function packPublished(published: PublishedChanges | null): PackedChanges[7] {
  if (published === null) return 0;
  const { clusters, accesses } = published;
  return [clusters.removed, clusters.upserted.map(packCluster), accesses.removed, accesses.upserted.map(packAccess)];
}

function unpackPublished(packed: PackedChanges[7]): PublishedChanges | null {
  if (packed === 0) return null;
  const [clustersRemoved, clusters, accessesRemoved, accesses] = packed;
  return {
    clusters: { upserted: clusters.map(unpackCluster), removed: clustersRemoved as NodeId[] },
    accesses: { upserted: accesses.map(unpackAccess), removed: accessesRemoved as TurnId[] },
  };
}
