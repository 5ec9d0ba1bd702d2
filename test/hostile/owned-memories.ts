import type { MemoryId, Scope } from "../../src/core/index.js";
import { type MemorySource, MemorySourceError } from "../../src/memory/memory-source.js";

interface Kept {
  readonly id: MemoryId;
  readonly text: string;
  readonly scope: Scope;
}

/** A source of memprefix's own, in memory: two services may share it, and a test may hold up or fail what it does. */
export interface OwnedMemories extends MemorySource {
  readonly kept: Kept[];
  /** Awaited in each call of that name: searches have found by then, and what changes something has not done it. */
  hold: { readonly [call in "search" | "add" | "delete" | "deleteUser"]?: () => Promise<void> };
  keep(userId: string, text: string, agentId?: string): MemoryId;
}

export function ownedMemories(): OwnedMemories {
  let kept: Kept[] = [];
  let count = 0;
  const isOf = ({ tenant, userId }: Pick<Scope, "tenant" | "userId">) => {
    return ({ scope }: Kept) => scope.tenant === tenant && scope.userId === userId;
  };
  const add = (scope: Scope, text: string) => {
    const memory = { id: `m-${++count}` as MemoryId, text, scope };
    kept.push(memory);
    return memory;
  };
  const source: OwnedMemories = {
    name: "owned",
    owned: true,
    hold: {},
    get kept() {
      return kept;
    },
    keep: (userId, text, agentId) =>
      add({ tenant: "default", userId, agentId: agentId ?? null } as unknown as Scope, text).id,
    async search({ scope, topK }) {
      const found = kept.filter((memory) => isOf(scope)(memory) && memory.scope.agentId === scope.agentId);
      await source.hold.search?.();
      return found.slice(0, topK).map(({ id, text }) => ({ id, text }));
    },
    async add(scope, memories) {
      await source.hold.add?.();
      const added = memories.map(({ text }) => add(scope, text));
      return added.map(({ id, text }) => ({ id, text }));
    },
    async delete(scope, id) {
      await source.hold.delete?.();
      const before = kept.length;
      kept = kept.filter((memory) => !(memory.id === id && isOf(scope)(memory)));
      return kept.length < before;
    },
    async deleteUser(user) {
      await source.hold.deleteUser?.();
      const isGone = isOf(user);
      kept = kept.filter((memory) => !isGone(memory));
    },
    list: async (user) =>
      kept.filter(isOf(user)).map(({ id, text, scope }) => ({
        id,
        text,
        agentId: scope.agentId,
        metadata: {},
        createdAt: null,
        updatedAt: null,
      })),
    close: async () => {},
  };
  return source;
}

/** What a source fails with that went away. */
export function gone(): never {
  throw new MemorySourceError("owned", { kind: "unreachable", cause: "ECONNRESET" });
}
