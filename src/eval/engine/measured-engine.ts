/*
 * Engines that answer an evaluation's prompts: a simulated prefix cache, or any OpenAI-compatible API.
 *
 * Enters: a prompt as one arm built it, and the arm whose cache it may hit.
 * Leaves: prompt and cached tokens, time to the first token, and the answer; null for what an engine does not report.
 * No arm finds another arm's prompts in its cache.
 */

import type { ChatMessage, DepthSettings } from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import type { ChosenDepth, DraftAt } from "../../service/compose/prompt-planner.js";
import type { AnswerLikelihood, EngineIdentity, EvalArm } from "../base/run-record.js";

/** A prompt as an engine gets it. */
export interface EnginePrompt {
  readonly messages: readonly ChatMessage[];
  /** Body fields that memprefix adds; empty for prompts that are not memprefix's. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** What an engine reported of a prompt. Null: not reported, or not measured. */
export interface EngineAnswer {
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly answerTokens: number | null;
  /** Milliseconds from sending the prompt to the first of its answer. */
  readonly ttftMs: number | null;
  /** Milliseconds from sending the prompt to the end of its answer. */
  readonly totalMs: number | null;
  /** Null where its text is no answer: simulated, or not scored. */
  readonly answer: string | null;
  readonly likelihood?: AnswerLikelihood | null;
}

/** What follows a prompt. */
export interface AfterPrompt {
  /** The message that follows this prompt in the next one; null where no prompt extends it. */
  readonly goesOn: ChatMessage | null;
  /** The right answer; null where there is none. */
  readonly gold: string | null;
}

/**
 * Chooses how many memories a prompt gets, as the proxy does: by the first token of the answer after a few of them. Never rejects.
 *
 * @param tenant the same object for all prompts of an arm in a conversation
 */
export type ChooseDepth = (
  tenant: object,
  settings: DepthSettings,
  draftAt: DraftAt,
  signal: AbortSignal,
) => Promise<ChosenDepth>;

/** An engine's cache as one arm finds it for one conversation: empty, and shared with no other arm. */
export interface ArmCache {
  /** A line to put at the head of every prompt, where no salt separates arms; null for none. */
  readonly mark: string | null;
  /** Most tokens of a prompt that leave room for its answer, by the engine's own count; null: no limit is known. */
  readonly promptTokens: number | null;
  /** Null where the engine gives no probabilities of tokens: prompts have all memories. */
  readonly chooseDepth: ChooseDepth | null;
  ask(prompt: EnginePrompt, after: AfterPrompt, signal: AbortSignal): Promise<EngineAnswer>;
  /** A prompt that was asked before the run was stopped, for caches that live in this process. */
  repeat(prompt: EnginePrompt, goesOn: ChatMessage | null): void;
}

/** What answers the questions of an evaluation. */
export interface MeasuredEngine {
  readonly kind: "simulated" | "url";
  /** Whether what it measures depends on a cache that may be gone when a run is resumed. */
  readonly losesCache: boolean;
  /** The family whose form prompts have. */
  readonly family: EngineName;
  /** Tries it out before anything is measured, and resolves to what it says of its version and weights. Rejects where it does not answer. */
  check(signal: AbortSignal): Promise<EngineIdentity | null>;
  open(arm: EvalArm, conversation: string): Promise<ArmCache>;
}
