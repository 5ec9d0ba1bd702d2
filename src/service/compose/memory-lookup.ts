import {
  type BlockRegister,
  cutText,
  type MemoryId,
  messageText,
  type RetrievedMemory,
  recallKnown,
  type Scope,
  type Warning,
} from "../../core/index.js";
import { type MemorySource, MemorySourceError } from "../../memory/memory-source.js";
import type { DeletionWatch } from "../scopes/deletion-watch.js";
import type { ComposeRequest } from "./compose-request.js";

/** The result of a lookup. After a failed one the prompt is composed from known memories. */
export type MemoryLookup =
  | {
      readonly found: readonly RetrievedMemory[];
      /** Those whose text was truncated. */
      readonly cut?: readonly MemoryId[];
      /** The user's id in the source, if nothing was found under it and it differs from the caller's. */
      readonly emptyUnder?: string;
    }
  | { readonly failed: MemorySourceError; readonly query: string };

/** A lookup whose request waits to be composed; the watch detects memories deleted meanwhile. */
export type WaitingLookup = MemoryLookup & { readonly watch?: DeletionWatch };

/** The memory source, and the maximum length of a memory. */
export interface LookupParts {
  readonly source: MemorySource | null;
  /** Maximum characters (UTF-16 units) of one memory's text. */
  readonly maxMemoryCharacters: number;
}

/**
 * The memories for a request: its own, or the source's search results. Does not reject if the source fails (docs/internals/architecture.md,
 * "Promises"); the source has its own time-out.
 */
export async function lookUpMemories(
  { source, maxMemoryCharacters }: LookupParts,
  scope: Scope,
  request: ComposeRequest,
  signal: AbortSignal,
): Promise<MemoryLookup> {
  if (request.memories !== null) return withinLength(request.memories, maxMemoryCharacters);
  const query = request.query ?? lastQuestion(request);
  if (source === null || query.trim() === "") return { found: [] };
  try {
    const found = await source.search({ scope, query, topK: request.topK }, signal);
    if (found.length > 0) return withinLength(found, maxMemoryCharacters);
    const sourceUserId = source.sourceUserId?.(scope) ?? scope.userId;
    return sourceUserId === scope.userId ? { found } : { found, emptyUnder: sourceUserId };
  } catch (error) {
    if (error instanceof MemorySourceError) return { failed: error, query };
    throw error;
  }
}

/** The found memories; after a failed lookup, the scope's known memories that share words with the query. With the resulting warnings. */
export function settleLookup(
  lookup: MemoryLookup,
  register: BlockRegister,
  topK: number,
): { readonly memories: readonly RetrievedMemory[]; readonly warnings: readonly Warning[] } {
  if ("found" in lookup) {
    const warnings = [...cutWarnings(lookup.cut ?? []), ...scopedIdWarnings(lookup.emptyUnder, register)];
    return { memories: lookup.found, warnings };
  }
  const memories = recallKnown(register, lookup.query, topK);
  const message = `${lookup.failed.message}; composed from ${memories.length} memories known already`;
  return { memories, warnings: [{ code: "memory_source_failed", message }] };
}

function withinLength(found: readonly RetrievedMemory[], max: number): MemoryLookup {
  const cut = found.filter(({ text }) => text.length > max).map(({ id }) => id);
  if (cut.length === 0) return { found };
  return { found: found.map(({ id, text }) => ({ id, text: cutText(text, max) })), cut };
}

function cutWarnings(memoryIds: readonly MemoryId[]): readonly Warning[] {
  if (memoryIds.length === 0) return [];
  return [{ code: "memory_cut", message: "has a text that is too long; it was truncated", memoryIds }];
}

/** Only if no memory of the user was ever seen: otherwise the id in the source is right. */
function scopedIdWarnings(id: string | undefined, register: BlockRegister): readonly Warning[] {
  if (id === undefined || register.size > 0) return [];
  const message = `nothing was found in Mem0, where this user is ${JSON.stringify(id)}; memories kept there under the plain user id need a key of the tenant default`;
  return [{ code: "user_id_scoped", message }];
}

function lastQuestion(request: ComposeRequest): string {
  const question = request.messages.findLast((message) => message.role === "user");
  return question === undefined ? "" : messageText(question);
}
