import { ENDED, type MemoryEnd, type RetrievedMemory } from "../core/blocks/context-block.js";
import { smallest } from "../core/text/collections.js";
import { endOfDay, type GivenTime } from "../core/text/given-time.js";
import type { MemoryId } from "../core/text/ids.js";
import { isObject, isRecord, record, text } from "../core/text/json.js";
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

export const MAX_ORIGIN_CHARACTERS = 100;

/** What wrote a memory, in lower case: its own `origin`, else its metadata's. Undefined: it does not say. */
export function mem0Origin(item: Mem0Item): string | undefined {
  const said = item["origin"] ?? record(item["metadata"])["origin"];
  const name = typeof said === "string" ? said.trim().toLowerCase() : "";
  return name === "" || name.length > MAX_ORIGIN_CHARACTERS ? undefined : name;
}

/*
 * Mem0's fields for the end of a memory. The platform's SDK writes camelCase; `mem0ai/oss` and the REST server put unknown fields in `metadata`.
 *
 *   expiration_date  its last day in UTC: the platform, the REST server, Python and TypeScript
 *   lifecycle_state  the platform
 *   state            OpenMemory; in `metadata` it may be the application's
 *   replaced_by,     the platform: another memory took its place
 *   superseded_by
 *   is_latest        the platform: whether `latest_only` would give it
 *   is_deleted       histories
 *   event: DELETE    an answer to `add`; in `metadata` it may be the application's
 */

const EXPIRES = ["expiration_date", "expirationDate"];
const LIFECYCLE = ["lifecycle_state", "lifecycleState"];
const REPLACED = ["replaced_by", "replacedBy"];
const SUPERSEDED = ["superseded_by", "supersededBy"];
const LATEST = ["is_latest", "isLatest"];
const DELETED = ["is_deleted", "isDeleted"];
const END_FIELDS: ReadonlySet<string> = new Set(
  [EXPIRES, LIFECYCLE, REPLACED, SUPERSEDED, LATEST, DELETED, ["state", "event"]].flat(),
);
const ENDED_STATES = new Set(["superseded", "replaced", "archived", "deleted", "expired", "paused"]);
/** Before 1970, so it is past, and differs from {@link ENDED}. */
const LONG_AGO = 1;
/** Python also takes ISO 8601's basic form. */
const BASIC_DAY = /^(\d{4})(\d\d)(\d\d)$/;

/** Undefined if the memory has no end or it cannot be read. Never throws. */
export function mem0End(item: Mem0Item): MemoryEnd | undefined {
  const metadata = record(item["metadata"]);
  if (![item, metadata].some(hasEndField)) return undefined;
  const given = (names: readonly string[]) => [item, metadata].flatMap((fields) => names.map((name) => fields[name]));
  const successors = [...given(REPLACED), ...given(SUPERSEDED)].map((one) => successorIn(one, item));
  const replacedBy = successors.find((id) => id !== null);
  if (replacedBy !== undefined)
    return { until: ENDED, ...(replacedBy === "" ? {} : { replacedBy: replacedBy as MemoryId }) };
  const isOver =
    item["event"] === "DELETE" ||
    [...given(LIFECYCLE), item["state"]].some((state) => isEnded(text(state))) ||
    given(DELETED).some(isTrue) ||
    given(LATEST).includes(false);
  if (isOver) return { until: ENDED };
  const lastDays = given(EXPIRES).map((day) => endOfDay(text(day).replace(BASIC_DAY, "$1-$2-$3")));
  const ends = lastDays.filter((end) => end !== null);
  return ends.length === 0 ? undefined : { until: Math.max(LONG_AGO, smallest(ends)) };
}

/** Almost no memory has one, and a prompt has many memories. */
function hasEndField(fields: Mem0Item): boolean {
  for (const name in fields) if (END_FIELDS.has(name)) return true;
  return false;
}

function isEnded(state: string): boolean {
  return ENDED_STATES.has(state.toLowerCase());
}

/** SQLite also writes truth as a number. */
function isTrue(value: unknown): boolean {
  return value === true || value === 1;
}

/** The memory that replaced an item, "" if it cannot be found; null for none. */
function successorIn(named: unknown, { id: own }: Mem0Item): string | null {
  const id: unknown = Array.isArray(named) ? named.at(-1) : named;
  if (typeof id === "number") return id === own ? null : String(id);
  if (typeof id === "string") return id.trim() === "" || id === own ? null : id;
  return Object.keys(record(id)).length > 0 ? "" : null;
}

function timestampOf(given: unknown): GivenTime | undefined {
  if (typeof given === "string" || typeof given === "number") return given;
  return given instanceof Date ? given.getTime() : undefined;
}
