import { z } from "zod";
import type { Mem0Item } from "./mem0-answer.js";

/** Whose memories, under the names that Mem0 knows them by (see `mem0-identity.ts`). */
export interface Mem0Scope {
  readonly userId: string;
  /** Null: named to Mem0 by the user alone. */
  readonly agentId: string | null;
}

/** The `filters` of a search: Mem0 takes ids only in there, and only in snake_case. */
export function filtersOf({ userId, agentId }: Mem0Scope): { user_id: string; agent_id?: string } {
  return agentId === null ? { user_id: userId } : { user_id: userId, agent_id: agentId };
}

/**
 * Whether an item that a search returned may be shown to a scope: it must not say that it is another user's, or another agent's where
 * the scope has one. The filters should have seen to that; a server that overlooks them must not make one user's memories another's.
 */
export function belongsTo(scope: Mem0Scope): (item: Mem0Item) => boolean {
  return (item) => {
    const user = item.user_id ?? item.userId ?? scope.userId;
    const agent = item.agent_id ?? item.agentId ?? scope.agentId;
    return user === scope.userId && (scope.agentId === null || agent === scope.agentId);
  };
}

const ownership = z.looseObject({
  user_id: z.string().nullish(),
  userId: z.string().nullish(),
  agent_id: z.string().nullish(),
  agentId: z.string().nullish(),
});

/**
 * Whether an item is proven to be the scope's, which it must be before it is deleted. With an agent in the scope it must be that agent's;
 * without one, any of the user's will do. False for what is no item at all.
 */
export function isOwnedBy(item: unknown, scope: Mem0Scope): boolean {
  const owner = ownership.safeParse(item);
  if (!owner.success) return false;
  const user = owner.data.user_id ?? owner.data.userId;
  const agent = owner.data.agent_id ?? owner.data.agentId;
  return user === scope.userId && (scope.agentId === null || agent === scope.agentId);
}
