/*
 * An evaluation's run: its arms, how each builds its prompts, and the loop over a conversation's questions.
 *
 * Enters: conversations with recorded searches, arms, an engine and a judge.
 * Leaves: one record per question and arm, written before the next is asked, so that a stopped run can be resumed.
 */

import { setImmediate } from "node:timers/promises";
import type { ChatMessage, TokenCounter } from "../../core/index.js";
import { messageOf } from "../../core/text/thrown.js";
import type { Memprefix } from "../../service/library/memprefix.js";
import { NO_ANSWER } from "../base/hand-built.js";
import { MemoryList } from "../base/prompt-memories.js";
import { EvaluationError } from "../base/run-files.js";
import { type EvalArm, type Judgement, type QuestionRecord, recordKey } from "../base/run-record.js";
import type { ArmCache, EngineAnswer, MeasuredEngine } from "../engine/measured-engine.js";
import type { KeptMemories } from "../locomo/ingesting.js";
import { askedText, type EvaluatedConversation, type Question } from "../locomo/locomo-data.js";
import type { RecordedSearch, RecordedSearches } from "../locomo/recorded-searches.js";
import { comparable, isScored, tokenF1 } from "../scores/answer-scores.js";
import type { Judge } from "../scores/judge.js";
import {
  type ArmPrompt,
  composedPrompts,
  handBuiltPrompts,
  type PromptBuilder,
  type PromptRequest,
} from "./arm-prompts.js";
import { historySent } from "./arms.js";

export interface RunParts {
  readonly arms: readonly EvalArm[];
  readonly engine: MeasuredEngine;
  /** Null: answers are not judged. */
  readonly judge: Judge | null;
  readonly countTokens: TokenCounter;
  /** Opens a service without users, on its own database. */
  readonly openMemprefix: (now: () => number) => Memprefix;
}

export interface ConversationRun {
  readonly conversation: EvaluatedConversation;
  readonly memories: KeptMemories;
  readonly searches: RecordedSearches;
  /** Number of leading warm-up questions. */
  readonly warmUpQuestions: number;
  /** Arms whose next question is also warm-up; an arm leaves when it was asked. */
  readonly coldArms: Set<string>;
  /** Earlier records, by {@link recordKey}. */
  readonly recorded: ReadonlyMap<string, QuestionRecord>;
  readonly onRecord: (record: QuestionRecord) => void;
}

/**
 * Sends every question in every arm; arms take turns at being first. Each arm starts with an empty cache and an empty memprefix. Recorded
 * questions are composed again but not asked, so that every arm resumes in the same state. Histories hold the right answers, whatever the
 * engine says, so that they are the same in all arms. Rejects with the signal's reason.
 */
export async function runConversation(parts: RunParts, run: ConversationRun, signal: AbortSignal): Promise<void> {
  const { conversation, recorded, onRecord } = run;
  const list = new MemoryList(run.memories, parts.countTokens);
  const runs: ArmRun[] = [];
  try {
    for (const arm of parts.arms) runs.push(await openArm(parts, conversation.id, list, arm));
    const history: ChatMessage[] = [];
    for (const [turn, { at, question }] of conversation.asked.entries()) {
      const said: ChatMessage = { role: "assistant", content: question.answer ?? NO_ANSWER };
      for (let n = 0; n < runs.length; n++) {
        const armRun = runs[(turn + n) % runs.length];
        if (armRun === undefined) continue;
        const search = run.searches.find(conversation.id, at, armRun.arm.k);
        if (search === undefined)
          throw new EvaluationError(`question ${at} of ${conversation.id} was never searched for`);
        const found: FoundQuestion = { question, at, turn, history: [...history], said, search };
        const known = recorded.get(recordKey(armRun.arm.id, conversation.id, at));
        if (known !== undefined) {
          await armRun.repeat(found, known);
          continue;
        }
        // A simulated engine never awaits: without a pause, no signal is handled and no progress drawn.
        await setImmediate();
        signal.throwIfAborted();
        const isCold = run.coldArms.delete(armRun.arm.id);
        onRecord(await armRun.ask(found, turn < run.warmUpQuestions || isCold, signal));
      }
      history.push({ role: "user", content: askedText(question) }, said);
    }
  } finally {
    for (const armRun of runs) await armRun.close();
  }
}

/** Bounds carry-over's memory tokens, over all prompts so far, as a multiple of those retrieved. */
const CARRY_OVER_RATIO = 1.5;

async function openArm(parts: RunParts, conversation: string, list: MemoryList, arm: EvalArm): Promise<ArmRun> {
  const { engine, judge, openMemprefix } = parts;
  const cache = await engine.open(arm, conversation);
  const { mark, promptTokens, chooseDepth } = cache;
  const { family } = engine;
  const { policy } = arm;
  const budgetRatio = policy === "carry-over" ? CARRY_OVER_RATIO : null;
  const prompts =
    policy === "readme" || policy === "last-message"
      ? handBuiltPrompts(list, policy, mark)
      : composedPrompts(list, { openMemprefix, arm, policy, budgetRatio, family, mark, promptTokens, chooseDepth });
  return new ArmRun({ arm, conversation, prompts, cache, countsAlike: engine.kind === "simulated", judge });
}

export interface FoundQuestion {
  readonly question: Question;
  /** Position among the conversation's questions in the data file. */
  readonly at: number;
  /** Number of questions asked before. */
  readonly turn: number;
  readonly history: readonly ChatMessage[];
  /** Its answer in later histories. */
  readonly said: ChatMessage;
  readonly search: RecordedSearch;
}

export interface ArmRunOptions {
  readonly arm: EvalArm;
  readonly conversation: string;
  readonly prompts: PromptBuilder;
  readonly cache: ArmCache;
  /** Whether the engine counts tokens as memprefix does; if not, memprefix's expectation is scaled to the engine's count of the prompt. */
  readonly countsAlike: boolean;
  readonly judge: Judge | null;
}

/** One arm in one conversation: builds its prompts, sends them, and makes the records. */
class ArmRun {
  constructor(private readonly options: ArmRunOptions) {}

  get arm(): EvalArm {
    return this.options.arm;
  }

  /** Rejects with the signal's reason; any other error is recorded. */
  async ask(found: FoundQuestion, isWarmUp: boolean, signal: AbortSignal): Promise<QuestionRecord> {
    const { arm, conversation, cache } = this.options;
    const { question, search } = found;
    const asked = { arm: arm.id, conversation, question: found.at, category: question.category, isWarmUp };
    const failure = (stage: "search" | "compose" | "engine", error: unknown): QuestionRecord => {
      signal.throwIfAborted();
      return { ...asked, outcome: "failed", stage, message: messageOf(error) };
    };
    if (search.retrieved === null) return failure("search", search.message);
    let prompt: ArmPrompt;
    try {
      prompt = await this.#build(found, search.retrieved, { signal });
    } catch (error) {
      return failure("compose", error);
    }
    let answer: EngineAnswer;
    try {
      // A warm-up counts in no figure, and likelihood needs no warm cache.
      const gold = isWarmUp ? null : comparable(question);
      answer = await cache.ask(prompt, { goesOn: this.#goesOn(found), gold }, signal);
      await prompt.learn(answer);
    } catch (error) {
      return failure("engine", error);
    }
    const { probeMs = 0 } = prompt.figures.depth ?? {};
    return {
      ...asked,
      outcome: "answered",
      promptTokens: answer.promptTokens,
      cachedTokens: answer.cachedTokens,
      expectedCachedTokens: expectedOf(prompt, answer, this.options.countsAlike),
      answerTokens: answer.answerTokens,
      searchMs: search.searchMs,
      composeMs: prompt.composeMs,
      ttftMs: answer.ttftMs === null ? null : answer.ttftMs + probeMs,
      totalMs: answer.totalMs === null ? null : answer.totalMs + probeMs,
      ...prompt.figures,
      answer: answer.answer,
      gold: question.answer,
      f1: f1Of(answer.answer, comparable(question)),
      likelihood: answer.likelihood ?? null,
      judge: await this.#judged(answer.answer, question, signal),
    };
  }

  /** Replays a question that was asked before the run was stopped, without the engine. */
  async repeat(found: FoundQuestion, recorded: QuestionRecord): Promise<void> {
    if (found.search.retrieved === null) return;
    const isAnswered = recorded.outcome === "answered";
    let prompt: ArmPrompt;
    try {
      prompt = await this.#build(found, found.search.retrieved, { knownDepth: isAnswered ? recorded.depth : null });
    } catch (error) {
      if (!isAnswered && recorded.stage === "compose") return;
      throw error;
    }
    if (!isAnswered) return;
    this.options.cache.repeat(prompt, this.#goesOn(found));
    const { ttftMs, depth } = recorded;
    await prompt.learn({ ...recorded, ttftMs: ttftMs === null ? null : ttftMs - (depth?.probeMs ?? 0) });
  }

  close(): Promise<void> {
    return this.options.prompts.close();
  }

  #build(
    { turn, question, history }: FoundQuestion,
    retrieved: readonly number[],
    { signal, ...known }: Pick<PromptRequest, "knownDepth"> & { readonly signal?: AbortSignal },
  ): Promise<ArmPrompt> {
    const request: PromptRequest = {
      turn,
      question: askedText(question),
      history: historySent(history, this.arm),
      retrieved,
      evidence: question.evidence,
      ...known,
    };
    return this.options.prompts.build(request, signal);
  }

  #goesOn({ said }: FoundQuestion): ChatMessage | null {
    return this.arm.layout === "conversation" ? said : null;
  }

  async #judged(
    answer: string | null,
    { question, answer: gold, gold: kind, category }: Question,
    signal: AbortSignal,
  ): Promise<Judgement | null> {
    const { judge } = this.options;
    if (judge === null || answer === null || gold === null || !isScored(category)) return null;
    try {
      return await judge.judge({ question, gold, answer, kind }, signal);
    } catch (error) {
      // A failing judge must not lose the measurement: its error is recorded in place of its answer.
      signal.throwIfAborted();
      return { isCorrect: null, prompt: "", raw: `failed: ${messageOf(error)}` };
    }
  }
}

function f1Of(answer: string | null, gold: string | null): number | null {
  return answer === null || gold === null ? null : tokenF1(answer, gold);
}

function expectedOf({ expected }: ArmPrompt, { promptTokens }: EngineAnswer, countsAlike: boolean): number | null {
  if (expected === null || promptTokens === null) return null;
  if (countsAlike || expected.totalTokens === 0) return expected.cachedTokens;
  return Math.round((expected.cachedTokens / expected.totalTokens) * promptTokens);
}
