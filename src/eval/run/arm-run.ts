import type { ChatMessage } from "../../core/index.js";
import type { AnsweredQuestion, EvalArm, Judgement, QuestionRecord } from "../base/run-record.js";
import type { ArmCache, EngineAnswer } from "../engine/measured-engine.js";
import { askedText, type Question } from "../locomo/locomo-data.js";
import type { RecordedSearch } from "../locomo/recorded-searches.js";
import { scoreAnswer } from "../scores/answer-scores.js";
import type { Judge, JudgedAnswer } from "../scores/judge.js";
import type { ArmPrompt, PromptBuilder, PromptRequest } from "./arm-prompts.js";
import { historySent } from "./history-sent.js";

/** A question as it is asked, with what a search found for it. */
export interface FoundQuestion {
  readonly question: Question;
  /** Place among the conversation's questions in the data file. */
  readonly at: number;
  /** How many were asked before it. */
  readonly turn: number;
  readonly history: readonly ChatMessage[];
  /** What histories hold as its answer. */
  readonly said: ChatMessage;
  readonly search: RecordedSearch;
}

export interface ArmRunOptions {
  readonly arm: EvalArm;
  readonly conversation: string;
  readonly prompts: PromptBuilder;
  readonly cache: ArmCache;
  /** Whether the engine counts tokens as memstem does; otherwise what memstem expects is scaled to the engine's count of the prompt. */
  readonly countsAlike: boolean;
  /** The first one's verdicts are those of the report. */
  readonly judges: readonly NamedJudge[];
}

/** A judge, by the name that the run's records have. */
export interface NamedJudge {
  readonly name: string;
  readonly judge: Judge;
}

/** One arm in one conversation: builds its prompts, asks its engine, and makes the records. */
export class ArmRun {
  readonly #options: ArmRunOptions;

  constructor(options: ArmRunOptions) {
    this.#options = options;
  }

  get arm(): EvalArm {
    return this.#options.arm;
  }

  /** Rejects with the signal's reason where it aborts; whatever else goes wrong is recorded. */
  async ask(found: FoundQuestion, isWarmUp: boolean, signal: AbortSignal): Promise<QuestionRecord> {
    const { arm, conversation, cache } = this.#options;
    const { question, search } = found;
    const asked = { arm: arm.id, conversation, question: found.at, category: question.category, isWarmUp };
    const failure = (stage: "search" | "compose" | "engine", error: unknown): QuestionRecord => {
      signal.throwIfAborted();
      const message = error instanceof Error ? error.message : String(error);
      return { ...asked, outcome: "failed", stage, message };
    };
    if (search.retrieved === null) return failure("search", search.message);
    let prompt: ArmPrompt;
    try {
      prompt = await this.#build(found, search.retrieved);
    } catch (error) {
      return failure("compose", error);
    }
    let answer: EngineAnswer;
    try {
      // A warm-up is in no figure, and there is nothing to warm up for what is computed anew.
      const gold = isWarmUp ? null : comparable(question);
      answer = await cache.ask(prompt, { goesOn: this.#goesOn(found), gold }, signal);
      await prompt.learn(answer);
    } catch (error) {
      return failure("engine", error);
    }
    return {
      ...asked,
      outcome: "answered",
      promptTokens: answer.promptTokens,
      cachedTokens: answer.cachedTokens,
      expectedCachedTokens: expectedOf(prompt, answer, this.#options.countsAlike),
      answerTokens: answer.answerTokens,
      searchMs: search.searchMs,
      composeMs: prompt.composeMs,
      ttftMs: answer.ttftMs,
      totalMs: answer.totalMs,
      retrievedTokens: prompt.retrievedTokens,
      memoryTokens: prompt.memoryTokens,
      memoriesCut: prompt.memoriesCut,
      messagesCut: prompt.messagesCut,
      isFreshStart: prompt.isFreshStart,
      evidence: question.evidence.length,
      evidenceInPrompt: prompt.evidenceInPrompt,
      references: prompt.references,
      referencesResolved: prompt.referencesResolved,
      answer: answer.answer,
      gold: question.answer,
      ...scoresOf(answer.answer, question),
      likelihood: answer.likelihood ?? null,
      ...(await this.#judged(answer.answer, question, signal)),
    };
  }

  /** Replays a question that was asked before the run was stopped, without asking the engine. */
  async repeat(found: FoundQuestion, recorded: QuestionRecord): Promise<void> {
    if (found.search.retrieved === null) return;
    const isAnswered = recorded.outcome === "answered";
    let prompt: ArmPrompt;
    try {
      prompt = await this.#build(found, found.search.retrieved);
    } catch (error) {
      if (!isAnswered && recorded.stage === "compose") return;
      throw error;
    }
    if (!isAnswered) return;
    this.#options.cache.repeat(prompt, this.#goesOn(found));
    await prompt.learn(recorded);
  }

  close(): Promise<void> {
    return this.#options.prompts.close();
  }

  #build({ turn, question, history }: FoundQuestion, retrieved: readonly number[]): Promise<ArmPrompt> {
    const request: PromptRequest = {
      turn,
      question: askedText(question),
      history: historySent(history, this.arm),
      retrieved,
      evidence: question.evidence,
    };
    return this.#options.prompts.build(request);
  }

  #goesOn({ said }: FoundQuestion): ChatMessage | null {
    return this.arm.layout === "conversation" ? said : null;
  }

  async #judged(
    answer: string | null,
    { question, answer: gold, gold: kind }: Question,
    signal: AbortSignal,
  ): Promise<Pick<AnsweredQuestion, "judge" | "otherJudgements">> {
    if (answer === null || gold === null) return { judge: null, otherJudgements: [] };
    const judged = { question, gold, answer, kind };
    const said = await Promise.all(
      this.#options.judges.map(async ({ name, judge }) => ({
        judge: name,
        ...(await judgementOf(judge, judged, signal)),
      })),
    );
    const [first, ...otherJudgements] = said;
    if (first === undefined) return { judge: null, otherJudgements: [] };
    const { judge: _name, ...judge } = first;
    return { judge, otherJudgements };
  }
}

/** A failing judge does not lose the measurement: its error is kept in place of its answer. */
async function judgementOf(judge: Judge, answer: JudgedAnswer, signal: AbortSignal): Promise<Judgement> {
  try {
    return await judge.judge(answer, signal);
  } catch (error) {
    signal.throwIfAborted();
    const raw = `failed: ${error instanceof Error ? error.message : String(error)}`;
    return { isCorrect: null, prompt: "", raw };
  }
}

/** What answers are compared with, word by word: the right answer, not what a good one takes into account; null where there is none. */
function comparable({ answer, gold = "answer" }: Question): string | null {
  return gold === "answer" ? answer : null;
}

function scoresOf(answer: string | null, question: Question) {
  const gold = comparable(question);
  return answer === null ? { f1: null, bleu1: null } : scoreAnswer(answer, gold, question.category);
}

function expectedOf({ expected }: ArmPrompt, { promptTokens }: EngineAnswer, countsAlike: boolean): number | null {
  if (expected === null || promptTokens === null) return null;
  if (countsAlike || expected.totalTokens === 0) return expected.cachedTokens;
  return Math.round((expected.cachedTokens / expected.totalTokens) * promptTokens);
}
