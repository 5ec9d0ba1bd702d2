import type { AnsweredQuestion, EvalArm, FailedQuestion, RunRecord } from "../../../src/eval/base/run-record.js";

export const README_ARM: EvalArm = {
  id: "single k=20 readme",
  layout: "single",
  k: 20,
  policy: "readme",
  retention: null,
  window: null,
  annotations: null,
  depth: null,
};

export const EXACT_ARM: EvalArm = { ...README_ARM, id: "single k=20 prefix-exact", policy: "prefix-exact" };

/** A run that ended, of two arms; nothing but what a test names differs. */
export function runOf(given: Partial<RunRecord> = {}): RunRecord {
  return {
    memprefix: "0.1.0",
    node: "v20.19.0",
    mem0: "3.3.1",
    machine: { platform: "linux x64", cpu: "Some CPU @ 2.1GHz", cores: 2, memoryMegabytes: 8_000 },
    startedAt: "2026-11-21T10:00:00.000Z",
    finishedAt: "2026-11-21T10:20:00.000Z",
    dataset: "locomo",
    data: { file: "locomo10.json", sha256: "ab".repeat(32) },
    conversations: [{ id: "conv-26", memories: 184, questions: 199 }],
    engine: {
      kind: "simulated",
      model: null,
      url: null,
      emptied: "each arm has a simulated cache of its own",
      served: null,
    },
    judge: null,
    ingest: "observations",
    categories: [1, 2, 3, 4],
    limit: null,
    warmUpQuestions: 1,
    arms: [README_ARM, EXACT_ARM],
    ...given,
  };
}

/** An answered question of which only what a test names was measured. */
export function answeredBy(arm: EvalArm, question: number, given: Partial<AnsweredQuestion> = {}): AnsweredQuestion {
  return {
    arm: arm.id,
    conversation: "conv-26",
    question,
    category: 1,
    isWarmUp: false,
    outcome: "answered",
    promptTokens: null,
    cachedTokens: null,
    expectedCachedTokens: null,
    answerTokens: null,
    searchMs: null,
    composeMs: null,
    ttftMs: null,
    totalMs: null,
    retrievedTokens: 0,
    memoryTokens: 0,
    memoriesCut: 0,
    messagesCut: 0,
    isFreshStart: false,
    depth: null,
    evidence: 0,
    evidenceInPrompt: 0,
    answer: null,
    gold: null,
    f1: null,
    likelihood: null,
    judge: null,
    ...given,
  };
}

export function failedBy(arm: EvalArm, question: number, given: Partial<FailedQuestion> = {}): FailedQuestion {
  return {
    arm: arm.id,
    conversation: "conv-26",
    question,
    category: 1,
    isWarmUp: false,
    outcome: "failed",
    stage: "engine",
    message: "the engine did not begin to answer within 60000 ms",
    ...given,
  };
}
