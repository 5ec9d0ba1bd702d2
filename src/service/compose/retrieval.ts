import {
  type BlockRegister,
  type Digest,
  ENDED,
  type EndedMemory,
  LruMap,
  MAX_MEMORY_CHARACTERS,
  type MemoryId,
  messageText,
  type RenderedMemory,
  type RetrievedMemory,
  recallKnown,
  renderMemory,
  type Scope,
  type Warning,
} from "../../core/index.js";
import { type MemorySource, MemorySourceError, type SearchOptions } from "../../memory/memory-source.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import { type ComposeRequest, topKOf } from "./compose-request.js";

/** The retrieved blocks of a request. */
export interface Retrieved {
  readonly lookup: MemoryLookup;
  /** The blocks that a batch plan places first, by the digests of their texts; empty: none. */
  readonly front: readonly Digest[];
}

/** The result of a lookup. After a failed one the prompt is composed from known memories. */
export type MemoryLookup =
  | {
      /** As their blocks give them. */
      readonly found: readonly RenderedMemory[];
      /** Memories known before as they are now, which were not found. */
      readonly changed?: readonly RenderedMemory[];
      /** Those whose text was truncated. */
      readonly cut?: readonly MemoryId[];
      /** Those that no longer hold, and are not among the found ones. */
      readonly ended?: readonly EndedMemory[];
      /** The user's id in the source, if nothing was found under it and it differs from the caller's. */
      readonly emptyUnder?: string;
    }
  /** `query` is null where the request narrowed its search by what is not known of memories. */
  | { readonly failed: MemorySourceError; readonly query: string | null };

/** A lookup whose request waits to be composed, with the number of the user's row then: a deletion makes it another one. */
export type WaitingLookup = MemoryLookup & { readonly userNumber?: number };

/** The memory source, and the defaults of a search. */
type LookupParts = Pick<MemprefixParts, "source" | "now" | "defaults">;

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
  if (request.memories !== null) return asBlocks(parts, request, request.memories, false);
  const query = request.query ?? lastQuestion(request);
  if (source === null || query.trim() === "") return { found: [] };
  try {
    const topK = topKOf(request, parts.defaults);
    const options = searchOptionsOf(parts.defaults, request);
    const found = await source.search({ scope, query, topK, options }, signal);
    if (found.length > 0) return asBlocks(parts, request, found, true);
    const sourceUserId = source.sourceUserId?.(scope) ?? scope.userId;
    return sourceUserId === scope.userId ? { found } : { found, emptyUnder: sourceUserId };
  } catch (error) {
    if (error instanceof MemorySourceError) return { failed: error, query: isNarrowed(request) ? null : query };
    throw error;
  }
}

/** Whether a request is about some of the memories alone, by its own choice: none but what its search found may stand in its prompt. */
export function isNarrowed({ search }: ComposeRequest): boolean {
  return search?.filters != null;
}

/** The configured options with a request's, option by option. The conditions of both apply. */
function searchOptionsOf(
  { search: configured = {} }: LookupParts["defaults"],
  { search }: ComposeRequest,
): SearchOptions {
  const asked = Object.fromEntries(Object.entries(search ?? {}).filter(([, value]) => value !== null)) as SearchOptions;
  const filters = joined(asked.filters, configured.filters);
  return { ...configured, ...asked, filters, ...(configured.filters == null ? {} : { isChecked: true }) };
}

/**
 * Conditions that all apply. At the top where their names differ, since the open-source Mem0 takes nothing nested; the operator's last, since
 * of two on a field it takes the last.
 */
function joined(asked: SearchOptions["filters"] = null, configured: SearchOptions["filters"] = null) {
  if (asked === null || configured === null) return asked ?? configured;
  const every = [...conditionsIn(asked), ...conditionsIn(configured)];
  const isOnce = ([name]: Condition) => every.filter(([other]) => other === name).length === 1;
  const others = every.filter((one) => !isOnce(one)).map(([name, condition]) => ({ [name]: condition }));
  return { ...Object.fromEntries(every.filter(isOnce)), ...(others.length === 0 ? {} : { AND: others }) };
}

type Condition = readonly [name: string, condition: unknown];

function conditionsIn(filters: object): readonly Condition[] {
  return Object.entries(filters).flatMap(([name, condition]: Condition) =>
    name === "AND" && Array.isArray(condition) ? condition.flatMap(conditionsIn) : [[name, condition] as const],
  );
}

/** A lookup's memories, and the resulting warnings. */
export interface SettledLookup {
  readonly memories: readonly RenderedMemory[];
  readonly changed: readonly RenderedMemory[];
  readonly ended: readonly EndedMemory[];
  readonly warnings: readonly Warning[];
}

/**
 * The found memories; after a failed lookup, the scope's known memories that share words with the query, and hold at `now`, in milliseconds
 * since the epoch.
 */
export function settleLookup(lookup: MemoryLookup, register: BlockRegister, topK: number, now: number): SettledLookup {
  if ("found" in lookup) {
    const { found, changed = [], cut = [], ended = [], emptyUnder } = lookup;
    const warnings = [...cutWarnings(cut), ...endedWarnings(ended), ...scopedIdWarnings(emptyUnder, register)];
    return { memories: found, changed, ended, warnings };
  }
  register.expire(now);
  const memories = lookup.query === null ? [] : recallKnown(register, lookup.query, topK);
  const message = `${lookup.failed.message}; composed from ${memories.length} memories known already`;
  return { memories, changed: [], ended: [], warnings: [{ code: "memory_source_failed", message }] };
}

/**
 * A lookup with what its source says of memories that the conversation has from it and that were not found; and those of them that the
 * source no longer has. A source whose search failed is not believed that it has nothing.
 */
export function withCheck(
  parts: LookupParts,
  request: ComposeRequest,
  lookup: WaitingLookup,
  { kept, gone }: SourceCheck,
): { readonly lookup: WaitingLookup; readonly gone: readonly MemoryId[] } {
  if ("failed" in lookup || (kept.length === 0 && gone.length === 0)) return { lookup, gone: [] };
  const seen = new Set([...lookup.found, ...(lookup.ended ?? [])].map(({ id }) => id));
  const now = asBlocks(
    parts,
    request,
    kept.filter(({ id }) => !seen.has(id)),
    true,
  );
  const ended = [...(lookup.ended ?? []), ...(now.ended ?? [])];
  return {
    lookup: { ...lookup, changed: now.found, ...(ended.length === 0 ? {} : { ended }) },
    gone: gone.filter((id) => !seen.has(id)),
  };
}

/** Warnings about items of a request's memories that are none. */
export function unusableWarnings({ unusable }: Pick<ComposeRequest, "unusable">): readonly Warning[] {
  if (unusable === undefined) return [];
  const { count, issues } = unusable;
  const said = issues.map(({ path, message }) => `${path} ${message}`).join("; ");
  return [{ code: "memory_unusable", message: `${count} of the given memories left out: ${said}` }];
}

/** The memories that hold as their blocks give them, each within the maximum length; and those that do not. */
function asBlocks(
  parts: LookupParts,
  request: ComposeRequest,
  given: readonly RetrievedMemory[],
  isFound: boolean,
): Extract<MemoryLookup, { readonly found: unknown }> {
  const now = parts.now();
  const { showExpired } = searchOptionsOf(parts.defaults, request);
  // A request for expired ones gets them, in this prompt.
  const hasEnded = ({ end }: RetrievedMemory) => end !== undefined && end.until <= (showExpired === true ? ENDED : now);
  if (!given.some(hasEnded)) return rendered(request, given, isFound);
  const found = given.filter((memory) => !hasEnded(memory));
  // Of the same memory twice, as of one that was deleted and added again, what holds counts.
  const holding = new Set(found.map(({ id }) => id));
  const ended = given
    .filter((memory) => hasEnded(memory) && !holding.has(memory.id))
    .map(({ id, end }): EndedMemory => ({ id, replacedBy: end?.replacedBy }));
  return { ...rendered(request, found, isFound), ended };
}

function rendered({ dates }: ComposeRequest, found: readonly RetrievedMemory[], isFound: boolean) {
  const cut: MemoryId[] = [];
  const blocks = found.map((given) => {
    const { memory, isCut } = renderMemory(given, dates === true, MAX_MEMORY_CHARACTERS);
    if (isCut) cut.push(memory.id);
    return isFound ? { ...memory, found: true as const } : memory;
  });
  return cut.length === 0 ? { found: blocks } : { found: blocks, cut };
}

function endedWarnings(ended: readonly EndedMemory[]): readonly Warning[] {
  if (ended.length === 0) return [];
  const message = "no longer holds, as its source says; it is not sent";
  return [{ code: "memory_ended", message, memoryIds: ended.map(({ id }) => id) }];
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

/** Most memories whose state one prompt has its source report. */
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
 * Checks memories that a source of another system gave before: searches find what fits the question, and so never
 * say what changed of the others. Of many, those come first that were not seen there for longest.
 */
export class SourceChecks {
  /** When each was seen, by a count of checks. */
  readonly #seen = new LruMap<string, number>(MOST_REMEMBERED);
  #count = 0;

  /**
   * @param source null: nothing is asked
   * @param filters the operator's conditions
   */
  constructor(
    private readonly source: MemorySource | null,
    private readonly filters: SearchOptions["filters"],
  ) {}

  /** Whether there is anything to ask. */
  get isPossible(): boolean {
    return this.source?.current !== undefined;
  }

  /**
   * What became of the memories, as far as the source says. Does not reject: what cannot be asked stays as it is known.
   *
   * @param isLook whether nothing of it will be sent: the next check is of the same ones
   */
  async check(scope: Scope, standing: readonly MemoryId[], isLook: boolean, signal: AbortSignal): Promise<SourceCheck> {
    if (this.source?.current === undefined || standing.length === 0) return NOTHING_CHECKED;
    const ids = standing
      .map((id) => ({ id, key: seenKey(scope, id) }))
      .map((one) => ({ ...one, seen: this.#seen.get(one.key) ?? 0 }))
      .sort((a, b) => a.seen - b.seen)
      .slice(0, MOST_CHECKED);
    const order = ++this.#count;
    if (!isLook) for (const { key } of ids) this.#seen.set(key, order);
    try {
      return await this.source.current(
        scope,
        ids.map(({ id }) => id),
        this.filters,
        signal,
      );
    } catch (error) {
      if (error instanceof MemorySourceError) return NOTHING_CHECKED;
      throw error;
    }
  }
}

function seenKey({ tenant, userId }: Scope, id: MemoryId): string {
  return JSON.stringify([tenant, userId, id]);
}
