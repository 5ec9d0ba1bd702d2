import type { AgentId, Scope, UserId } from "../../core/index.js";

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

export function readScope(row: ScopeKey): Scope {
  return {
    tenant: row.tenant,
    userId: row.userId as UserId,
    agentId: row.agentId === "" ? null : (row.agentId as AgentId),
  };
}
