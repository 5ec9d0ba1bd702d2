import { z } from "zod";
import {
  type AgentId,
  type ChatMessage,
  type ConversationId,
  FIXED_RETENTIONS,
  foundTextProblem,
  MAX_MEMORY_BUDGET_RATIO,
  MAX_WORKERS,
  type MemoryId,
  memoryTextProblem,
  POLICY_NAMES,
  RETENTION_NAMES,
  type RequestId,
  type RetrievedMemory,
  TOOL_MEMORIES,
  type UserId,
  unstorable,
  unstorableWithin,
  wordingProblem,
} from "../../core/index.js";
import { ENGINE_NAMES } from "../../engines/adapters/engine-adapter.js";
import { readMem0Answer } from "../../memory/mem0-answer.js";

/*
 * The fields of requests, each said once: the library's camelCase objects and HTTP's snake_case bodies are made of the same ones.
 */

/** Most memories in one request, and most that a search is asked for. */
export const MAX_MEMORIES = 1_000;
/** Most messages in one request. */
export const MAX_MESSAGES = 10_000;
/** Most characters of one query or one message's text. */
export const MAX_TEXT_CHARACTERS = 1_000_000;
/** Deepest nesting of what a request passes through unread: code that walks it by recursion must come to its end before the stack does. */
export const MAX_NESTING = 100;
/** Most request ids in one eviction. */
export const MAX_EVICTED_IDS = 10_000;

const storable = (problemOf: (value: never) => string | null) => (value: unknown, context: z.RefinementCtx) => {
  const problem = problemOf(value as never);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
};

const identifier = z
  .string()
  .min(1, "must not be empty")
  .max(256, "must have at most 256 characters")
  .superRefine(storable(unstorable))
  .refine((id) => id === "" || id.trim() !== "", "must contain something other than white space");

export const userId = identifier.transform((id) => id as UserId);
export const agentId = identifier.transform((id) => id as AgentId);
export const conversationId = identifier.transform((id) => id as ConversationId);
/** Goes into a header for the engine, so it is of printable ASCII. */
const printableId = identifier.regex(/^[\x20-\x7e]*$/, "must be printable ASCII");
/** Of a request that was composed, also by a version that took blanks at its ends. */
export const requestId = printableId.transform((id) => id as RequestId);
/** Of one that is to be composed. A header loses blanks at its ends: the engine would know it by another name. */
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
export const system = text;

/** Why JSON that is passed through unread cannot be kept; null where it can. */
function unkeepable(value: unknown): string | null {
  if (isNestedDeeper(value, MAX_NESTING)) return `must not be nested more than ${MAX_NESTING} levels deep`;
  return unstorableWithin(value);
}

function isNestedDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isNestedDeeper(inner, levels - 1));
}

/**
 * A list with no more of its items than it takes to see that there are too many. They are checked one by one, which costs a thousand times
 * what it takes to send them: four megabytes hold a million.
 */
const cutAt = (most: number) => (list: unknown) =>
  Array.isArray(list) && list.length > most ? list.slice(0, most + 1) : list;

const contentPart = z.looseObject({ type: z.string() });
const isPart = (part: unknown) => typeof (part as { type?: unknown } | null)?.type === "string";
/** Parts of a message up to the first that is none, for the same reason. */
const upToFirstWrong = (content: unknown) => {
  const wrong = Array.isArray(content) ? content.findIndex((part) => !isPart(part)) : -1;
  return wrong < 0 ? content : (content as unknown[]).slice(0, wrong + 1);
};
const message = z
  .looseObject({
    role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
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
    if (last !== undefined && !["user", "tool", "function"].includes(last)) {
      context.addIssue({ code: "custom", message: "must end with the user's question or a tool's result" });
    }
  });

export const messages = z.preprocess(cutAt(MAX_MESSAGES), messageList);

/** Memories in any shape that Mem0 gives. Its own reader says what is wrong where, so issues carry the whole field name. */
export const memories = z.unknown().transform((value, context): readonly RetrievedMemory[] => {
  const list = Array.isArray(value) ? value : (value as { results?: unknown } | null)?.results;
  if (Array.isArray(list) && list.length > MAX_MEMORIES) {
    context.addIssue({ code: "custom", message: `must have at most ${MAX_MEMORIES} memories, not ${list.length}` });
    return z.NEVER;
  }
  const read = readMem0Answer(value, { root: "memories" });
  if (read.ok) return read.memories;
  for (const issue of read.issues)
    context.addIssue({ code: "custom", message: issue.message, params: { field: issue.path } });
  return z.NEVER;
});

export const topK = z.int().min(1).max(MAX_MEMORIES);
export const memoryBudgetTokens = z.int().min(0, "must not be negative");
export const memoryBudgetRatio = z
  .number()
  .min(1, "must be at least 1: what was retrieved")
  .max(MAX_MEMORY_BUDGET_RATIO, `must be at most ${MAX_MEMORY_BUDGET_RATIO}`);
export const policy = z.enum(POLICY_NAMES);
export const retention = z.enum(RETENTION_NAMES);
/** What a plan says of one turn. */
export const fixedRetention = z.enum(FIXED_RETENTIONS);
/** The engine family that a prompt goes to. */
export const engine = z.enum(ENGINE_NAMES);
/** Where memories stand behind a tool's result. */
export const toolMemories = z.enum(TOOL_MEMORIES);

/** Engines or agents with a prefix cache of their own, by name; a name may go into a header. */
export const workers = z
  .array(
    z.string().regex(/^[\x21-\x7e]{1,256}$/, "must be printable ASCII without white space, at most 256 characters"),
  )
  .min(1, "must not be empty")
  .max(MAX_WORKERS, `must have at most ${MAX_WORKERS} workers`)
  .refine((names) => new Set(names).size === names.length, "must name each worker once");
/** How urgent a request of a batch is. */
export const priority = z.int();
export const deadline = z.number();

const template = z.string().superRefine(storable(wordingProblem));
export const annotationSwitch = z.boolean();
/** Said where annotations are neither. */
export const ANNOTATIONS_WANTED = "must be true, false, or an object";
export const annotationTopN = z.int().min(1).max(100);
export const wording = z.strictObject({ order: template.optional(), location: template.optional() });

export const requestIds = z.preprocess(
  cutAt(MAX_EVICTED_IDS),
  z.array(requestId).max(MAX_EVICTED_IDS, `must have at most ${MAX_EVICTED_IDS} ids`),
);
export const tokenCount = z.int().min(0);
export const milliseconds = z.number().min(0);
/** What Mem0 keeps beside a memory's text. */
export const memoryMetadata = z.record(z.string(), z.unknown()).superRefine(storable(unkeepable));
/** The text of a memory that is there already: a long one is cut when it is used. */
export const foundMemoryText = z.string().superRefine(storable(foundTextProblem));
export const memoryTexts = z.preprocess(
  cutAt(MAX_MEMORIES),
  z
    .array(z.string().superRefine(storable(memoryTextProblem)))
    .min(1, "must not be empty")
    .max(MAX_MEMORIES, `must have at most ${MAX_MEMORIES} texts`),
);
