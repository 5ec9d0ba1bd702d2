/*
 * fields: the fields of requests, shared by the library's camelCase options and HTTP's snake_case bodies.
 * Enters: untrusted input. Leaves: typed values (zod), or an `InvalidRequestError` that names every invalid field.
 */

import { z } from "zod";
import {
  type AgentId,
  type ChatMessage,
  type ContentPart,
  type ConversationId,
  DEDUPE_NAMES,
  DEPTH_OUTCOMES,
  digestOf,
  EPOCH_REASONS,
  FIXED_RETENTIONS,
  FRESH_START_REASONS,
  foundTextProblem,
  HISTORY_NAMES,
  MAX_MEMORY_BUDGET_RATIO,
  MAX_WORKERS,
  type MemoryId,
  MISS_CAUSES,
  memoryTextProblem,
  POLICY_NAMES,
  RETENTION_NAMES,
  type RequestId,
  type RetrievedMemory,
  USAGE_WINDOWS,
  type UserId,
  unstorable,
  unstorableWithin,
  withoutSections,
} from "../../core/index.js";
import { ENGINE_NAMES } from "../../engines/adapters/engine-adapter.js";
import { type AnswerIssue, MAX_ORIGIN_CHARACTERS, readMem0Answer } from "../../memory/mem0-answer.js";
import type { FieldIssue, InstructionPart } from "../base/call-types.js";
import { InvalidRequestError } from "../base/errors.js";

const MAX_MEMORIES = 1_000;
export const MAX_MESSAGES = 10_000;
const MAX_TOOLS = 1_000;
/** Most characters of a query or of one message's text. */
const MAX_TEXT_CHARACTERS = 1_000_000;
const MAX_ID_CHARACTERS = 256;
/** Deepest nesting of values that are passed through: deeper ones overflow the stack of recursive code. */
const MAX_NESTING = 100;
const MAX_EVICTED_IDS = 10_000;

const storable = (problemOf: (value: never) => string | null) => (value: unknown, context: z.RefinementCtx) => {
  const problem = problemOf(value as never);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
};

const identifier = z
  .string()
  .min(1, "must not be empty")
  .max(MAX_ID_CHARACTERS, `must have at most ${MAX_ID_CHARACTERS} characters`)
  .superRefine(storable(unstorable))
  .refine((id) => id === "" || id.trim() !== "", "must contain something other than white space");

export const userId = identifier.transform((id) => id as UserId);
export const agentId = identifier.transform((id) => id as AgentId);
export const runId = identifier;
export const conversationId = identifier.transform((id) => id as ConversationId);
/** Sent to the engine in a header, so printable ASCII. */
const printableId = identifier.regex(/^[\x20-\x7e]*$/, "must be printable ASCII");
/** Id of a composed request; an unknown one finds nothing. */
export const requestId = printableId.transform((id) => id as RequestId);
/** Id of a request to compose. Headers lose leading and trailing blanks, so the engine would see a different id. */
export const newRequestId = printableId
  .regex(/^(?! )[\s\S]*(?<! )$/, "must not begin or end with a blank")
  .transform((id) => id as RequestId);
export const memoryId = z
  .string()
  .min(1, "must not be empty")
  .max(1_000)
  .superRefine(storable(unstorable))
  .transform((id) => id as MemoryId);

const text = z
  .string()
  .max(MAX_TEXT_CHARACTERS, `must have at most ${MAX_TEXT_CHARACTERS} characters`)
  .superRefine(storable(unstorable));

export const query = text.refine((value) => value.trim() !== "", "must not be empty");
/** Instructions: a text, or text parts as Anthropic's API has them. */
export const system: z.ZodType<string | ContentPart[], string | readonly InstructionPart[]> = z.union(
  [text, z.array(z.looseObject({ type: z.literal("text"), text })).min(1, "must not be empty")],
  "must be a text, or a list of text parts",
);

/** Why passed-through JSON cannot be stored; null if it can. */
export function unkeepable(value: unknown): string | null {
  if (isNestedDeeper(value, MAX_NESTING)) return `must not be nested more than ${MAX_NESTING} levels deep`;
  return unstorableWithin(value);
}

function isNestedDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isNestedDeeper(inner, levels - 1));
}

/** Truncates an oversized list to its limit plus one: four megabytes hold a million items, and checking them is slow. */
export const cutAt = (most: number) => (list: unknown) =>
  Array.isArray(list) && list.length > most ? list.slice(0, most + 1) : list;

/** Checked as objects: a tool's other fields are the engine's. */
export const tools = z.preprocess(
  cutAt(MAX_TOOLS),
  z.array(z.looseObject({}).superRefine(storable(unkeepable))).max(MAX_TOOLS, `must have at most ${MAX_TOOLS} tools`),
);

export const MESSAGE_ROLES = ["system", "developer", "user", "assistant", "tool", "function"] as const;
export const LAST_ROLES: readonly string[] = ["user", "tool", "function"];

const contentPart = z.looseObject({ type: z.string() });
const isPart = (part: unknown) => typeof (part as { type?: unknown } | null)?.type === "string";
/** Truncates a message's parts after the first invalid one, for the same reason. */
const upToFirstWrong = (content: unknown) => {
  const wrong = Array.isArray(content) ? content.findIndex((part) => !isPart(part)) : -1;
  return wrong < 0 ? content : (content as unknown[]).slice(0, wrong + 1);
};
const message = z
  .looseObject({
    role: z.enum(MESSAGE_ROLES),
    content: z.preprocess(
      upToFirstWrong,
      z.union([z.string(), z.array(contentPart), z.null()], "must be a text, an array of parts, or null").optional(),
    ),
  })
  .superRefine(storable(unkeepable))
  .transform((value): ChatMessage => value);

const messageList = z
  .array(message, "must be an array of chat messages")
  .min(1, "must not be empty")
  .max(MAX_MESSAGES, `must have at most ${MAX_MESSAGES} messages`)
  .superRefine((list, context) => {
    const last = list.at(-1)?.role;
    if (last !== undefined && !LAST_ROLES.includes(last)) {
      context.addIssue({ code: "custom", message: "must end with the user's question or a tool's result" });
    }
  });

export const messages = z.preprocess(cutAt(MAX_MESSAGES), messageList);

export interface GivenMemories {
  /** Best first. */
  readonly usable: readonly RetrievedMemory[];
  readonly unusable: UnusableMemories;
}

export interface UnusableMemories {
  readonly count: number;
  /** The first ones, with their positions. Never quotes memory text. */
  readonly issues: readonly AnswerIssue[];
}

const asItem = (item: unknown) => (typeof item === "string" ? { id: `text-${digestOf(item)}`, memory: item } : item);

/** Mem0's shapes, or texts, whose ids are their digests. */
export const memories = z.unknown().transform((value, context): GivenMemories => {
  const list = Array.isArray(value) ? value : (value as { results?: unknown } | null)?.results;
  if (Array.isArray(list) && list.length > MAX_MEMORIES) {
    context.addIssue({ code: "custom", message: `must have at most ${MAX_MEMORIES} memories, not ${list.length}` });
    return z.NEVER;
  }
  const items = Array.isArray(list) ? list.map(asItem) : list;
  const given =
    Array.isArray(value) || items === undefined ? (items ?? value) : { ...(value as object), results: items };
  const read = readMem0Answer(given, { root: "memories" });
  if (read.ok) return { usable: read.memories, unusable: { count: read.skipped, issues: read.issues } };
  for (const { path, message } of read.issues)
    context.addIssue({ code: "custom", message, ...(path === undefined ? {} : { params: { field: path } }) });
  return z.NEVER;
});

export { memoryFilters } from "./memory-filters.js";
/** A day, or seconds since the epoch. */
export const referenceDate = z.union(
  [z.iso.date(), z.int().min(0)],
  "must be a date as 2026-11-26, or seconds since the epoch",
);
export const topK = z.int().min(1).max(MAX_MEMORIES);
export const memoryBudgetTokens = z.int().min(0, "must not be negative");
export const memoryBudgetRatio = z
  .number()
  .min(1, "must be at least 1: what was retrieved")
  .max(MAX_MEMORY_BUDGET_RATIO, `must be at most ${MAX_MEMORY_BUDGET_RATIO}`);
export const history = z.enum(HISTORY_NAMES);
export const epochReason = z.enum(EPOCH_REASONS);
export const depthOutcome = z.enum(DEPTH_OUTCOMES);
/** Average tokens of prompts, as a multiple of what the client's own windows would have sent. */
export const historyRatio = z.number().min(1).max(100);
/** By the token counter. */
export const maxPromptTokens = z.int().min(1).max(100_000_000);
export const policy = z.enum(POLICY_NAMES);
export const retention = z.enum(RETENTION_NAMES);
/** A plan's retention of one turn: never `auto`. */
export const freshStartReason = z.enum(FRESH_START_REASONS);
export const fixedRetention = z.enum(FIXED_RETENTIONS);
export const engine = z.enum(ENGINE_NAMES);
export const dedupe = z.enum(DEDUPE_NAMES);

/** Names of engines or agents with their own prefix cache. A name may become a header. */
export const workers = z
  .array(
    z.string().regex(/^[\x21-\x7e]{1,256}$/, "must be printable ASCII without white space, at most 256 characters"),
  )
  .min(1, "must not be empty")
  .max(MAX_WORKERS, `must have at most ${MAX_WORKERS} workers`)
  .refine((names) => new Set(names).size === names.length, "must name each worker once");

export const annotations = z.union([z.boolean(), z.literal("paper")], 'must be true, false or "paper"');

export const requestIds = z.preprocess(
  cutAt(MAX_EVICTED_IDS),
  z.array(requestId).max(MAX_EVICTED_IDS, `must have at most ${MAX_EVICTED_IDS} ids`),
) as z.ZodType<RequestId[], string[]>;
export const tokenCount = z.int().min(0);
export const milliseconds = z.number().min(0);

export { ENDED } from "../../core/blocks/context-block.js";
/** When a memory ceases to hold, by Mem0's fields; and the placeholder of a memory that was not read. */
export const memoryOrigin = z.string().trim().toLowerCase().min(1).max(MAX_ORIGIN_CHARACTERS);

export { mem0End as memoryEnd, mem0Origin as originIn, UnreadMemory } from "../../memory/mem0-answer.js";
export const memoryMetadata = z.record(z.string(), z.unknown()).superRefine(storable(unkeepable));
/** Text of an existing memory; truncated on use if it is too long. */
export const foundMemoryText = z.string().superRefine(storable(foundTextProblem));
/** Messages to add, without sections of memprefix's. */
export const addedMessages = z
  .array(z.object({ role: z.enum(["user", "assistant"]), content: text }))
  .max(MAX_MESSAGES, `must have at most ${MAX_MESSAGES} messages`)
  .transform((list, context) => {
    const plain = list.map(({ role, content }) => ({ role, content: withoutSections(content).trim() }));
    const said = plain.filter(({ content }) => content !== "");
    storable(memoryTextProblem)(said.map(({ content }) => content).join("\n"), context);
    return said;
  });
export const memoryTexts = z.preprocess(
  cutAt(MAX_MEMORIES),
  z
    .array(z.string().superRefine(storable(memoryTextProblem)))
    .min(1, "must not be empty")
    .max(MAX_MEMORIES, `must have at most ${MAX_MEMORIES} texts`),
) as z.ZodType<string[], string[]>;

/** What a caller may pass to a schema. */
export type Given<S extends z.ZodType> = AsGiven<z.input<S>>;
/** The value, deeply readonly. */
export type AsGiven<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? readonly AsGiven<Item>[]
    : T extends object
      ? { readonly [K in keyof T]: AsGiven<T[K]> }
      : T;

/** Checks options against a schema. Throws {@link InvalidRequestError} naming every invalid field. */
export function readOptions<S extends z.ZodType>(schema: S, given: unknown): z.output<S> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new InvalidRequestError(fieldIssues(parsed.error));
}

/** Most issues reported per request: a body may have a hundred thousand unknown fields. */
const MOST_ISSUES = 100;

/** Names the field of every issue, up to {@link MOST_ISSUES}: `messages[2].content`; an unknown field by its own name. */
export function fieldIssues(error: z.ZodError): FieldIssue[] {
  const issues = error.issues.slice(0, MOST_ISSUES);
  return issues.flatMap((issue) => issuesOf(issue, issue.path)).slice(0, MOST_ISSUES);
}

function issuesOf(issue: z.core.$ZodIssue, path: readonly PropertyKey[]): FieldIssue[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys
      .slice(0, MOST_ISSUES)
      .map((key) => ({ field: fieldName([...path, key]), message: "is not a known field" }));
  }
  if (issue.code === "invalid_union") {
    // The alternative that fails deeper than its root is the intended one.
    const meant = issue.errors.find((issues) => issues.some((inner) => inner.path.length > 0));
    if (meant !== undefined) return meant.flatMap((inner) => issuesOf(inner, [...path, ...inner.path]));
  }
  const named = issue.code === "custom" ? issue.params?.["field"] : undefined;
  return [{ field: typeof named === "string" ? named : fieldName(path), message: wordsOf(issue) }];
}

/** zod reports a missing field as one of the wrong type. */
function wordsOf({ code, message }: z.core.$ZodIssue): string {
  return code === "invalid_type" && message.endsWith("received undefined") ? "is missing" : message;
}

function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "body";
  return path
    .map((key, at) => (typeof key === "number" ? `[${key}]` : `${at === 0 ? "" : "."}${String(key)}`))
    .join("");
}

/* Fields of `DepthSettings`, in requests and settings. */

export const firstBlocks = z.int().min(1, "must be at least 1").max(1_000, "must be at most 1000");
export const growth = z.number().gt(1, "must be more than 1").max(100, "must be at most 100");
export const entropyNats = z.number().min(0, "must not be negative").max(20, "must be at most 20");
export const maxProbes = z.int().min(1, "must be at least 1").max(8, "must be at most 8");
export const timeLimitMs = z.int().min(1, "must be at least 1").max(60_000, "must be at most 60000");

/* Fields of the usage views. */

export const usageWindow = z.enum(USAGE_WINDOWS);
export const missCause = z.enum(MISS_CAUSES);
/** A model as its client named it. Longer names are stored as `other`. */
export const modelName = z.string().min(1).max(200);
