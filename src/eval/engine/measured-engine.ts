/*
 * Engines that answer an evaluation's prompts: a simulated prefix cache, llama.cpp in this process, or any OpenAI-compatible API.
 *
 * Enters: a prompt as one arm built it, and the arm whose cache it may hit.
 * Leaves: prompt and cached tokens, time to the first token, and the answer; null for what an engine does not report.
 * No arm finds another arm's prompts in its cache.
 */

import type { ChatMessage } from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import type { EvalArm } from "../base/run-record.js";

/** A prompt as an engine gets it. */
export interface EnginePrompt {
  readonly messages: readonly ChatMessage[];
  /** What memstem says to send along; empty where a prompt is not memstem's. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** What an engine made of a prompt. Null: it did not say, or it is not measured. */
export interface EngineAnswer {
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly answerTokens: number | null;
  /** Milliseconds from sending the prompt to the first of its answer. */
  readonly ttftMs: number | null;
  /** Null where its text is no answer: simulated, or the noise of random weights. */
  readonly answer: string | null;
}

/** An engine's cache as one arm finds it for one conversation: empty, and shared with no other arm. */
export interface ArmCache {
  /** A line to put at the very beginning of every prompt, where nothing else keeps arms apart; null for none. */
  readonly mark: string | null;
  /** Asks. `goesOn`: the message that the next prompt has behind this one, null where none goes on from it. */
  ask(prompt: EnginePrompt, goesOn: ChatMessage | null, signal: AbortSignal): Promise<EngineAnswer>;
  /** A prompt that was asked before the run was stopped: what a cache that is kept here should know of it. */
  repeat(prompt: EnginePrompt, goesOn: ChatMessage | null): void;
}

/** What answers the questions of an evaluation. */
export interface MeasuredEngine {
  readonly kind: "simulated" | "embedded" | "url";
  /** Whose form prompts take. */
  readonly family: EngineName;
  /** Tries it out before anything is measured. Rejects where it does not answer. */
  check(signal: AbortSignal): Promise<void>;
  open(arm: EvalArm, conversation: string): Promise<ArmCache>;
  close(): Promise<void>;
}
