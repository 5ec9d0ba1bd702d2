import type { ExportedUser } from "../src/store/store.js";

/** How much is stored of a user with an agent, and the ids of the requests that the engine has not evicted. */
export function storedCounts({ scopes }: Pick<ExportedUser, "scopes">, agentId: string | null = null) {
  const tables = scopes.find((scope) => scope.agentId === agentId)?.tables ?? {};
  const count = (table: string) => tables[table]?.length ?? 0;
  const live = (tables["requests"] ?? []).filter(({ evicted }) => evicted === 0).map(({ id }) => id);
  return {
    ...{ blocks: count("blocks"), nodes: count("index_nodes"), conversations: count("conversations") },
    ...{ turns: count("turns"), requests: count("requests"), live },
  };
}
