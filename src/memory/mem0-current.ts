import type { RetrievedMemory } from "../core/blocks/context-block.js";
import type { MemoryId } from "../core/text/ids.js";
import { readMem0Answer } from "./mem0-answer.js";
import { isOwnedBy, type Mem0Scope } from "./mem0-identity.js";
import { type CurrentMemories, MemorySourceError } from "./memory-source.js";

/**
 * Requests memories one by one, all at once: Mem0 has no other way to name them. What fails, and what is another's, is not known.
 *
 * @param get gives the memory; null where Mem0 says that there is none; anything else where it says nothing
 */
export async function currentOf(
  ids: readonly MemoryId[],
  scope: Mem0Scope,
  get: (id: MemoryId) => Promise<unknown>,
): Promise<CurrentMemories> {
  const kept: RetrievedMemory[] = [];
  const gone: MemoryId[] = [];
  const answers = await Promise.all(ids.map(async (id) => ({ id, answer: await get(id).catch(() => undefined) })));
  for (const { id, answer } of answers) {
    if (answer === null) gone.push(id);
    if (!isOwnedBy(answer, scope)) continue;
    const read = readMem0Answer([answer]);
    const [memory] = read.ok ? read.memories : [];
    if (memory?.id === id) kept.push(memory);
  }
  return { kept, gone };
}

/**
 * Null where Mem0 refused because there is no such memory; rethrows any other failure. A server that has no such route says so in the words
 * of its framework.
 */
export function noneIfMissing(error: unknown): null {
  const isMissing =
    error instanceof MemorySourceError &&
    error.failure.kind === "refused" &&
    error.failure.status === 404 &&
    !NO_ROUTE.test(error.failure.body);
  if (isMissing) return null;
  throw error;
}

/** FastAPI's and Express's. */
const NO_ROUTE = /^\s*(?:$|\{\s*"detail"\s*:\s*"Not Found"\s*\}|<|Cannot GET|404 )/;
