import type { RetrievedMemory } from "../core/blocks/context-block.js";
import { append } from "../core/text/collections.js";
import type { MemoryId } from "../core/text/ids.js";
import { type Mem0Item, readMem0Answer } from "./mem0-answer.js";
import { breaks } from "./mem0-conditions.js";
import { isOwnedBy, isStillOf, type Mem0Scope, type Mem0Search, sharedScope, sharedUserName } from "./mem0-identity.js";
import { readMem0Added, searchMem0 } from "./mem0-results.js";
import { checkMemoryText, isNotFound, isPathSegment } from "./mem0-service.js";
import {
  type CurrentMemories,
  type MemorySource,
  MemorySourceError,
  type MessageAddition,
  type SearchOptions,
} from "./memory-source.js";

/** The calls of a Mem0 that another system owns, under its names. Each rejects with {@link MemorySourceError}. */
export interface SharedMem0 {
  search(search: Mem0Search, query: string, topK: number, signal: AbortSignal): Promise<unknown>;
  /** Null if there is none; absent: no memory can be looked up. */
  get?(id: MemoryId, signal: AbortSignal): Promise<unknown>;
  /** Metadata belongs to a whole request. */
  add?(scope: Mem0Scope, addition: MessageAddition, signal: AbortSignal): Promise<unknown>;
  /** False if there is none. */
  delete?(id: MemoryId, signal: AbortSignal): Promise<boolean>;
  deleteUser?(userName: string, signal: AbortSignal): Promise<void>;
}

/** Another system's Mem0 as a source. Results are checked to be the user's, and only the user's own memories are deleted. */
export function sharedMem0(name: string, mem0: SharedMem0): MemorySource {
  const { get, add } = mem0;
  const unsupported = (operation: string) => new MemorySourceError(name, { kind: "unsupported", operation });
  return {
    name,
    owned: false,
    sourceUserId: (scope) => sharedUserName(name, scope),

    async search({ scope, query, topK, options }, signal) {
      const search = { ...sharedScope(name, scope), ...options };
      return await searchMem0(name, search, topK, (most) => mem0.search(search, query, most, signal));
    },

    ...(get && {
      async current(scope, ids, filters, signal) {
        const names = sharedScope(name, { ...scope, agentId: null });
        return await currentOf(ids.filter(isPathSegment), names, filters, (id) =>
          get(id, signal).catch((error: unknown) => noneIfMissing(error, id)),
        );
      },
    }),

    async add(scope, memories, signal) {
      const names = sharedScope(name, scope);
      for (const { text } of memories) checkMemoryText(name, text);
      if (add === undefined) throw unsupported("add memories");
      const added: RetrievedMemory[] = [];
      for (const { text: content, metadata } of memories) {
        const addition = { messages: [{ role: "user", content }], metadata, infer: false } as const;
        append(added, readMem0Added(await add(names, addition, signal), content));
      }
      return added;
    },

    ...(add && {
      async addMessages(scope, addition, signal) {
        return readMem0Added(await add(sharedScope(name, scope), addition, signal));
      },
    }),

    async delete(scope, id, signal) {
      const names = sharedScope(name, scope);
      if (mem0.delete === undefined) throw unsupported("delete a memory");
      if (!isPathSegment(id)) return false;
      try {
        // Servers answer an unknown id with null and 200, or with 404, depending on their version.
        if (get !== undefined && !isOwnedBy(await get(id, signal), names)) return false;
        return await mem0.delete(id, signal);
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },

    async deleteUser(scope, signal) {
      if (mem0.deleteUser === undefined) throw unsupported("delete a user, who is the caller's");
      await mem0.deleteUser(sharedUserName(name, scope), signal);
    },

    async close() {},
  };
}

/** Mem0 has no batch call. Failures and other users' memories count as unknown. `get` gives null only if Mem0 says that there is no memory. */
async function currentOf(
  ids: readonly MemoryId[],
  scope: Mem0Scope,
  filters: SearchOptions["filters"],
  get: (id: MemoryId) => Promise<unknown>,
): Promise<CurrentMemories> {
  const kept: RetrievedMemory[] = [];
  const gone: MemoryId[] = [];
  const answers = await Promise.all(ids.map(async (id) => ({ id, answer: await get(id).catch(() => undefined) })));
  for (const { id, answer } of answers) {
    if (answer === null) gone.push(id);
    if (!isStillOf(answer, scope) || (filters != null && breaks(filters, answer as Mem0Item))) continue;
    const read = readMem0Answer([answer]);
    const [memory] = read.ok ? read.memories : [];
    if (memory?.id === id) kept.push(memory);
  }
  return { kept, gone };
}

/** Rethrows any failure but "no such memory". A 404 for a missing route, of the server or a gateway, names a path or a host instead. */
function noneIfMissing(error: unknown, id: MemoryId): null {
  const { failure } = error instanceof MemorySourceError ? error : {};
  if (failure?.kind !== "refused" || failure.status !== 404) throw error;
  const { body } = failure;
  if (PLATFORM_SAYS.test(body) || saysNoMemory(body) || saysNoMemory(body.replaceAll(id, " "))) return null;
  throw error;
}

/** Django's words, in the platform; FastAPI's for a missing route have a capital and no full stop. */
const PLATFORM_SAYS = /"Not found\."/;
const NO_MEMORY =
  /(?<!(?:service|server|host|upstream) )\bmemory (?:with (?:the )?(?:given )?id )?(?:was |could )?(?:not (?:be )?found|does ?n(?:o|) ?t exist|no longer exists)\b|\bno (?:such memory|memory (?:found|matches|with))\b/;

function saysNoMemory(body: string): boolean {
  const withoutPaths = body.toLowerCase().replace(/[^\s"]*\/[^\s"]*/g, " ");
  return NO_MEMORY.test(withoutPaths.replace(/[^a-z]+/g, " "));
}
