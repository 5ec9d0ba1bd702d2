import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { countO200k } from "../../src/cli/o200k.js";
import {
  type Digest,
  EMPTY_SCOPE,
  type Label,
  prefixExact,
  renderBlock,
  ScopeState,
  type TurnId,
} from "../../src/core/index.js";
import { ServedPrefixes } from "../../src/eval/served-prefixes.js";

/** Conversations of which real Mem0 searches, and a peer's orderings of them, are recorded. */
export const RECORDED_CONVERSATIONS = ["conv-26", "conv-30", "conv-41", "conv-42", "conv-43", "conv-44"] as const;

const trace = z.object({
  memories: z.array(z.object({ memory: z.string() })),
  questions: z.array(z.object({ question: z.string(), retrieved: z.array(z.int()) })),
});
const peer = z.object({ orders: z.object({ k20: z.array(z.array(z.int())), k100: z.array(z.array(z.int())) }) });

/** A recorded conversation: memories by index, searches best first, and the orders that ContextPilot 0.4.1 made of them. */
export interface Recording {
  readonly memories: readonly string[];
  readonly questions: readonly { readonly question: string; readonly retrieved: readonly number[] }[];
  readonly peerOrders: z.infer<typeof peer>["orders"];
}

/** Reads a recording from the shared data folder. */
export function readRecording(data: string, conversation: (typeof RECORDED_CONVERSATIONS)[number]): Recording {
  const read = (folder: string) => JSON.parse(readFileSync(join(data, folder, `${conversation}.json`), "utf8"));
  const { memories, questions } = trace.parse(read("traces"));
  return {
    memories: memories.map(({ memory }) => memory),
    questions,
    peerOrders: peer.parse(read("peers")).orders,
  };
}

/** Share of retrieved memory tokens that an endless prefix cache held already, by who ordered the blocks. */
export interface MemoryHits {
  readonly retrieval: number;
  readonly contextPilot: number;
  readonly prefixExact: number;
}

/** Replays a recording's questions as single requests, block-exact. */
export function memoryHits({ memories, questions, peerOrders }: Recording, k: 20 | 100): MemoryHits {
  const weights = memories.map((text, index) =>
    countO200k(renderBlock({ label: (index + 1) as Label, replaces: [] }, text)),
  );
  const retrieved = questions.map((question) => question.retrieved.slice(0, k));
  const state = new ScopeState(EMPTY_SCOPE, countO200k);
  const anchor = "recording" as Digest;
  const ours = retrieved.map((blocks, turn) => {
    const weighted = blocks.map((block) => ({ label: (block + 1) as Label, tokens: weights[block] ?? 0 }));
    const { labels } = prefixExact.order({ anchor, retrieved: weighted, carrying: null }, state);
    state.index.insert(anchor, labels, turn);
    state.recent.take(
      weighted.map(({ label }) => label),
      turn as TurnId,
    );
    return labels.map((label) => label - 1);
  });
  return {
    retrieval: hitShare(retrieved, weights),
    contextPilot: hitShare(peerOrders[`k${k}`], weights),
    prefixExact: hitShare(ours, weights),
  };
}

/** Independent of the index under test: {@link ServedPrefixes} knows whole sequences only. */
export function hitShare(orders: readonly (readonly number[])[], weights: readonly number[]): number {
  const served = new ServedPrefixes();
  const sum = (blocks: readonly number[]) => blocks.reduce((tokens, block) => tokens + (weights[block] ?? 0), 0);
  let hit = 0;
  let total = 0;
  for (const order of orders) {
    hit += sum(order.slice(0, served.take(order)));
    total += sum(order);
  }
  return hit / total;
}
