import {
  type BlockRegister,
  type BlockTemplates,
  DEFAULT_BLOCK_TEMPLATE,
  DEFAULT_TIME_ZONE,
  type MemoryId,
  messageText,
  type RenderedMemory,
  type RetrievedMemory,
  recallKnown,
  renderMemory,
  type Scope,
  type Warning,
} from "../../core/index.js";
import { type MemorySource, MemorySourceError } from "../../memory/memory-source.js";
import type { DeletionWatch } from "../scopes/deletion-watch.js";
import { type ComposeRequest, DEFAULT_TOP_K } from "./compose-request.js";

/** The result of a lookup. After a failed one the prompt is composed from known memories. */
export type MemoryLookup =
  | {
      /** As their blocks give them. */
      readonly found: readonly RenderedMemory[];
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
  /** Where a request names none. Default: {@link DEFAULT_BLOCK_TEMPLATE}, {@link DEFAULT_TIME_ZONE}. */
  readonly blockTemplate?: string | undefined;
  readonly timeZone?: string | undefined;
  readonly templates: BlockTemplates;
  /** Default: {@link DEFAULT_TOP_K}. */
  readonly topK?: number | undefined;
}

/**
 * The memories for a request: its own, or the source's search results. Does not reject if the source fails (docs/internals/architecture.md,
 * "Promises"); the source has its own time-out.
 */
export async function lookUpMemories(
  parts: LookupParts,
  scope: Scope,
  request: ComposeRequest,
  signal: AbortSignal,
): Promise<MemoryLookup> {
  const { source } = parts;
  if (request.memories !== null) return asBlocks(parts, request, request.memories);
  const query = request.query ?? lastQuestion(request);
  if (source === null || query.trim() === "") return { found: [] };
  try {
    const found = await source.search({ scope, query, topK: request.topK ?? parts.topK ?? DEFAULT_TOP_K }, signal);
    if (found.length > 0) return asBlocks(parts, request, found);
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
): { readonly memories: readonly RenderedMemory[]; readonly warnings: readonly Warning[] } {
  if ("found" in lookup) {
    const warnings = [...cutWarnings(lookup.cut ?? []), ...scopedIdWarnings(lookup.emptyUnder, register)];
    return { memories: lookup.found, warnings };
  }
  const memories = recallKnown(register, lookup.query, topK);
  const message = `${lookup.failed.message}; composed from ${memories.length} memories known already`;
  return { memories, warnings: [{ code: "memory_source_failed", message }] };
}

/** The memories as their blocks give them, each within the maximum length. */
function asBlocks(parts: LookupParts, request: ComposeRequest, found: readonly RetrievedMemory[]): MemoryLookup {
  const source = request.blockTemplate ?? parts.blockTemplate ?? DEFAULT_BLOCK_TEMPLATE;
  const template = parts.templates.get(source, request.timeZone ?? parts.timeZone ?? DEFAULT_TIME_ZONE);
  const cut: MemoryId[] = [];
  const rendered = found.map((given) => {
    const { memory, isCut } = renderMemory(template, given, parts.maxMemoryCharacters);
    if (isCut) cut.push(memory.id);
    return memory;
  });
  return cut.length === 0 ? { found: rendered } : { found: rendered, cut };
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
