import {
  type BlockRegister,
  messageText,
  type RetrievedMemory,
  recallKnown,
  type Scope,
  type Warning,
} from "../core/index.js";
import { type MemorySource, MemorySourceError } from "../memory/memory-source.js";
import type { ComposeRequest } from "./compose-request.js";

/** What a lookup came to. A failed one still gives a prompt: from the memories that are known already. */
export type MemoryLookup =
  | { readonly found: readonly RetrievedMemory[] }
  | { readonly failed: MemorySourceError; readonly query: string };

/**
 * The memories for a request: those it brought, or what the source finds. Never rejects for a source that fails (ARCHITECTURE.md, "fails
 * open"); the source keeps its own deadline.
 *
 * @param signal asked for only where the source is: signals cost more than most that a request does
 */
export async function lookUpMemories(
  source: MemorySource | null,
  scope: Scope,
  request: ComposeRequest,
  signal: () => AbortSignal,
): Promise<MemoryLookup> {
  if (request.memories !== null) return { found: request.memories };
  const query = request.query ?? lastQuestion(request);
  if (source === null || query.trim() === "") return { found: [] };
  try {
    return { found: await source.search({ scope, query, topK: request.topK }, signal()) };
  } catch (error) {
    if (error instanceof MemorySourceError) return { failed: error, query };
    throw error;
  }
}

/** The lookup's memories, or what is known of the scope that shares words with the query; and what to tell the caller. */
export function settleLookup(
  lookup: MemoryLookup,
  register: BlockRegister,
  topK: number,
): { readonly memories: readonly RetrievedMemory[]; readonly warnings: readonly Warning[] } {
  if ("found" in lookup) return { memories: lookup.found, warnings: [] };
  const memories = recallKnown(register, lookup.query, topK);
  const message = `${lookup.failed.message}; composed from ${memories.length} memories known already`;
  return { memories, warnings: [{ code: "memory_source_failed", message }] };
}

function lastQuestion(request: ComposeRequest): string {
  const question = request.messages.findLast((message) => message.role === "user");
  return question === undefined ? "" : messageText(question);
}
