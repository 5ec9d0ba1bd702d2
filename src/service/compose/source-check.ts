import { LruMap, type MemoryId, type RetrievedMemory, type Scope } from "../../core/index.js";
import { type MemorySource, MemorySourceError } from "../../memory/memory-source.js";

/** Most memories that one prompt asks its source about. */
const MOST_CHECKED = 16;
/** Memories of which it is known when they were last seen at their source; those of others come first. */
const MOST_REMEMBERED = 50_000;

/** What a source now says of memories that a conversation has from it. */
export interface SourceCheck {
  /** As they are there now. */
  readonly kept: readonly RetrievedMemory[];
  readonly gone: readonly MemoryId[];
}

export const NOTHING_CHECKED: SourceCheck = { kept: [], gone: [] };

/**
 * Asks a source that another system owns what became of memories that it gave before: searches find what fits the question, and so never
 * say what changed of the others. Of many, those come first that were not seen there for longest.
 */
export class SourceChecks {
  /** When each was seen, by a count of checks. */
  readonly #seen = new LruMap<string, number>(MOST_REMEMBERED);
  #count = 0;

  /** @param source null: nothing is asked */
  constructor(private readonly source: MemorySource | null) {}

  /** Whether there is anything to ask. */
  get isPossible(): boolean {
    return this.source?.current !== undefined;
  }

  /** What became of the memories, as far as the source says. Does not reject: what cannot be asked stays as it is known. */
  async check(scope: Scope, standing: readonly MemoryId[], signal: AbortSignal): Promise<SourceCheck> {
    if (this.source?.current === undefined || standing.length === 0) return NOTHING_CHECKED;
    const order = ++this.#count;
    const ids = standing
      .map((id) => ({ id, key: keyOf(scope, id) }))
      .map((one) => ({ ...one, seen: this.#seen.get(one.key) ?? 0 }))
      .sort((a, b) => a.seen - b.seen)
      .slice(0, MOST_CHECKED);
    for (const { key } of ids) this.#seen.set(key, order);
    try {
      return await this.source.current(
        scope,
        ids.map(({ id }) => id),
        signal,
      );
    } catch (error) {
      if (error instanceof MemorySourceError) return NOTHING_CHECKED;
      throw error;
    }
  }
}

function keyOf({ tenant, userId }: Scope, id: MemoryId): string {
  return JSON.stringify([tenant, userId, id]);
}
