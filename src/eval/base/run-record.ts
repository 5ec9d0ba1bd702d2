/*
 * What every other folder of the evaluation shares: the records that a run writes, files that survive a kill, and small readers of prompts.
 *
 * Enters: lines of `results.jsonl`, `run.json`, composed prompts and their plans.
 * Leaves: checked records, in which null means "not measured"; the memories and references in a prompt.
 * No file here knows a data set, an engine or a report.
 */

import { z } from "zod";
import { HISTORY_NAMES } from "../../core/conversation/epoch.js";
import { DEPTH_OUTCOMES, POLICY_NAMES, RETENTION_NAMES } from "../../core/index.js";

/** What Mem0 is given: extracted facts, or what was said. */
export const INGESTS = ["observations", "turns"] as const;
export type Ingest = (typeof INGESTS)[number];

/** Data sets that an evaluation reads. */
const DATASETS = ["locomo", "longmemeval"] as const;
export type Dataset = (typeof DATASETS)[number];

export const DATASET_NAMES: Readonly<Record<Dataset, string>> = { locomo: "LoCoMo", longmemeval: "LongMemEval" };

/** LongMemEval's question types, and its questions that cannot be answered, which are a type of their own here. */
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

/** LoCoMo's categories are 1 to 5; LongMemEval's types are numbered from here. */
const FIRST_TYPE = 11;

/** The number that records have for a type of LongMemEval. */
export function typeNumber(type: LongMemEvalType): number {
  return FIRST_TYPE + LONGMEMEVAL_TYPES.indexOf(type);
}

/** `Category 2`, or the type's name. */
export function categoryTitle(category: number): string {
  return LONGMEMEVAL_TYPES[category - FIRST_TYPE] ?? `Category ${category}`;
}

/** Ways to build a prompt without memprefix: as Mem0's README does, in the system prompt; and in the last message. */
export const HAND_BUILT = ["readme", "last-message"] as const;
/** Ways to build a prompt: {@link HAND_BUILT}, or one of memprefix's ordering policies. */
export const ARM_POLICIES = [...HAND_BUILT, ...POLICY_NAMES] as const;

/** What the client sends of a conversation's history. */
const window = z.strictObject({
  /** Its last messages, the question among them. */
  messages: z.int().min(1),
  /** What memprefix makes of it; null where prompts are not memprefix's. */
  history: z.enum(HISTORY_NAMES).nullable(),
  /** `history_ratio`; null: the default, or it does not apply. */
  ratio: z.number().positive().nullable(),
});

/** How answers are scored: F1 and BLEU-1 of the words generated, and the likelihood of the right answer, for which nothing is generated. */
export const ANSWER_SCORES = ["words", "likelihood"] as const;
export type AnswerScore = (typeof ANSWER_SCORES)[number];

/** Adaptive depth: the memories of its first try, and the most entropy of a first token that counts as sure. */
const armDepth = z.strictObject({ firstBlocks: z.int().min(1), entropyNats: z.number().min(0) });

/** Annotations of memprefix's prompts that an evaluation can ask for beside its default. */
export const ARM_ANNOTATIONS = ["none", "paper"] as const;
export type ArmAnnotations = (typeof ARM_ANNOTATIONS)[number];

const arm = z.strictObject({
  /** Unique in a run, readable, as `single k=20 prefix-exact` or `conversation k=100 carry-over ≤1.5× on average auto`. */
  id: z.string().min(1),
  layout: z.enum(["single", "conversation"]),
  k: z.int().min(1),
  policy: z.enum(ARM_POLICIES),
  /** Null in single prompts and where prompts are not memprefix's. */
  retention: z.enum(RETENTION_NAMES).nullable(),
  /** Most memory tokens over all prompts so far, as a multiple of those retrieved; null: no bound. */
  budgetRatio: z.number().positive().nullable(),
  /** Null: all of it, and in single prompts. */
  window: window.nullable(),
  /** Null: memprefix's default, or prompts are not memprefix's. */
  annotations: z.enum(ARM_ANNOTATIONS).nullable(),
  /** Null: prompts have all memories. */
  depth: armDepth.nullable().default(null),
});

/** What the judge made of one answer. Prompt and raw answer are kept so that anybody can check them. */
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
  /** Place among the conversation's questions in the data file, from 0. */
  question: count,
  /** LoCoMo's category number, or that of a type of LongMemEval. */
  category: z.int(),
  /** Excluded from all measures: the engine was still warming up. */
  isWarmUp: z.boolean(),
};

/** How adaptive depth found a prompt's memories: how many it got, and each try, a call of its own. */
const chosenDepth = z.strictObject({
  outcome: z.enum(DEPTH_OUTCOMES),
  given: count,
  /** What all tries took. */
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

/** A question that was answered, with everything that was measured on the way. */
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
  /** To the first token of the answer, tries of adaptive depth included … */
  ttftMs: milliseconds.nullable(),
  /** … and to its end; null where it was not measured. */
  totalMs: milliseconds.nullable(),
  retrievedTokens: count,
  /** Memory tokens in the prompt, carried ones and those of earlier turns included. */
  memoryTokens: count,
  /** Memories of the search, and messages of the history, that were left out of a prompt that would have been too long. */
  memoriesCut: count.default(0),
  messagesCut: count.default(0),
  /** Whether the prompt began without what its conversation's last one held. */
  isFreshStart: z.boolean().default(false),
  /** Null without adaptive depth. */
  depth: chosenDepth.nullable().default(null),
  /** Gold evidence ids of the question, and how many of them are of a memory in the prompt. */
  evidence: count,
  evidenceInPrompt: count,
  /** Memories that annotations name by label or quote, and how many of them stand in this very prompt. */
  references: count,
  referencesResolved: count,
  /** Null where the engine's text is no answer: a simulated engine, or a run without scores. */
  answer: z.string().nullable(),
  gold: z.string().nullable(),
  f1: z.number().min(0).max(1).nullable(),
  bleu1: z.number().min(0).max(1).nullable(),
  /** Of the right answer after this prompt: −ln of its probability, and its tokens. Null where it was not asked for. */
  likelihood: z
    .strictObject({ nats: z.number(), tokens: z.int().min(1) })
    .nullable()
    .default(null),
  judge: judgement.nullable(),
});

/** A question that was not answered: recorded and counted, never dropped. */
const failed = z.strictObject({
  ...asked,
  outcome: z.literal("failed"),
  stage: z.enum(["search", "compose", "engine"]),
  message: z.string(),
});

/** One line of `results.jsonl`. */
export const questionRecord = z.discriminatedUnion("outcome", [answered, failed]);

/** `run.json`: all that is needed to run it again. */
export const runRecord = z.strictObject({
  memprefix: z.string(),
  node: z.string(),
  mem0: z.string(),
  machine: z.strictObject({ platform: z.string(), cpu: z.string(), cores: count, memoryMegabytes: count }),
  /** ISO 8601. */
  startedAt: z.string(),
  /** Null while it runs, and where it was interrupted. */
  finishedAt: z.string().nullable(),
  dataset: z.enum(DATASETS),
  data: z.strictObject({ file: z.string(), sha256: z.string() }),
  conversations: z.array(z.strictObject({ id: z.string(), memories: count, questions: count })),
  engine: z.strictObject({
    kind: z.enum(["simulated", "url"]),
    /** As it was named; null for the simulated one. */
    model: z.string().nullable(),
    url: z.string().nullable(),
    /** How arms were kept from finding each other's prompts in the cache, in words. */
    emptied: z.string(),
    /** What it says of itself; null where it does not, and before it was asked. */
    served: z.strictObject({ version: z.string().nullable(), weights: z.string().nullable() }).nullable().default(null),
  }),
  judge: z.strictObject({ url: z.string(), model: z.string() }).nullable(),
  ingest: z.enum(INGESTS),
  categories: z.array(z.int()),
  limit: z.int().nullable(),
  seed: z.int(),
  warmUpQuestions: count,
  arms: z.array(arm),
  /** Whatever else it ran with, by the name of the option; and under `resumedAt` when it went on after it was stopped. */
  settings: z.record(z.string(), z.unknown()).optional(),
});

export type EvalArm = z.output<typeof arm>;
export type EngineIdentity = NonNullable<RunRecord["engine"]["served"]>;
export type ArmDepth = z.output<typeof armDepth>;
export type RecordedDepth = z.output<typeof chosenDepth>;
export type ClientWindow = z.output<typeof window>;
export type AnswerLikelihood = NonNullable<AnsweredQuestion["likelihood"]>;
export type Judgement = z.output<typeof judgement>;
export type AnsweredQuestion = z.output<typeof answered>;
export type FailedQuestion = z.output<typeof failed>;
export type QuestionRecord = z.output<typeof questionRecord>;
export type RunRecord = z.output<typeof runRecord>;

/** Names a question across arms. */
export function questionKey({ conversation, question }: Pick<QuestionRecord, "conversation" | "question">): string {
  return JSON.stringify([conversation, question]);
}

/** Names one question of one arm. */
export function recordKey(arm: string, conversation: string, question: number): string {
  return JSON.stringify([arm, conversation, question]);
}

export function isAnswered(record: QuestionRecord): record is AnsweredQuestion {
  return record.outcome === "answered";
}

/** Records that count in figures: of questions that were answered, and not to warm up. */
export function countedIn(records: readonly QuestionRecord[]): AnsweredQuestion[] {
  return records.filter(isAnswered).filter(({ isWarmUp }) => !isWarmUp);
}
