/*
 * An evaluation's run: which arms there are, how each builds its prompts, and the loop that asks every question of a conversation.
 *
 * Enters: conversations with recorded searches, arms, an engine and a judge.
 * Leaves: one record per question and arm, written before the next is asked, so that a stopped run can be resumed.
 * Arms take turns: another one begins with each question.
 */

import { setImmediate } from "node:timers/promises";
import type { ChatMessage, TokenCounter } from "../../core/index.js";
import type { Memstem } from "../../service/library/memstem.js";
import { EvaluationError } from "../base/evaluation-error.js";
import { NO_ANSWER } from "../base/instruction.js";
import type { EvalArm, QuestionRecord } from "../base/run-record.js";
import type { MeasuredEngine } from "../engine/measured-engine.js";
import type { KeptMemories } from "../locomo/conversation-memories.js";
import type { EvaluatedConversation } from "../locomo/evaluated-conversation.js";
import { askedText } from "../locomo/locomo-data.js";
import type { RecordedSearches } from "../locomo/recorded-searches.js";
import { budgetOf, composedPrompts, handBuiltPrompts, MemoryList } from "./arm-prompts.js";
import { ArmRun, type FoundQuestion, type NamedJudge } from "./arm-run.js";

/** What all conversations of a run share. */
export interface RunParts {
  readonly arms: readonly EvalArm[];
  readonly engine: MeasuredEngine;
  readonly judges: readonly NamedJudge[];
  readonly countTokens: TokenCounter;
  /** Opens a service that knows nobody, on a database of its own. */
  readonly openMemstem: (now: () => number) => Memstem;
}

/** One conversation of a run. */
export interface ConversationRun {
  readonly conversation: EvaluatedConversation;
  readonly memories: KeptMemories;
  readonly searches: RecordedSearches;
  /** How many of its first questions are warm-up. */
  readonly warmUpQuestions: number;
  /** What was recorded of it before, by {@link recordKey}. */
  readonly recorded: ReadonlyMap<string, QuestionRecord>;
  readonly onRecord: (record: QuestionRecord) => void;
}

/** One question of one arm. */
export function recordKey(arm: string, conversation: string, question: number): string {
  return JSON.stringify([arm, conversation, question]);
}

/**
 * Asks every question of a conversation with every arm; another arm begins with each question. Every arm begins with an empty cache and
 * a memstem of its own that knows nobody. What was recorded before is composed again but not asked again, so that every arm resumes
 * in the same state. Histories hold the right answers, whatever the engine says, so that all arms have the same ones. Rejects with the
 * signal's reason.
 */
export async function runConversation(parts: RunParts, run: ConversationRun, signal: AbortSignal): Promise<void> {
  const { conversation, recorded, onRecord } = run;
  const list = new MemoryList(run.memories, parts.countTokens);
  const lanes: Lane[] = [];
  try {
    for (const arm of parts.arms) lanes.push(await openLane(parts, conversation.id, list, arm));
    const history: ChatMessage[] = [];
    for (const [turn, { at, question }] of conversation.asked.entries()) {
      const said: ChatMessage = { role: "assistant", content: question.answer ?? NO_ANSWER };
      for (let n = 0; n < lanes.length; n++) {
        const lane = lanes[(turn + n) % lanes.length];
        if (lane === undefined) continue;
        const search = run.searches.find(conversation.id, at, lane.run.arm.k);
        if (search === undefined)
          throw new EvaluationError(`question ${at} of ${conversation.id} was never searched for`);
        const found: FoundQuestion = { question, at, turn, history: [...history], said, search };
        const known = recorded.get(recordKey(lane.run.arm.id, conversation.id, at));
        if (known !== undefined) {
          await lane.run.repeat(found, known);
          lane.goesOn = true;
          continue;
        }
        // A simulated engine never awaits: without a pause, no signal is handled and no progress drawn.
        await setImmediate();
        signal.throwIfAborted();
        // A real engine's cache may not have outlived the process that filled it.
        const isCold = lane.goesOn && parts.engine.losesCache;
        lane.goesOn = false;
        onRecord(await lane.run.ask(found, turn < run.warmUpQuestions || isCold, signal));
      }
      history.push({ role: "user", content: askedText(question) }, said);
    }
  } finally {
    for (const lane of lanes) await lane.run.close();
  }
}

interface Lane {
  readonly run: ArmRun;
  /** Whether its next question follows questions that were asked before the run was stopped. */
  goesOn: boolean;
}

async function openLane(parts: RunParts, conversation: string, list: MemoryList, arm: EvalArm): Promise<Lane> {
  const { engine, judges, openMemstem } = parts;
  const cache = await engine.open(arm, conversation);
  const { mark, promptTokens } = cache;
  const { family } = engine;
  const { policy } = arm;
  const prompts =
    policy === "readme" || policy === "last-message"
      ? handBuiltPrompts(list, policy, mark)
      : composedPrompts(list, { openMemstem, arm, budget: budgetOf(arm), policy, family, mark, promptTokens });
  const countsAlike = engine.kind === "simulated";
  return { run: new ArmRun({ arm, conversation, prompts, cache, countsAlike, judges }), goesOn: false };
}
