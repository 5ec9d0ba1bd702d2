/*
 * Engines that answer an evaluation's prompts: a simulated prefix cache, or any OpenAI-compatible API.
 *
 * Enters: a prompt as one arm built it, and the arm whose cache it may hit. No arm hits another arm's prompts.
 * Leaves: prompt and cached tokens, time to the first token, the answer; null for what the engine does not report.
 */

import type { ChatMessage, DepthSettings } from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import type { ChosenDepth, DraftAt } from "../../service/compose/prompt-planner.js";
import type { AnswerLikelihood, EngineIdentity, EvalArm } from "../base/run-record.js";

export interface EnginePrompt {
  readonly messages: readonly ChatMessage[];
  /** Body fields that memprefix adds; empty for prompts that are not memprefix's. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** An engine's report on a prompt. Null: not reported, or not measured. Times run from sending the prompt. */
export interface EngineAnswer {
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly answerTokens: number | null;
  readonly ttftMs: number | null;
  /** To the end of the answer. */
  readonly totalMs: number | null;
  /** Null: simulated, or not scored. */
  readonly answer: string | null;
  readonly likelihood?: AnswerLikelihood | null;
}

export interface AfterPrompt {
  /** The message after this prompt in the next one; null where no prompt extends it. */
  readonly goesOn: ChatMessage | null;
  readonly gold: string | null;
}

/**
 * Chooses how many memories a prompt gets, as the proxy does: by the answer's first token after a few of them. Never rejects.
 *
 * @param tenant the same object for all prompts of an arm in a conversation
 */
export type ChooseDepth = (
  tenant: object,
  settings: DepthSettings,
  draftAt: DraftAt,
  signal: AbortSignal,
) => Promise<ChosenDepth>;

/** An engine's cache as one arm sees it in one conversation: empty at first, shared with no other arm. */
export interface ArmCache {
  /** First line of every prompt, where no salt separates arms; null for none. */
  readonly mark: string | null;
  /** Most prompt tokens that leave room for an answer, by the engine's count; null: no known limit. */
  readonly promptTokens: number | null;
  /** Null: the engine reports no token probabilities, so prompts have all memories. */
  readonly chooseDepth: ChooseDepth | null;
  ask(prompt: EnginePrompt, after: AfterPrompt, signal: AbortSignal): Promise<EngineAnswer>;
  /** Puts a prompt of a stopped run back into a cache that lives in this process. */
  repeat(prompt: EnginePrompt, goesOn: ChatMessage | null): void;
}

export interface MeasuredEngine {
  readonly kind: "simulated" | "url";
  /** Whether its cache may be gone when a run is resumed, which changes what is measured. */
  readonly losesCache: boolean;
  readonly family: EngineName;
  /** Tries the engine before anything is measured. Resolves to its version and weights; rejects where it does not answer. */
  check(signal: AbortSignal): Promise<EngineIdentity | null>;
  open(arm: EvalArm, conversation: string): Promise<ArmCache>;
}
