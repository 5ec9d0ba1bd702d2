import { z } from "zod";
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
import { parsedBody } from "./damaged-record.js";
import {
  packAccess,
  packBlock,
  packCluster,
  packedAccesses,
  packedBlocks,
  packedClusters,
  packedNodes,
  packedRecent,
  packedVersions,
  packedWorkers,
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
import { wholeNumbers } from "./row-shapes.js";

/** The format of snapshots and changes; the first element of each. A new one is another number, and this one stays readable. */
const FORMAT = 1;

const format = z.literal(FORMAT);
/** Next label, next node, next turn, requests. */
const counters = z.tuple([z.int(), z.int(), z.int(), z.int()]);
const names = z.array(z.string());

const state = z.tuple([
  format,
  counters,
  z.number(),
  z.tuple([packedBlocks, packedVersions, names]),
  packedNodes,
  packedRecent,
  packedWorkers,
  z.tuple([packedClusters, packedAccesses]),
]);
type PackedState = z.output<typeof state>;

/** Of each kind what was removed, then what was written. 0: nothing, or (published) not used. */
const changes = z.tuple([
  format,
  counters,
  z.number(),
  z.tuple([wholeNumbers, names, packedBlocks, packedVersions]),
  z.tuple([wholeNumbers, packedNodes]),
  z.tuple([wholeNumbers, packedRecent]),
  z.union([z.literal(0), z.tuple([wholeNumbers, packedWorkers])]),
  z.union([z.literal(0), z.tuple([wholeNumbers, packedClusters, wholeNumbers, packedAccesses])]),
]);
type PackedChanges = z.output<typeof changes>;

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
      [published.clusters().map(packCluster), published.accesses().map(packAccess)],
    ];
    return JSON.stringify(packed);
  }

  decodeState(text: string): StoredScope {
    const [, counters, bankedTokens, register, nodes, recent, workers, published] = parsedBody(
      "a scope's state",
      text,
      state,
    );
    const [blocks, versions, forgotten] = register;
    const clusters = published[0].map(unpackCluster);
    const accesses = published[1].map(unpackAccess);
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
      published: { clusters: () => clusters, accesses: () => accesses },
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
    const [, counters, bankedTokens, register, index, recent, workers, published] = parsedBody(
      "a scope's changes",
      text,
      changes,
    );
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

function packCounters({ nextLabel, nextNode, nextTurn, requests }: ScopeCounters): PackedState[1] {
  return [nextLabel, nextNode, nextTurn, requests];
}

function unpackCounters([nextLabel, nextNode, nextTurn, requests]: PackedState[1]): ScopeCounters {
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
