import fc from "fast-check";
import type { EvictedPath } from "../../../src/core/cache/context-index.js";
import type { AccessWindow } from "../../../src/core/published/access-frequency.js";
import { type ClusterNode, ClusterTree } from "../../../src/core/published/cluster-tree.js";
import type { Label, NodeId, TurnId } from "../../../src/core/text/ids.js";
import { label } from "../cache/served-sequences.js";

export function ticket(n: number): TurnId {
  return n as TurnId;
}

/** Distinct labels from 1 to 9 in any order, at least one. */
export const anyContext = fc.uniqueArray(fc.integer({ min: 1, max: 9 }).map(label), { minLength: 1, maxLength: 7 });

/** Something that happens to a cluster tree. */
export type TreeEvent =
  | { readonly kind: "insert"; readonly context: readonly Label[] }
  /** Evicts contexts that end on a path; most trees have none of them. */
  | { readonly kind: "evict"; readonly path: EvictedPath }
  | { readonly kind: "forget"; readonly labels: readonly Label[] };

/** A life of a cluster tree: mostly inserting. */
export const anyTreeEvents: fc.Arbitrary<TreeEvent[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.record({ kind: fc.constant("insert" as const), context: anyContext }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("evict" as const),
        path: fc.record({ labels: anyContext, held: fc.nat({ max: 3 }) }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("forget" as const),
        labels: fc.uniqueArray(fc.integer({ min: 1, max: 9 }).map(label), { minLength: 1, maxLength: 2 }),
      }),
    },
  ),
  { maxLength: 30, size: "max" },
);

/** A cluster tree with a store under it that applies what each event drained. */
export class StoredTree {
  readonly rows = new Map<NodeId, ClusterNode>();
  #clock = 0;

  constructor(
    readonly maxNodes = 10_000,
    public tree = new ClusterTree([], maxNodes),
  ) {}

  take(event: TreeEvent): void {
    if (event.kind === "forget") this.tree.forget(new Set(event.labels));
    else if (event.kind === "evict") this.tree.evicted(event.path);
    else this.tree.insert(event.context, ++this.#clock);
    const { upserted, removed } = structuredClone(this.tree.drain());
    for (const node of upserted) this.rows.set(node.id, node);
    for (const id of removed) this.rows.delete(id);
  }

  reload(order: (a: ClusterNode, b: ClusterNode) => number): void {
    const rows = structuredClone([...this.rows.values()]).sort(order);
    this.tree = new ClusterTree(rows, this.maxNodes);
  }
}

/** Every node below the root with its search path, parents before children; the last use is that of its leaves. */
export function entriesOf(tree: ClusterTree) {
  const rows = tree.stored().sort((a, b) => a.position - b.position);
  const root = rows.find(({ parent }) => parent === null);
  const below = (row: ClusterNode, above: readonly number[]): readonly Entry[] => {
    const searchPath = [...above, row.position];
    const inner = rows.filter(({ parent }) => parent === row.id).flatMap((child) => below(child, searchPath));
    const leaves = inner.filter(({ isLeaf }) => isLeaf);
    const { blocks, distance } = row;
    const lastUsed = Math.max(row.lastUsed, ...leaves.map((leaf) => leaf.lastUsed));
    return [{ isLeaf: leaves.length === 0, searchPath, blocks, distance, lastUsed }, ...inner];
  };
  return rows.filter(({ parent }) => parent === root?.id && root !== undefined).flatMap((child) => below(child, []));
}

interface Entry extends Pick<ClusterNode, "blocks" | "distance" | "lastUsed"> {
  readonly searchPath: readonly number[];
  readonly isLeaf: boolean;
}

/** Eq. 1 word for word; null where no block is shared. */
export function plainDistance(a: readonly Label[], b: readonly Label[]): number | null {
  const shared = a.filter((block) => b.includes(block));
  if (shared.length === 0) return null;
  const shift = shared.map((block) => Math.abs(a.indexOf(block) - b.indexOf(block))).reduce((sum, n) => sum + n, 0);
  return 1 - shared.length / Math.max(a.length, b.length) + (0.001 * shift) / shared.length;
}

/** Alg. 1 word for word, looking at every child: the search path. */
export function plainSearch(rows: readonly ClusterNode[], context: readonly Label[]): number[] {
  const childrenOf = (id: NodeId | null) => rows.filter((row) => row.parent === id);
  const isInner = (row: ClusterNode) => childrenOf(row.id).length > 0;
  const path: number[] = [];
  for (let [at] = childrenOf(null); at !== undefined; ) {
    const children = childrenOf(at.id);
    const near = children
      .flatMap((row) => {
        const distance = plainDistance(context, row.blocks);
        return distance === null ? [] : [{ row, distance, inner: isInner(row) }];
      })
      .sort((a, b) => a.distance - b.distance || Number(b.inner) - Number(a.inner) || a.row.position - b.row.position);
    const [best, last] = [near[0], near.at(-1)];
    if (best === undefined || last === undefined) break;
    const alike = near.every(({ distance, inner }) => distance === best.distance && inner === best.inner);
    if (children.length > 1 && near.length === children.length && alike) break;
    path.push(best.row.position);
    at = best.row;
  }
  return path;
}

/** The promoted prefixes that no other one continues, by labels. */
export function prefixesOf(window: AccessWindow): Label[][] {
  const promoted = window.stored().map(({ labels, promoted: count }) => labels.slice(0, count));
  const all = [...new Map(promoted.map((prefix) => [prefix.join(), prefix])).values()];
  const isContinued = (prefix: readonly Label[]) =>
    all.some((other) => other.length > prefix.length && prefix.every((one, at) => other[at] === one));
  return all
    .filter((prefix) => prefix.length > 0 && !isContinued(prefix))
    .sort((a, b) => {
      const at = a.findIndex((one, place) => one !== b[place]);
      return (a[at] ?? 0) - (b[at] ?? 0);
    });
}
