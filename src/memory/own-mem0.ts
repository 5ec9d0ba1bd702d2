import { type AddCallOptions, addArguments, searchFilters, searchOptions } from "./mem0-identity.js";
import { type AddedMessage, type MemorySource, MemorySourceError } from "./memory-source.js";
import { sharedMem0 } from "./shared-mem0.js";

/** A caller's own Mem0: `Memory`, `MemoryClient`, or any object that searches as they do. memprefix never closes it. */
export interface OwnMem0 {
  /** The most relevant memories, best first, in any of Mem0's answer forms. `topK`: 1 to 1,000. */
  search(
    query: string,
    options: {
      filters: { user_id: string; agent_id?: string; [condition: string]: unknown };
      topK: number;
      /** The platform's: without superseded versions. */
      latestOnly: true;
      showExpired?: true;
      rerank?: true;
      /** A date, or seconds since the epoch. */
      referenceDate?: string | number;
      threshold?: number;
    },
  ): Promise<unknown> | unknown;
  /** With `infer: false`, keeps texts unmodified. Absent: memprefix's `add` is not supported. */
  add?(messages: AddedMessage[], options: AddCallOptions): Promise<unknown> | unknown;
  /** A memory with its `user_id`; null for none. If present, only the user's own memories are deleted. */
  get?(id: string): Promise<unknown> | unknown;
  delete?(id: string): Promise<unknown> | unknown;
}

const NAME = "own";

/** A caller's own Mem0 as a source; its meaning of a scope applies. A signal does not stop a call in progress: {@link withDeadline} abandons it. */
export function openOwnMem0(own: OwnMem0): MemorySource {
  return sharedMem0(NAME, {
    search(search, query, topK) {
      const searching = { filters: searchFilters(search), latestOnly: true as const, ...searchOptions(search) };
      return run(() => own.search(query, { ...searching, topK }));
    },
    ...(own.get && { get: (id) => found(() => own.get?.(id)) }),
    ...(own.add && {
      async add(scope, addition, signal) {
        if (signal.aborted) throw new MemorySourceError(NAME, { kind: "aborted" });
        return run(() => own.add?.(...addArguments(scope, addition)));
      },
    }),
    ...(own.delete && { delete: async (id) => (await found(() => own.delete?.(id))) !== null }),
  });
}

async function run(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof MemorySourceError) throw error;
    const [refused] = error instanceof Error ? (REFUSED_ID.exec(error.message) ?? []) : [];
    if (refused !== undefined)
      throw new MemorySourceError(NAME, { kind: "unsupported", operation: `use an id that it refuses: ${refused}` });
    throw new MemorySourceError(NAME, { kind: "unreachable", cause: kindOf(error) });
  }
}

async function found(call: () => unknown): Promise<unknown> {
  return await run(async () => {
    try {
      return await call();
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  });
}

/** `MemoryClient` throws a class of error, `Memory` a sentence. */
function isMissing(error: unknown): boolean {
  return error instanceof Error && (error.name === "MemoryNotFoundError" || MISSING.test(error.message));
}

/** `Memory`'s words for an id with white space. */
const REFUSED_ID = /^Invalid \w+: cannot (?:be empty|contain whitespace)/;
const MISSING = /^Memory with ID .{1,200} not found$/s;

/** Without the message, which may quote a memory or a key. */
function kindOf(error: unknown): string {
  return error instanceof Error ? `its call failed with ${error.name}` : "its call failed";
}
