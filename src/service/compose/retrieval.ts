import {
  type BlockRegister,
  ENDED,
  type EndedMemory,
  LruMap,
  MAX_MEMORY_CHARACTERS,
  type MemoryId,
  memoryWarning,
  messageText,
  type RenderedMemory,
  type RetrievedMemory,
  recallKnown,
  renderMemory,
  type Scope,
  type Warning,
} from "../../core/index.js";
import { boundedQuery } from "../../core/text/query.js";
import { type MemorySource, MemorySourceError, type SearchOptions } from "../../memory/memory-source.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import { type ComposeRequest, topKOf } from "./compose-request.js";

export interface Retrieved {
  readonly lookup: MemoryLookup;
  /** The blocks that a batch plan places first, by their texts. */
  readonly front: readonly string[];
}

/** The result of a lookup. After a failure the prompt is composed from known memories. */
export type MemoryLookup =
  | {
      readonly found: readonly RenderedMemory[];
      /** Known memories in their current form, which the search did not find. */
      readonly changed?: readonly RenderedMemory[];
      /** Those whose text was truncated. */
      readonly cut?: readonly MemoryId[];
      /** Memories that no longer hold, and were not found. */
      readonly ended?: readonly EndedMemory[];
    }
  /** `query` is null if the request narrowed its search by something unknown about memories. */
  | { readonly failed: MemorySourceError; readonly query: string | null };

/** A lookup whose request waits. `userNumber`: the user's row at the lookup; it changes with a deletion. */
export type WaitingLookup = MemoryLookup & { readonly userNumber?: number };

type LookupParts = Pick<MemprefixParts, "source" | "now" | "defaults">;

/** The request's own memories, or else the source's search results. Does not reject if the source fails; the source has its own time-out. */
export async function lookUpMemories(
  parts: LookupParts,
  scope: Scope,
  request: ComposeRequest,
  signal: AbortSignal,
): Promise<MemoryLookup> {
  const { source } = parts;
  if (request.memories !== null) return asBlocks(parts, request, request.memories, false);
  const query = request.query === null ? lastQuestion(request) : boundedQuery(request.query);
  if (source === null || query.trim() === "") return { found: [] };
  try {
    const topK = topKOf(request, parts.defaults);
    const options = searchOptionsOf(parts.defaults, request);
    const found = await source.search({ scope, query, topK, options }, signal);
    return asBlocks(parts, request, found, true);
  } catch (error) {
    if (error instanceof MemorySourceError) return { failed: error, query: isNarrowed(request) ? null : query };
    throw error;
  }
}

/** Whether the request restricts its memories, so that only those its search found may be in its prompt. */
export function isNarrowed({ search }: ComposeRequest): boolean {
  return search?.filters != null;
}

/** The configured search options, overridden by the request's. The conditions of both apply. */
export function searchOptionsOf(
  { search: configured = {} }: LookupParts["defaults"],
  { search }: Pick<ComposeRequest, "search">,
): SearchOptions {
  const asked = Object.fromEntries(Object.entries(search ?? {}).filter(([, value]) => value !== null)) as SearchOptions;
  const filters = joined(asked.filters, configured.filters);
  return { ...configured, ...asked, filters, ...(configured.filters == null ? {} : { isChecked: true }) };
}

/** Conditions that all apply. Flat if possible, since open-source Mem0 takes no nesting; the operator's last: of two on one field it takes that. */
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

export interface SettledLookup {
  readonly memories: readonly RenderedMemory[];
  readonly changed: readonly RenderedMemory[];
  readonly ended: readonly EndedMemory[];
  readonly warnings: readonly Warning[];
}

/** The found memories; after a failed lookup, the known ones that share words with the query and hold at `now` (milliseconds). */
export function settleLookup(lookup: MemoryLookup, register: BlockRegister, topK: number, now: number): SettledLookup {
  if ("found" in lookup) {
    const { found, changed = [], cut = [], ended = [] } = lookup;
    const endedIds = ended.map(({ id }) => id);
    const warnings = [
      ...memoryWarning("memory_cut", "has a text that is too long; it was truncated", cut),
      ...memoryWarning("memory_ended", "no longer holds, as its source says; it is not sent", endedIds),
    ];
    return { memories: found, changed, ended, warnings };
  }
  register.expire(now);
  const memories = lookup.query === null ? [] : recallKnown(register, lookup.query, topK);
  const message = `${lookup.failed.message}; composed from ${memories.length} memories known already`;
  return { memories, changed: [], ended: [], warnings: [{ code: "memory_source_failed", message }] };
}

/** Adds what the source says of the conversation's other memories; `gone`: it no longer has them. After a failed search, none is gone. */
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

export function unusableWarnings({ unusable }: Pick<ComposeRequest, "unusable">): readonly Warning[] {
  if (unusable === undefined) return [];
  const { count, issues } = unusable;
  const said = issues.map(({ path, message }) => `${path} ${message}`).join("; ");
  return [{ code: "memory_unusable", message: `${count} of the given memories left out: ${said}` }];
}

/** A search that includes expired memories has them. */
export function hasEndedAt(now: number, showExpired: SearchOptions["showExpired"]) {
  return ({ end }: RetrievedMemory) => end !== undefined && end.until <= (showExpired === true ? ENDED : now);
}

/** The memories that hold, as blocks within the maximum length; and those that do not hold. */
function asBlocks(
  parts: LookupParts,
  request: ComposeRequest,
  given: readonly RetrievedMemory[],
  isFound: boolean,
): Extract<MemoryLookup, { readonly found: unknown }> {
  const now = parts.now();
  const { showExpired } = searchOptionsOf(parts.defaults, request);
  const hasEnded = hasEndedAt(now, showExpired);
  if (!given.some(hasEnded)) return rendered(request, given, isFound);
  const found = given.filter((memory) => !hasEnded(memory));
  // If a memory appears twice, for example deleted and added again, the one that holds counts.
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

/** The newest words of the user: a message of images alone has none. */
function lastQuestion({ messages }: ComposeRequest): string {
  for (const message of messages.toReversed()) {
    const question = message.role === "user" ? boundedQuery(messageText(message)) : "";
    if (question.trim() !== "") return question;
  }
  return "";
}

/** Most memories that the source is asked about per prompt. */
const MOST_CHECKED = 16;
/** Most memories whose last check is remembered; all others are checked first. */
const MOST_REMEMBERED = 50_000;

export interface SourceCheck {
  readonly kept: readonly RetrievedMemory[];
  readonly gone: readonly MemoryId[];
}

export const NOTHING_CHECKED: SourceCheck = { kept: [], gone: [] };

/** Checks memories that an external source gave before, since searches do not report their changes. The least recently checked come first. */
export class SourceChecks {
  readonly #seen = new LruMap<string, number>(MOST_REMEMBERED);
  #count = 0;

  /** @param filters the operator's conditions */
  constructor(
    private readonly source: MemorySource | null,
    private readonly filters: SearchOptions["filters"],
  ) {}

  get isPossible(): boolean {
    return this.source?.current !== undefined;
  }

  /** Does not reject: what cannot be checked stays as known. @param isLook nothing will be sent, so the next check repeats this one */
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
