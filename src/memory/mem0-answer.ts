import { ENDED, type MemoryEnd, type RetrievedMemory } from "../core/blocks/context-block.js";
import { append } from "../core/text/collections.js";
import { endOfDay, type GivenTime, instantOf } from "../core/text/given-time.js";
import type { MemoryId } from "../core/text/ids.js";
import { isObject, isRecord, record } from "../core/text/json.js";
import { foundTextProblem, unstorable } from "../core/text/memory-text.js";

/** What is wrong with a Mem0 answer, and where: `memories.results[3].memory`. Never quotes memory text. */
export interface AnswerIssue {
  readonly path: string;
  readonly message: string;
}

/** `root`: what issues call the value, default `memories`. Items that do not `belong` are left out and counted as skipped. */
export interface AnswerReading {
  readonly root?: string;
  readonly belongs?: (item: Mem0Item) => boolean;
}

/** The memories of an answer, best first, with issues of the items left out; or why it is no answer. One bad item does not affect the others. */
export type AnswerRead =
  | {
      readonly ok: true;
      readonly memories: readonly RetrievedMemory[];
      readonly skipped: number;
      readonly issues: readonly AnswerIssue[];
    }
  | { readonly ok: false; readonly issues: readonly AnswerIssue[] };

/** One item as Mem0 gave it: camelCase (hosted SDK), snake_case (REST) or both (OSS). */
export type Mem0Item = Readonly<Record<string, unknown>>;

/** More would make an answer as large as the request. */
const MAX_ISSUES = 20;
const MAX_ID_CHARACTERS = 1_000;

/** Parsing an integer above 2^53 loses digits: two memories could get the same id. */
const ID_WANTED = `must be a string of 1 to ${MAX_ID_CHARACTERS} characters, or an integer of at most 2^53 - 1`;

/** Replaces a memory that was not read, in a list of memories. */
export class UnreadMemory {
  /** `problem` completes a sentence about the memory: "must …". */
  constructor(readonly problem: string) {}
}

interface ReadItem extends Mem0Item {
  readonly id: string;
  readonly memory: string;
}

/** The item, or its issues. By hand, because a schema takes five times as long and every item of every search passes here. */
function readItem(given: unknown): ReadItem | readonly AnswerIssue[] {
  if (!isObject(given)) return [{ path: "", message: "must be an object with id and memory" }];
  const item: Mem0Item = given;
  const { id, memory } = item;
  const isText = typeof id === "string" && id.length > 0 && id.length <= MAX_ID_CHARACTERS;
  const ofId = isText ? unstorable(id) : Number.isSafeInteger(id) ? null : ID_WANTED;
  const ofText = typeof memory === "string" ? foundTextProblem(memory) : "must be a string";
  if (ofId === null) {
    const read = isText ? item : { ...item, id: String(id) };
    if (ofText === null) return read as ReadItem;
    if (mem0End(read)?.until === ENDED)
      return { ...read, memory: typeof memory === "string" ? memory : "" } as ReadItem;
  }
  if (given instanceof UnreadMemory) return [{ path: "", message: given.problem }];
  return [
    ...(ofId === null ? [] : [{ path: ".id", message: ofId }]),
    ...(ofText === null ? [] : [{ path: ".memory", message: ofText }]),
  ];
}

/**
 * Reads a bare array, `{ results }` or a page `{ count, next, previous, results }`. Keeps the order, unless items have a `rerankScore` or
 * `rerank_score`: then highest first, items without one last. Never throws.
 */
export function readMem0Answer(value: unknown, reading: AnswerReading = {}): AnswerRead {
  const root = reading.root ?? "memories";
  const list = listOf(value);
  if (list === null) return refusal(root, "must be an array, or an object with results");
  const path = list.path === "" ? root : `${root}.${list.path}`;
  if (!Array.isArray(list.items)) return refusal(path, "must be an array");

  const ranked: RankedMemory[] = [];
  const issues: AnswerIssue[] = [];
  let skipped = 0;
  for (const [index, candidate] of list.items.entries()) {
    const read = readItem(candidate);
    if (!isIssues(read) && (reading.belongs?.(read) ?? true)) {
      ranked.push(rankedMemory(read));
      continue;
    }
    skipped += 1;
    if (!isIssues(read) || issues.length >= MAX_ISSUES) continue;
    for (const issue of read) issues.push({ ...issue, path: `${path}[${index}]${issue.path}` });
  }
  return { ok: true, memories: byRerankScore(ranked), skipped, issues: issues.slice(0, MAX_ISSUES) };
}

function isIssues(read: ReadItem | readonly AnswerIssue[]): read is readonly AnswerIssue[] {
  return Array.isArray(read);
}

interface RankedMemory {
  readonly memory: RetrievedMemory;
  readonly rerankScore: number | null;
}

function listOf(value: unknown): { readonly items: unknown; readonly path: string } | null {
  if (Array.isArray(value)) return { items: value, path: "" };
  if (isRecord(value) && "results" in value) return { items: value["results"], path: "results" };
  return null;
}

function rankedMemory(parsed: ReadItem): RankedMemory {
  const score = parsed["rerankScore"] ?? parsed["rerank_score"];
  const createdAt = timestampOf(parsed["createdAt"] ?? parsed["created_at"]);
  const end = mem0End(parsed);
  const updatedAt = timestampOf(parsed["updatedAt"] ?? parsed["updated_at"]);
  const ofRun = (parsed["run_id"] ?? parsed["runId"]) != null;
  const origin = mem0Origin(parsed);
  return {
    memory: {
      id: parsed.id as MemoryId,
      text: parsed.memory,
      ...(createdAt !== undefined && { createdAt }),
      ...(updatedAt !== undefined && { updatedAt }),
      ...(end && { end }),
      ...(ofRun && { ofRun: true }),
      ...(origin !== undefined && { origin }),
    },
    rerankScore: typeof score === "number" && Number.isFinite(score) ? score : null,
  };
}

/** Ignores `score`: Mem0 has already sorted by it, and its rounding must not reorder what it calls equal. */
function byRerankScore(ranked: readonly RankedMemory[]): readonly RetrievedMemory[] {
  const order = ranked.toSorted((a, b) => {
    if (a.rerankScore === null || b.rerankScore === null)
      return Number(a.rerankScore === null) - Number(b.rerankScore === null);
    return b.rerankScore - a.rerankScore;
  });
  return order.map(({ memory }) => memory);
}

function refusal(path: string, message: string): AnswerRead {
  return { ok: false, issues: [{ path, message }] };
}

/*
 * Mem0's fields for the end of a memory. The platform's SDK writes camelCase. `mem0ai/oss` and the REST server put unknown fields in `metadata`;
 * there `state`, `event`, flags and times may be the application's.
 *
 *   expiration_date               its last day in UTC: the platform, the REST server, Python and TypeScript
 *   lifecycle_state, replaced_by  the platform: another memory took its place
 *   superseded_by, is_deleted     the same of older versions, and of histories
 *   valid_until, valid_to,        an instant; or its last day, and the first day after it
 *   expires_at, invalid_at
 *   state, status, archived_at,   OpenMemory, also as a flag or a time (`archived`, `is_archived`)
 *   deleted_at
 *   is_latest, latest, is_current whether `latest_only` would give it
 *   event: DELETE                 an answer to `add`
 */

/** In every other state a memory holds. */
const ENDED_STATES = [
  ...["superseded", "replaced", "archived", "deleted", "expired", "invalid", "invalidated", "inactive"],
  ...["outdated", "obsolete", "deprecated", "paused", "removed", "retired", "retracted", "revoked", "soft_deleted"],
];
/** Before 1970, so it is past, and differs from {@link ENDED}. */
const LONG_AGO = 1;

/** Reads a memory's end: an instant; the memory that replaced it, "" if it cannot be found; null for none. */
type EndReader = (value: unknown, item: Mem0Item) => number | string | null;

/** Python writes a state with its type in front, and some write it in two words. */
const inState: EndReader = (value) => {
  if (typeof value !== "string") return null;
  const name = value
    .trim()
    .toLowerCase()
    .split(".")
    .at(-1)
    ?.replace(/[\s-]+/g, "_");
  return ENDED_STATES.some((state) => state === name) ? ENDED : null;
};
const isSaid: EndReader = (value) => (isTruth(value, true) ? ENDED : null);
const isDenied: EndReader = (value) => (isTruth(value, false) ? ENDED : null);
/** Mem0 gives a memory on that day, and not on the next. */
const onLastDay: EndReader = (value) => endOfDay(dayOf(value));
const untilDay: EndReader = (value) => timeOf(value) ?? endOfDay(dayOf(value));
const fromDay: EndReader = (value) => timeOf(value) ?? instantOf(`${dayOf(value)}T00:00Z`);

const ANYWHERE: ReadonlyMap<string, EndReader> = inBothSpellings({
  expiration_date: onLastDay,
  lifecycle_state: inState,
  is_deleted: isSaid,
  replaced_by: successorIn,
  superseded_by: successorIn,
});
const OF_ITEM: ReadonlyMap<string, EndReader> = inBothSpellings({
  ...Object.fromEntries(
    ENDED_STATES.flatMap((state): [string, EndReader][] => [
      [state, isSaid],
      [`is_${state}`, isSaid],
      [`${state}_at`, fromDay],
    ]),
  ),
  ...Object.fromEntries(ANYWHERE),
  state: inState,
  status: inState,
  event: (value) => (typeof value === "string" && value.trim().toUpperCase() === "DELETE" ? ENDED : null),
  latest: isDenied,
  ...Object.fromEntries(["latest", "current", "active", "valid"].map((is) => [`is_${is}`, isDenied])),
  valid_until: untilDay,
  valid_to: untilDay,
  expires_at: untilDay,
  invalid_at: fromDay,
});

function inBothSpellings(readers: Readonly<Record<string, EndReader>>): ReadonlyMap<string, EndReader> {
  const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return new Map(
    Object.entries(readers).flatMap(([name, reader]) => [
      [name, reader],
      [camel(name), reader],
    ]),
  );
}

export const MAX_ORIGIN_CHARACTERS = 100;

/** What wrote a memory, in lower case: its own `origin`, else its metadata's. Undefined: it does not say. */
export function mem0Origin(item: Mem0Item): string | undefined {
  const said = item["origin"] ?? record(item["metadata"])["origin"];
  const name = typeof said === "string" ? said.trim().toLowerCase() : "";
  return name === "" || name.length > MAX_ORIGIN_CHARACTERS ? undefined : name;
}

/** Undefined if the memory has no end or it cannot be read. Never throws. */
export function mem0End(item: Mem0Item): MemoryEnd | undefined {
  const said = endsIn(item, OF_ITEM, item);
  const { metadata } = item;
  if (isRecord(metadata)) append(said, endsIn(metadata, ANYWHERE, item));
  if (said.length === 0) return undefined;
  const replacedBy = said.find((end) => typeof end === "string");
  if (replacedBy !== undefined)
    return { until: ENDED, ...(replacedBy === "" ? {} : { replacedBy: replacedBy as MemoryId }) };
  const [until = ENDED] = said.filter((end) => typeof end === "number").sort((a, b) => a - b);
  return { until };
}

function endsIn(fields: Mem0Item, readers: ReadonlyMap<string, EndReader>, item: Mem0Item): (number | string)[] {
  const ends: (number | string)[] = [];
  for (const name of Object.keys(fields)) {
    const end = readers.get(name)?.(fields[name], item);
    if (typeof end === "string" || end === ENDED) ends.push(end);
    else if (end != null) ends.push(Math.max(end, LONG_AGO));
  }
  return ends;
}

/** SQLite and Python also write truth as numbers and words. */
function isTruth(value: unknown, truth: boolean): boolean {
  return value === truth || value === Number(truth) || String(value).toLowerCase() === String(truth);
}

function successorIn(named: unknown, { id: own }: Mem0Item): string | null {
  const id: unknown = Array.isArray(named) ? named.at(-1) : named;
  if (typeof id === "number") return id === own ? null : String(id);
  if (typeof id === "string") return id.trim() === "" || id === own ? null : id;
  return Object.keys(record(id)).length > 0 ? "" : null;
}

function timeOf(value: unknown): number | null {
  if (value instanceof Date) return instantOf(value.getTime());
  return typeof value === "number" || typeof value === "string" ? instantOf(value) : null;
}

const BASIC_DAY = /^(\d{4})(\d\d)(\d\d)$/;

/** The day of a text, in ISO 8601's extended or Python's basic form, or of an instant; "" for none. */
function dayOf(value: unknown): string {
  if (typeof value === "string") return value.trim().replace(BASIC_DAY, "$1-$2-$3");
  const instant = timeOf(value) ?? Number.NaN;
  return Math.abs(instant) <= LAST_INSTANT ? new Date(instant).toISOString().slice(0, "YYYY-MM-DD".length) : "";
}

const LAST_INSTANT = 8.64e15;

function timestampOf(given: unknown): GivenTime | undefined {
  if (typeof given === "string" || typeof given === "number") return given;
  return given instanceof Date ? given.getTime() : undefined;
}
