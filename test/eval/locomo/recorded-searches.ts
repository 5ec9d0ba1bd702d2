import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { inTurn } from "../../../bench/shared-cache.js";
import { countO200k, encodeO200k } from "../../../src/cli/o200k.js";
import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { NOTHING_CARRIED, type ScopePolicy } from "../../../src/core/index.js";
import { EvaluationError, readJson } from "../../../src/eval/base/run-files.js";
import { type RecordedTrace, readTrace } from "../../../src/eval/replay/recorded-trace.js";
import {
  composeTrace,
  type ReplayedPrompt,
  type ReplayOptions,
  replayTrace,
} from "../../../src/eval/replay/replay-trace.js";

/** Conversations of which real Mem0 searches, and a peer's orderings of them, are recorded. */
export const RECORDED_CONVERSATIONS = ["conv-26", "conv-30", "conv-41", "conv-42", "conv-43", "conv-44"] as const;
export type RecordedConversation = (typeof RECORDED_CONVERSATIONS)[number];

const peerOrders = z.object({
  policy: z.string(),
  orders: z.record(z.string(), z.array(z.array(z.int().min(0)))),
});
/** Another system's order of each question's blocks, as memory indexes, by `k20`, `k100`, …. */
export type PeerOrders = z.output<typeof peerOrders>;

export function readPeerOrders(json: unknown): PeerOrders {
  return peerOrders.parse(json);
}

/** One user's recorded searches, and the orders that ContextPilot 0.4.1's own code made of them. */
export interface Recording {
  readonly trace: RecordedTrace;
  readonly peer: PeerOrders;
}

/** A policy made for one replay of a recording; a recorded order fits its own questions only. */
export type PolicyFor = (recording: Recording, k: number) => ScopePolicy;

/** The order that ContextPilot 0.4.1's own code made. */
export const contextPilotsOwn: PolicyFor = ({ trace, peer }, k) => recordedOrder(trace, peer, k);

/**
 * A policy that orders each question of a trace, asked from the first on as single requests, as another system did. Use it for one replay:
 * it counts the questions. Throws where an order is missing or has other blocks.
 */
function recordedOrder(trace: RecordedTrace, peer: PeerOrders, k: number): ScopePolicy {
  const orders = peer.orders[`k${k}`];
  if (orders === undefined) throw new Error(`peer: has no orders for k = ${k}`);
  let at = 0;
  return {
    // Plans name a policy; this is the system recorded most.
    name: "context-pilot",
    order: ({ retrieved }) => {
      const asked = trace.questions[at]?.retrieved.slice(0, k) ?? [];
      const order = orders[at++] ?? [];
      // Labels follow the first appearance of memories, so a block is found by its position in the search results.
      const labels = order.flatMap((memory) => retrieved[asked.indexOf(memory)]?.label ?? []);
      if (labels.length !== retrieved.length) throw new Error(`peer: order ${at - 1} is not of what was retrieved`);
      return { labels, carried: NOTHING_CARRIED, searchPath: [] };
    },
  };
}

const COUNTERS = { encode: encodeO200k, countTokens: countO200k };

/** What the title of a test says that has no {@link recordedData}. */
export const SKIPPED = " (skipped: set LOCOMO_DATA, see test/eval/locomo/recorded-searches.ts)";

/** How to get {@link recordedData}. */
export const HOW_TO_RECORD = `set LOCOMO_DATA to a folder of recorded Mem0 searches; of LoCoMo's public file (CC BY-NC 4.0) this makes one:
  npx memprefix eval locomo --data locomo10.json --conversations ${RECORDED_CONVERSATIONS.join(",")} \\
    --categories 1,2,3,4,5 --k 100 --policies readme --no-times --out FOLDER`;

/**
 * The folder that `LOCOMO_DATA` names; null where it is unset. It holds `traces/<conversation>.json` (or `<conversation>-k100.json`, as
 * `memprefix eval locomo` writes them); for comparisons with ContextPilot's own code `peers/<conversation>.json`; and for texts LoCoMo's
 * file itself, in `locomo/`. Throws where there is no such folder.
 */
export function recordedData(): string | null {
  const folder = process.env["LOCOMO_DATA"];
  if (folder === undefined || folder === "") return null;
  if (!existsSync(join(folder, "traces"))) throw new EvaluationError(`${folder}: has no folder traces`);
  return folder;
}

/** The same where it has the peer's orders too; else null. */
export function recordedPeers(): string | null {
  const folder = recordedData();
  return folder !== null && existsSync(join(folder, "peers")) ? folder : null;
}

/** Reads one conversation's recorded searches. */
export function readRecordedTrace(data: string, conversation: RecordedConversation): RecordedTrace {
  const plain = join(data, "traces", `${conversation}.json`);
  const path = existsSync(plain) ? plain : join(data, "traces", `${conversation}-k100.json`);
  return readTrace(readJson(path));
}

/** Reads one conversation's recorded searches with the peer's orders of them. Throws where the folder has none. */
export function readRecording(data: string, conversation: RecordedConversation): Recording {
  const path = join(data, "peers", `${conversation}.json`);
  if (!existsSync(path)) throw new EvaluationError(`there is no ${path}: the peer's orders, see docs/evaluation.md`);
  return { trace: readRecordedTrace(data, conversation), peer: readPeerOrders(readJson(path)) };
}

/** LoCoMo's file, or a part of it; null where the folder has none. */
export function locomoFile(data: string): string | null {
  const folder = join(data, "locomo");
  const [name] = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".json")) : [];
  return name === undefined ? null : join(folder, name);
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
  const { totals } = replayTrace(recording.trace, new SimulatedCache("blocks"), COUNTERS, optionsFor(recording, asked));
  return 1 - totals.prefilledMemoryTokens / totals.memoryTokens;
}

/** The single prompts of several users who ask in turn. */
export function promptsInTurn(recordings: readonly Recording[], asked: Asked): ReplayedPrompt[] {
  return [
    ...inTurn(recordings.map((recording) => composeTrace(recording.trace, COUNTERS, optionsFor(recording, asked)))),
  ];
}

function optionsFor(recording: Recording, { k, policyFor, budgetEach, limit }: Asked): ReplayOptions {
  return { k, policy: policyFor(recording, k), budgetRatio: null, budgetEach, layout: "single", limit };
}
