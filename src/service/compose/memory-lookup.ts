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
import type { DeletionWatch } from "../scopes/deletions-meanwhile.js";
import type { ComposeRequest } from "./compose-request.js";

/** What a lookup came to. A failed one still gives a prompt: from the memories that are known already. */
export type MemoryLookup =
  | {
      readonly found: readonly RetrievedMemory[];
      /** Those of them whose text was too long and is given in part. */
      readonly cut?: readonly MemoryId[];
      /** The user's id in the source, where nothing was found under it and it is not the caller's own. */
      readonly emptyUnder?: string;
    }
  | { readonly failed: MemorySourceError; readonly query: string };

/** A lookup that waits to be composed: what was deleted since does not come back by it. */
export type WaitingLookup = MemoryLookup & { readonly watch?: DeletionWatch };

/** Where memories are looked for, and how long their texts may be. */
export interface LookupParts {
  readonly source: MemorySource | null;
  /** Characters (UTF-16 units) of one memory's text. */
  readonly maxMemoryCharacters: number;
}

/**
 * The memories for a request: those it brought, or what the source finds. Never rejects for a source that fails
 * (docs/internals/architecture.md, "Promises"); the source keeps its own deadline.
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

/** The lookup's memories, or what is known of the scope that shares words with the query; and what to tell the caller. */
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
  return [{ code: "memory_cut", message: `has a text that is too long; its beginning is given`, memoryIds }];
}

/** Only for a user of whom no memory was ever seen: who has some has them under this id. */
function scopedIdWarnings(id: string | undefined, register: BlockRegister): readonly Warning[] {
  if (id === undefined || register.size > 0) return [];
  const message = `nothing was found in Mem0, where this user is ${JSON.stringify(id)}; memories kept there under the plain user id need a key of the tenant default`;
  return [{ code: "user_id_scoped", message }];
}

function lastQuestion(request: ComposeRequest): string {
  const question = request.messages.findLast((message) => message.role === "user");
  return question === undefined ? "" : messageText(question);
}
