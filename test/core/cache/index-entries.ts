import type { ContextIndex } from "../../../src/core/cache/context-index.js";
import type { ServedNode } from "../../../src/core/cache/index-node.js";
import type { Label, NodeId } from "../../../src/core/text/ids.js";

/** A node of the context index with its search path. */
export interface IndexEntry {
  readonly id: NodeId;
  readonly searchPath: readonly number[];
  readonly labels: readonly Label[];
  readonly uses: number;
  readonly live: number;
  readonly lastUsed: number;
  /** Milliseconds since the epoch; 0: not known. */
  readonly usedAt: number;
  /** Estimated tokens of its run's blocks, or of the prompt before an anchor's root. */
  readonly tokens: number;
  /** Of the whole prefix that ends with its run. */
  readonly totalTokens: number;
}

/** The roots of all anchors, the oldest first. */
export function rootsOf(index: ContextIndex): ServedNode[] {
  return index.stored().flatMap(({ anchor }) => (anchor === null ? [] : (index.root(anchor) ?? [])));
}

/** Parents before children. */
export function indexEntries(index: ContextIndex, limit: number): IndexEntry[] {
  const entries: IndexEntry[] = [];
  const pending: { node: ServedNode; before?: IndexEntry }[] = rootsOf(index)
    .reverse()
    .map((node) => ({ node }));
  for (let step = pending.pop(); step !== undefined && entries.length < limit; step = pending.pop()) {
    const { node, before } = step;
    const { id, run, position, uses, live, lastUsed, usedAt } = node.row;
    const tokens = index.ownTokens(node.row);
    const entry = {
      id,
      searchPath: before === undefined ? [] : [...before.searchPath, position],
      labels: [...(before?.labels ?? []), ...run],
      uses,
      live,
      lastUsed,
      usedAt,
      tokens,
      totalTokens: (before?.totalTokens ?? 0) + tokens,
    };
    entries.push(entry);
    const children = [...node.children.values()].sort((a, b) => b.row.position - a.row.position);
    for (const child of children) pending.push({ node: child, before: entry });
  }
  return entries;
}
