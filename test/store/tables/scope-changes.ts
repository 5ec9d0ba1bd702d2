import { type Digest, type ScopeChanges, withEarlierForm } from "../../../src/core/index.js";
import type { DigestSeal } from "../../../src/store/database/digest-seal.js";
import type { ScopeKey } from "../../../src/store/database/scope-key.js";
import type { NodeRow, OrderingRow } from "../../../src/store/upgrade/table-statements.js";
import type { Statements } from "./statements.js";

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
  for (const { label, text, tokens, supersededBy } of changes.register.blocks)
    statements.keepBlock.run({ scopeId, label, text, tokens, supersededBy });
  for (const { memoryId, label, current, rendered } of changes.register.versions) {
    const { template = null, start: ownStart = null, length: ownLength = null } = rendered ?? {};
    statements.keepVersion.run({ scopeId, memoryId, label, current: current ? 1 : 0, template, ownStart, ownLength });
  }
  for (const id of changes.index.removed) statements.removeNode.run({ scopeId, id });
  for (const node of changes.index.upserted)
    statements.keepNode.run({
      scopeId,
      ...node,
      ...anchorRow(node.anchor, digests),
      run: JSON.stringify(node.run),
    });
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

function anchorRow(anchor: Digest | null, digests: DigestSeal): Pick<NodeRow, "anchor" | "bracketed"> {
  if (anchor === null) return { anchor, bracketed: 0 };
  const before = withEarlierForm(anchor);
  return before === null
    ? { anchor: digests.seal(anchor), bracketed: 0 }
    : { anchor: digests.seal(before), bracketed: 1 };
}
