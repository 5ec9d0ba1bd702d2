/*
 * Records of a run, files that survive a kill, and small readers of prompts: shared by all other folders of the evaluation.
 *
 * Enters: lines of `results.jsonl`, `run.json`, composed prompts and their plans.
 * Leaves: checked records; null means "not measured". No file here knows a data set, an engine or a report.
 */

import { z } from "zod";
import { DEPTH_OUTCOMES, POLICY_NAMES, RETENTION_NAMES } from "../../core/index.js";

/** What Mem0 gets: extracted facts, or the turns as they were said. */
export const INGESTS = ["observations", "turns"] as const;
export type Ingest = (typeof INGESTS)[number];

const DATASETS = ["locomo", "longmemeval"] as const;
export type Dataset = (typeof DATASETS)[number];

export const DATASET_NAMES: Readonly<Record<Dataset, string>> = { locomo: "LoCoMo", longmemeval: "LongMemEval" };

/** LongMemEval's question types; questions without an answer are a type of their own. */
export const LONGMEMEVAL_TYPES = [
  "single-session-user",
  "single-session-assistant",
  "single-session-preference",
  "multi-session",
  "temporal-reasoning",
  "knowledge-update",
  "abstention",
] as const;
export type LongMemEvalType = (typeof LONGMEMEVAL_TYPES)[number];

/** LongMemEval's types are numbered from here, after LoCoMo's categories 1 to 5. */
const FIRST_TYPE = 11;

export function typeNumber(type: LongMemEvalType): number {
  return FIRST_TYPE + LONGMEMEVAL_TYPES.indexOf(type);
}

/** `Category 2`, or the type's name. */
export function categoryTitle(category: number): string {
  return LONGMEMEVAL_TYPES[category - FIRST_TYPE] ?? `Category ${category}`;
}

/** Prompts without memprefix: memories in the system prompt, as in Mem0's README, or in the last message. */
export const HAND_BUILT = ["readme", "last-message"] as const;
export const ARM_POLICIES = [...HAND_BUILT, ...POLICY_NAMES] as const;

/** Answers are scored by F1 of generated words, or by the likelihood of the right answer, which generates nothing. */
export const ANSWER_SCORES = ["words", "likelihood"] as const;
export type AnswerScore = (typeof ANSWER_SCORES)[number];

/** Adaptive depth: memories of the first try, and the highest entropy of a first token that counts as sure. */
const armDepth = z.strictObject({
  firstBlocks: z.int().min(1),
  entropyNats: z.number().min(0),
  /** One memory more each time, as AdaCache does, in place of twice as many. */
  isOneByOne: z.literal(true).optional(),
});

/** Annotations of memprefix's prompts, besides its default. */
export const ARM_ANNOTATIONS = ["none", "paper"] as const;
export type ArmAnnotations = (typeof ARM_ANNOTATIONS)[number];

const arm = z.strictObject({
  /** Unique in a run and readable, as `single k=20 prefix-exact` or `conversation k=100 window=8 carry-over auto`. */
  id: z.string().min(1),
  layout: z.enum(["single", "conversation"]),
  k: z.int().min(1),
  policy: z.enum(ARM_POLICIES),
  /** Null here and below where it does not apply to this layout or builder. */
  retention: z.enum(RETENTION_NAMES).nullable(),
  /** Messages that the client sends, the question included; null: the whole history. */
  window: z.int().min(1).nullable(),
  /** Null: memprefix's default. */
  annotations: z.enum(ARM_ANNOTATIONS).nullable(),
  /** Null: prompts have all memories. */
  depth: armDepth.nullable().default(null),
});

/** The judge's verdict on one answer. Prompt and raw answer are kept so that it can be checked. */
const judgement = z.strictObject({
  /** Null: the judge's answer could not be read. */
  isCorrect: z.boolean().nullable(),
  prompt: z.string(),
  raw: z.string(),
});

const count = z.int().min(0);
const milliseconds = z.number().min(0);

const asked = {
  arm: z.string().min(1),
  /** LoCoMo's `sample_id`, or LongMemEval's `question_id`. */
  conversation: z.string(),
  /** Position among the conversation's questions in the data file, from 0. */
  question: count,
  /** LoCoMo's category number, or a {@link typeNumber}. */
  category: z.int(),
  /** The engine was still warming up: excluded from all measures. */
  isWarmUp: z.boolean(),
};

/** How adaptive depth chose a prompt's memories: how many it got, and each try, a call of its own. */
const chosenDepth = z.strictObject({
  outcome: z.enum(DEPTH_OUTCOMES),
  given: count,
  probeMs: milliseconds,
  probes: z.array(
    z.strictObject({
      blocks: count,
      entropy: z.number().min(0).nullable(),
      promptTokens: count.nullable(),
      cachedTokens: count.nullable(),
    }),
  ),
});

const answered = z.strictObject({
  ...asked,
  outcome: z.literal("answered"),
  promptTokens: count.nullable(),
  cachedTokens: count.nullable(),
  /** What memprefix expected of `cachedTokens`; null where prompts are not memprefix's. */
  expectedCachedTokens: count.nullable(),
  answerTokens: count.nullable(),
  searchMs: milliseconds.nullable(),
  composeMs: milliseconds.nullable(),
  /** To the answer's first token, tries of adaptive depth included. */
  ttftMs: milliseconds.nullable(),
  /** To the answer's end. */
  totalMs: milliseconds.nullable(),
  retrievedTokens: count,
  /** Memory tokens in the prompt, carried ones and those of earlier turns included. */
  memoryTokens: count,
  /** Memories and history messages left out to keep the prompt within the engine's limit. */
  memoriesCut: count.default(0),
  messagesCut: count.default(0),
  /** Whether the prompt left out what the conversation's last one held. */
  isFreshStart: z.boolean().default(false),
  depth: chosenDepth.nullable().default(null),
  /** The question's gold evidence ids, and how many belong to a memory in the prompt. */
  evidence: count,
  evidenceInPrompt: count,
  /** Null: simulated engine, or a run without scores. */
  answer: z.string().nullable(),
  gold: z.string().nullable(),
  f1: z.number().min(0).max(1).nullable(),
  /** Of the right answer after this prompt: −ln of its probability, and its tokens. */
  likelihood: z
    .strictObject({ nats: z.number(), tokens: z.int().min(1) })
    .nullable()
    .default(null),
  judge: judgement.nullable(),
});

/** A question without an answer: recorded and counted, never dropped. */
const failed = z.strictObject({
  ...asked,
  outcome: z.literal("failed"),
  stage: z.enum(["search", "compose", "engine"]),
  message: z.string(),
});

export const questionRecord = z.discriminatedUnion("outcome", [answered, failed]);

/** `run.json`: everything needed to repeat the run. */
export const runRecord = z.strictObject({
  memprefix: z.string(),
  node: z.string(),
  mem0: z.string(),
  machine: z.strictObject({ platform: z.string(), cpu: z.string(), cores: count, memoryMegabytes: count }),
  /** ISO 8601. */
  startedAt: z.string(),
  /** Null while it runs, and after an interruption. */
  finishedAt: z.string().nullable(),
  dataset: z.enum(DATASETS),
  data: z.strictObject({ file: z.string(), sha256: z.string() }),
  conversations: z.array(z.strictObject({ id: z.string(), memories: count, questions: count })),
  engine: z.strictObject({
    kind: z.enum(["simulated", "url"]),
    /** Null: the simulated engine. */
    model: z.string().nullable(),
    url: z.string().nullable(),
    /** How arms were kept from hitting each other's prompts in the cache, in words. */
    emptied: z.string(),
    /** As the engine reports it; null until it does. */
    served: z.strictObject({ version: z.string().nullable(), weights: z.string().nullable() }).nullable().default(null),
  }),
  judge: z.strictObject({ url: z.string(), model: z.string() }).nullable(),
  ingest: z.enum(INGESTS),
  categories: z.array(z.int()),
  limit: z.int().nullable(),
  warmUpQuestions: count,
  arms: z.array(arm),
  /** Other options by name. */
  settings: z.record(z.string(), z.unknown()).optional(),
});

export type EvalArm = z.output<typeof arm>;
export type EngineIdentity = NonNullable<RunRecord["engine"]["served"]>;
export type ArmDepth = z.output<typeof armDepth>;
export type RecordedDepth = z.output<typeof chosenDepth>;
export type AnswerLikelihood = NonNullable<AnsweredQuestion["likelihood"]>;
export type Judgement = z.output<typeof judgement>;
export type AnsweredQuestion = z.output<typeof answered>;
export type FailedQuestion = z.output<typeof failed>;
export type QuestionRecord = z.output<typeof questionRecord>;
export type RunRecord = z.output<typeof runRecord>;

export function questionKey({ conversation, question }: Pick<QuestionRecord, "conversation" | "question">): string {
  return JSON.stringify([conversation, question]);
}

export function recordKey(arm: string, conversation: string, question: number): string {
  return JSON.stringify([arm, conversation, question]);
}

export function isAnswered(record: QuestionRecord): record is AnsweredQuestion {
  return record.outcome === "answered";
}

/** Records that count in figures: answered, not warm-up. */
export function countedIn(records: readonly QuestionRecord[]): AnsweredQuestion[] {
  return records.filter(isAnswered).filter(({ isWarmUp }) => !isWarmUp);
}
