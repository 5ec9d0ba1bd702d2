import { readFileSync } from "node:fs";
import { join } from "node:path";
import { countO200k, encodeO200k } from "../../../src/cli/o200k.js";
import type { ScopePolicy } from "../../../src/core/index.js";
import { inTurn } from "../../../src/eval/engine/shared-cache.js";
import { type ComposedPrompt, composeTrace, type ReplayOptions } from "../../../src/eval/replay/compose-trace.js";
import { recordedOrder } from "../../../src/eval/replay/recorded-order.js";
import {
  type PeerOrders,
  type RecordedTrace,
  readPeerOrders,
  readTrace,
} from "../../../src/eval/replay/recorded-trace.js";
import { replayTrace } from "../../../src/eval/replay/replay-trace.js";
import { simulatedCache } from "../../../src/simulator/simulated-cache.js";

/** Conversations of which real Mem0 searches, and a peer's orderings of them, are recorded. */
export const RECORDED_CONVERSATIONS = ["conv-26", "conv-30", "conv-41", "conv-42", "conv-43", "conv-44"] as const;

/** One user's recorded searches, and the orders that ContextPilot 0.4.1's own code made of them. */
export interface Recording {
  readonly trace: RecordedTrace;
  readonly peer: PeerOrders;
}

/** A policy made for one replay of a recording; a recorded order fits its own questions only. */
export type PolicyFor = (recording: Recording, k: number) => ScopePolicy;

/** The order that ContextPilot 0.4.1's own code made. */
export const contextPilotsOwn: PolicyFor = ({ trace, peer }, k) => recordedOrder(trace, peer, k);

const COUNTERS = { encode: encodeO200k, countTokens: countO200k };

/** Reads a recording from the shared data folder. */
export function readRecording(data: string, conversation: (typeof RECORDED_CONVERSATIONS)[number]): Recording {
  const read = (folder: string): unknown =>
    JSON.parse(readFileSync(join(data, folder, `${conversation}.json`), "utf8"));
  return { trace: readTrace(read("traces")), peer: readPeerOrders(read("peers")) };
}

/** What is asked, and how it is ordered. */
export interface Asked {
  readonly k: number;
  readonly policyFor: PolicyFor;
  /** Memory budget of each prompt, as a multiple of the tokens that it retrieved; null: none. */
  readonly budgetEach: number | null;
  /** First so many questions of each conversation. */
  readonly limit: number;
}

/** Share of memory tokens in single prompts that an endless, block-exact prefix cache held already. */
export function memoryHitShare(recording: Recording, asked: Asked): number {
  const { totals } = replayTrace(recording.trace, simulatedCache("blocks"), COUNTERS, optionsFor(recording, asked));
  return 1 - totals.prefilledMemoryTokens / totals.memoryTokens;
}

/** The single prompts of several users who ask in turn. */
export function promptsInTurn(recordings: readonly Recording[], asked: Asked): ComposedPrompt[] {
  return [
    ...inTurn(recordings.map((recording) => composeTrace(recording.trace, COUNTERS, optionsFor(recording, asked)))),
  ];
}

function optionsFor(recording: Recording, { k, policyFor, budgetEach, limit }: Asked): ReplayOptions {
  return { k, policy: policyFor(recording, k), budgetRatio: null, budgetEach, layout: "single", limit };
}
