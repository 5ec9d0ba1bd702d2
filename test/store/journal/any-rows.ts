import fc from "fast-check";
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
  type ScopeChanges,
  type ScopeCounters,
  type StoredBlock,
  type StoredScope,
  type TurnId,
  type WorkerRow,
} from "../../../src/core/index.js";

/** Text of any kind: other scripts, control characters, unpaired surrogates, what JSON and arrays are written with. */
export const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.string({ unit: fc.constantFrom('"', "\\", "[", "]", ",", "\n", "\0", "\ud800", "é", "0"), maxLength: 8 }),
);
export const anyCount = fc.nat(2_000_000);
/** Milliseconds since the epoch; 0: from before they were recorded. */
export const anyTime = fc.oneof(fc.constant(0), fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }));
export const anyDigest: fc.Arbitrary<Digest> = fc.string({ maxLength: 4 }).map(digestOf);
export const anyLabel = fc.integer({ min: 1, max: 300 }) as unknown as fc.Arbitrary<Label>;
export const anyLabels = fc.uniqueArray(anyLabel, { maxLength: 5 });
export const anyTurnId = fc.integer({ min: 1, max: 5_000 }) as unknown as fc.Arbitrary<TurnId>;
const anyNodeId = anyCount as unknown as fc.Arbitrary<NodeId>;
export const anyMemoryId = fc.oneof(fc.uuid(), anyText) as unknown as fc.Arbitrary<MemoryId>;

const anyCounters: fc.Arbitrary<ScopeCounters> = fc.record({
  nextLabel: anyCount,
  nextNode: anyCount,
  nextTurn: anyCount,
  requests: anyCount,
});

const anyBlock: fc.Arbitrary<StoredBlock> = fc
  .record({ label: anyLabel, text: anyText, tokens: anyCount, supersededBy: fc.option(anyLabel) })
  .map((block) => ({ ...block, textDigest: digestOf(block.text) }));

const anyVersion: fc.Arbitrary<MemoryVersion> = fc
  .record({
    memoryId: anyMemoryId,
    label: anyLabel,
    current: fc.boolean(),
    dated: fc.boolean(),
    until: fc.option(fc.integer({ min: 1, max: 4e12 }), { nil: undefined }),
    ofRun: fc.boolean(),
  })
  .map(({ dated, until, ofRun, ...version }) => ({
    ...version,
    ...(dated ? { dated } : {}),
    ...(until === undefined ? {} : { until }),
    ...(ofRun && version.current ? { ofRun } : {}),
  }));

const anyNode: fc.Arbitrary<IndexNode> = fc.record({
  id: anyNodeId,
  parent: fc.option(anyNodeId),
  anchor: fc.option(anyDigest),
  run: anyLabels,
  position: anyCount,
  nextPosition: anyCount,
  uses: anyCount,
  live: anyCount,
  lastUsed: anyCount,
  usedAt: anyTime,
  tokens: anyCount,
});

const anyRecent: fc.Arbitrary<RecentRetrieval> = fc.record({ turn: anyTurnId, labels: anyLabels });
const anyWorker: fc.Arbitrary<WorkerRow> = fc.record({ id: anyCount, name: anyText, labels: anyLabels });
const anyAccess: fc.Arbitrary<Access> = fc.record({ turn: anyTurnId, labels: anyLabels, promoted: anyCount });
const anyCluster: fc.Arbitrary<ClusterNode> = fc.record({
  id: anyNodeId,
  parent: fc.option(anyNodeId),
  blocks: anyLabels,
  position: anyCount,
  nextPosition: anyCount,
  distance: fc.double({ min: 0, max: 2, noNaN: true }).map((distance) => distance + 0),
  uses: anyCount,
  lastUsed: anyCount,
  tickets: fc.array(anyTurnId, { maxLength: 4 }),
});

const some = <Row>(row: fc.Arbitrary<Row>) => fc.array(row, { maxLength: 4 });

/** Any rows: they need not fit together. */
export const anyStoredScope: fc.Arbitrary<StoredScope> = fc
  .record({
    counters: anyCounters,
    bankedTokens: anyCount,
    register: fc.record({ blocks: some(anyBlock), versions: some(anyVersion), forgotten: some(anyMemoryId) }),
    nodes: some(anyNode),
    recent: some(anyRecent),
    workers: some(anyWorker),
    clusters: some(anyCluster),
    accesses: some(anyAccess),
  })
  .map(({ clusters, accesses, ...rows }) => ({
    ...rows,
    published: { clusters, accesses },
  }));

function changed<Row, Key>(row: fc.Arbitrary<Row>, key: fc.Arbitrary<Key>) {
  return fc.record({ upserted: some(row), removed: some(key) });
}

export const anyScopeChanges: fc.Arbitrary<ScopeChanges> = fc.record({
  counters: anyCounters,
  bankedTokens: anyCount,
  register: fc.record({
    blocks: some(anyBlock),
    versions: some(anyVersion),
    removedBlocks: anyLabels,
    forgotten: some(anyMemoryId),
  }),
  index: changed(anyNode, anyNodeId),
  recent: changed(anyRecent, anyTurnId),
  workers: changed(anyWorker, anyCount),
  published: fc.option(
    fc.record({ clusters: changed(anyCluster, anyNodeId), accesses: changed(anyAccess, anyTurnId) }),
  ),
});

/** A state with its published rows read. */
export function readRows({ published, ...rows }: StoredScope) {
  return { ...rows, clusters: published.clusters, accesses: published.accesses };
}
