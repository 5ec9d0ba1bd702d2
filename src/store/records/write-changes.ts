import type { Scope, ScopeChanges } from "../../core/index.js";
import type { DigestSeal } from "../database/digest-seal.js";
import type { OrderingRow, Statements } from "../database/statements.js";

/** What names a scope in its table. */
export type ScopeKey = {
  readonly tenant: string;
  readonly userId: string;
  /** Empty: no agent. */
  readonly agentId: string;
};

export function keyOf(scope: Scope): ScopeKey {
  return { tenant: scope.tenant, userId: scope.userId, agentId: scope.agentId ?? "" };
}

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
  for (const block of changes.register.blocks) statements.keepBlock.run({ scopeId, ...block });
  for (const { memoryId, label, current } of changes.register.versions) {
    statements.keepVersion.run({ scopeId, memoryId, label, current: current ? 1 : 0 });
  }
  for (const id of changes.index.removed) statements.removeNode.run({ scopeId, id });
  for (const node of changes.index.upserted) {
    const anchor = node.anchor === null ? null : digests.seal(node.anchor);
    statements.keepNode.run({ scopeId, ...node, anchor, run: JSON.stringify(node.run) });
  }
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
