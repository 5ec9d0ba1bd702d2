import type { ContextIndex } from "../../../src/core/cache/context-index.js";
import type { ServedNode } from "../../../src/core/cache/index-node.js";
import type { NodeId } from "../../../src/core/text/ids.js";
import { type IndexEntry, indexEntries, rootsOf } from "./index-entries.js";

/**
 * Throws if an index breaks a rule of its tree, or if its links, its lists by last use are not those of its rows: each
 * is worked out from the rows again.
 */
export function checkIndex(index: ContextIndex): void {
  index.check();
  const rows = new Map(index.stored().map((row) => [row.id, row]));
  const entries = new Map(indexEntries(index, Number.POSITIVE_INFINITY).map((entry) => [entry.id, entry]));
  const entryOf = (id: NodeId | null) => (id === null ? undefined : entries.get(id));
  for (const { id, parent, anchor, run, position, lastUsed, usedAt } of rows.values()) {
    const before = anchor === null ? entryOf(parent) : undefined;
    const entry = entryOf(id);
    const expected = { labels: [...(before?.labels ?? []), ...run], searchPath: pathOf(before, position) };
    if (entry?.labels.join() !== expected.labels.join() || entry.searchPath.join() !== expected.searchPath.join())
      throw new Error(`node ${id}: linked wrongly`);
    const above = parent === null ? undefined : rows.get(parent);
    if (above !== undefined && (above.lastUsed < lastUsed || above.usedAt < usedAt))
      throw new Error(`node ${id}: younger than what it needs`);
    const [passed] = index.wayTo(id);
    if (passed?.labels.join() !== entry.labels.join()) throw new Error(`node ${id}: linked wrongly upwards`);
  }
  if (listedByUse(index) !== rows.size) throw new Error("a list by last use misses a node");
}

function pathOf(before: IndexEntry | undefined, position: number): readonly number[] {
  return before === undefined ? [] : [...before.searchPath, position];
}

/** How many nodes the lists by last use have. Throws if one breaks the order, or has a node before its parent. */
function listedByUse(index: ContextIndex): number {
  const listed = new Set<ServedNode | null>([null]);
  for (const root of rootsOf(index)) {
    for (let node: ServedNode | null = root; node !== null; node = node.staler) {
      const { row, parent, staler }: ServedNode = node;
      if (!listed.has(parent)) throw new Error(`node ${row.id}: before its parent`);
      if (staler !== null && staler.row.lastUsed > row.lastUsed)
        throw new Error(`node ${row.id}: before one that is fresher`);
      listed.add(node);
    }
  }
  return listed.size - 1;
}
