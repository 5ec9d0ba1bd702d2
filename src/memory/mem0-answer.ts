import { z } from "zod";
import { ENDED, type RetrievedMemory } from "../core/blocks/context-block.js";
import type { MemoryId } from "../core/text/ids.js";
import { append } from "../core/text/lists.js";
import { foundTextProblem, unstorable } from "../core/text/storable-text.js";
import { mem0End } from "./mem0-end.js";
import { mem0Fields } from "./mem0-fields.js";

export { mem0End } from "./mem0-end.js";

/** What is wrong with a value that should be a Mem0 answer, and where: `memories.results[3].memory`. Never quotes memory text. */
export interface AnswerIssue {
  readonly path: string;
  readonly message: string;
}

/** How to read an answer. */
export interface AnswerReading {
  /** What issues call the value. Default `memories`. */
  readonly root?: string;
  /** Leaves out (and counts as skipped) items for which this is false. */
  readonly belongs?: (item: Mem0Item) => boolean;
}

/**
 * The memories of an answer in relevance order, best first, how many items were left out, and what is wrong with the first of those; or
 * why it is no answer. One bad item costs no other: the rule for what a provider answers and for what a caller sends.
 */
export type AnswerRead =
  | {
      readonly ok: true;
      readonly memories: readonly RetrievedMemory[];
      readonly skipped: number;
      /** At most {@link MAX_ISSUES}. */
      readonly issues: readonly AnswerIssue[];
    }
  | { readonly ok: false; readonly issues: readonly AnswerIssue[] };

/** One item as Mem0 gave it: camelCase (hosted SDK), snake_case (REST) or both (OSS). */
export type Mem0Item = Readonly<Record<string, unknown>>;

/** Enough to repair a request by; more would only make an answer as large as the request. */
const MAX_ISSUES = 20;
const MAX_ID_CHARACTERS = 1_000;

const ID_WANTED = `must be a string of 1 to ${MAX_ID_CHARACTERS} characters, or an integer of at most 2^53 - 1`;
const memoryId = z.union(
  [z.string().min(1, ID_WANTED).max(MAX_ID_CHARACTERS, ID_WANTED), z.int()],
  // An integer above 2^53 has lost digits while it was parsed: two memories could come out with one id.
  ID_WANTED,
);

const item = z.looseObject(
  {
    id: memoryId.transform(String).superRefine((id, context) => {
      const problem = unstorable(id);
      if (problem !== null) context.addIssue({ code: "custom", message: problem });
    }),
    memory: z.string("must be a string").superRefine((text, context) => {
      const problem = foundTextProblem(text);
      if (problem !== null) context.addIssue({ code: "custom", message: problem });
    }),
  },
  "must be an object with id and memory",
);

/** An item that says that its memory no longer holds needs no text. */
const endedItem = item.extend({ memory: z.unknown().transform((text) => (typeof text === "string" ? text : "")) });

/** Whether a value is an item that {@link item} returns as it is. Takes a fifth of its time; the schema has the words for every other value. */
function isPlainItem(value: unknown): value is z.output<typeof item> {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return false;
  const { id, memory } = value as Mem0Item;
  return (
    typeof id === "string" &&
    id.length > 0 &&
    id.length <= MAX_ID_CHARACTERS &&
    unstorable(id) === null &&
    typeof memory === "string" &&
    foundTextProblem(memory) === null
  );
}

/**
 * Reads memories out of any shape that Mem0 gives: a bare array, `{ results }`, `{ results, relations }`, or a page
 * `{ count, next, previous, results }`; items in camelCase, snake_case or mixed, with any further fields. Order: as given, unless items
 * carry a `rerankScore` (or `rerank_score`), which then decides, highest first, items without one last. Never throws.
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
    const parsed = isPlainItem(candidate) ? ({ success: true, data: candidate } as const) : itemIn(candidate);
    if (parsed.success && (reading.belongs?.(parsed.data) ?? true)) {
      ranked.push(rankedMemory(parsed.data));
      continue;
    }
    skipped += 1;
    if (!parsed.success && issues.length < MAX_ISSUES) append(issues, issuesAt(`${path}[${index}]`, parsed.error));
  }
  return { ok: true, memories: byRerankScore(ranked), skipped, issues: issues.slice(0, MAX_ISSUES) };
}

function itemIn(candidate: unknown) {
  const parsed = item.safeParse(candidate);
  if (parsed.success) return parsed;
  const ended = endedItem.safeParse(candidate);
  return ended.success && mem0End(ended.data)?.until === ENDED ? ended : parsed;
}

interface RankedMemory {
  readonly memory: RetrievedMemory;
  readonly rerankScore: number | null;
}

/** The value's list of items and its path in the value; null for an unknown shape. */
function listOf(value: unknown): { readonly items: unknown; readonly path: string } | null {
  if (Array.isArray(value)) return { items: value, path: "" };
  if (typeof value === "object" && value !== null && "results" in value)
    return { items: value.results, path: "results" };
  return null;
}

function rankedMemory(parsed: z.infer<typeof item>): RankedMemory {
  const score = parsed.rerankScore ?? parsed.rerank_score;
  const fields = mem0Fields(parsed);
  const end = mem0End(parsed);
  const memory = { id: parsed.id as MemoryId, text: parsed.memory };
  return {
    memory:
      fields === undefined && end === undefined
        ? memory
        : { ...memory, ...(fields && { fields }), ...(end && { end }) },
    rerankScore: typeof score === "number" && Number.isFinite(score) ? score : null,
  };
}

/** `score` is left alone on purpose: Mem0 has already sorted by it, and its rounding must not reorder what it calls equal. */
function byRerankScore(ranked: readonly RankedMemory[]): readonly RetrievedMemory[] {
  const order = ranked.toSorted((a, b) => {
    if (a.rerankScore === null || b.rerankScore === null)
      return Number(a.rerankScore === null) - Number(b.rerankScore === null);
    return b.rerankScore - a.rerankScore;
  });
  return order.map(({ memory }) => memory);
}

function issuesAt(path: string, error: z.ZodError): AnswerIssue[] {
  return error.issues.map((issue) => ({ path: [path, ...issue.path.map(String)].join("."), message: issue.message }));
}

function refusal(path: string, message: string): AnswerRead {
  return { ok: false, issues: [{ path, message }] };
}
