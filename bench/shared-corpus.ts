/**
 * `npm run bench -- papers shared-corpus`: one corpus that many users search, as in ContextPilot's data sets: 600 chunks of 1,024 tokens, 600
 * searches of 15 chunks, all of one `user_id`. The searches draw chunks by Zipf's law. Each column is an exponent; in brackets is the share of all
 * retrieved chunks that are among the 20 % most used. The cache holds a sixteenth of all prompts (`SHARE`). It evicts single blocks, as vLLM does, or
 * whole leaves, as SGLang does. Three seeds; % of the chunks' tokens found in the cache, without questions. The simulation's unit is 16 tokens.
 *
 * A second table has overlapping chunks: 120 sources of five chunks each. The second half of a chunk is the first half of the next one (`OVERLAP`, a
 * share of a chunk). When a search finds a chunk, it finds the next one, too, half the time. `sent once`: the prompt omits units that it already
 * contains. Millions of tokens.
 *
 * Floor: retrieval order. Ceiling of any order of a search's own chunks: not computed.
 */

import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { type BatchRequest, type Label, planBatch } from "../src/core/index.js";
import { executedLive } from "./live-batches.js";
import { longestMatchFirst } from "./longest-match.js";
import { onlineOrders } from "./online-orders.js";
import type { ExecutedRequest } from "./recorded-batch.js";
import { seeded } from "./seeded.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const [CHUNKS, SEARCHES, K, UNITS, UNIT_TOKENS] = [600, 600, 15, 64, 16];
const EXPONENTS = [0.4, 0.6, 0.8, 1.2];
const SEEDS = [1, 2, 3];
const SHARE = Number(process.env["SHARE"] ?? 1 / 16);
const OVERLAP = Number(process.env["OVERLAP"] ?? 0.5);
const PER_SOURCE = 5;

type Search = readonly Label[];

/** Draws distinct chunks by Zipf's law; `withNext`: the chance that a chunk brings the next one of its source. */
function searches(exponent: number, seed: number, withNext = 0): readonly Search[] {
  const random = seeded(seed);
  // Neighbours in a source are not neighbours in use.
  const ranked = Array.from({ length: CHUNKS }, (_, at) => ({ label: (at + 1) as Label, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ label }) => label);
  const upTo: number[] = [];
  for (let rank = 0; rank < CHUNKS; rank++) upTo.push((upTo.at(-1) ?? 0) + 1 / (rank + 1) ** exponent);
  const draw = () => {
    const at = random() * (upTo.at(-1) ?? 0);
    return ranked[upTo.findIndex((sum) => sum > at)] as Label;
  };
  return Array.from({ length: SEARCHES }, () => {
    const found = new Set<Label>();
    while (found.size < K) {
      const chunk = draw();
      found.add(chunk);
      const isLast = chunk % PER_SOURCE === 0;
      if (found.size < K && !isLast && random() < withNext) found.add((chunk + 1) as Label);
    }
    return [...found];
  });
}

function shareOfMostUsed(all: readonly Search[]): number {
  const counts = new Map<Label, number>();
  for (const label of all.flat()) counts.set(label, (counts.get(label) ?? 0) + 1);
  const most = [...counts.values()].sort((a, b) => b - a).slice(0, CHUNKS / 5);
  return most.reduce((sum, count) => sum + count, 0) / all.flat().length;
}

/** Each chunk's units; chunks of a source share those of their overlap. */
function unitsOf(label: Label, overlap: number): readonly number[] {
  const [source, nth] = [Math.floor((label - 1) / PER_SOURCE), (label - 1) % PER_SOURCE];
  const first = source * UNITS * PER_SOURCE + nth * Math.round(UNITS * (1 - overlap));
  return Array.from({ length: UNITS }, (_, at) => first + at);
}

interface Prompts {
  readonly overlap: number;
  readonly isOnce: boolean;
}

function promptOf({ order }: ExecutedRequest, { overlap, isOnce }: Prompts): readonly number[] {
  const units = order.flatMap((label) => unitsOf(label, overlap));
  // One more unit for the question, which is never cached.
  return [...(isOnce ? new Set(units) : units), -1];
}

const requestsOf = (all: readonly Search[]): readonly BatchRequest[] =>
  all.map((search) => ({
    key: "corpus",
    blocks: search.map((label) => ({ label, tokens: UNITS * UNIT_TOKENS })),
  }));

type Arm = (requests: readonly BatchRequest[], prompts: Prompts, capacityTokens: number) => readonly ExecutedRequest[];

const asFound: Arm = (requests) =>
  requests.map(({ blocks }, request) => ({ request, order: blocks.map(({ label }) => label) }));
const inArrival = (executed: readonly ExecutedRequest[]) => executed.toSorted((a, b) => a.request - b.request);
const longest =
  (waiting: number): Arm =>
  (requests, prompts, capacityTokens) =>
    longestMatchFirst(
      asFound(requests, prompts, capacityTokens),
      (each) => promptOf(each, prompts),
      { capacityTokens },
      waiting,
    );
const ARMS: readonly (readonly [name: string, kind: "blocks" | "radix", arm: Arm])[] = [
  ["retrieval order, as they came", "blocks", asFound],
  ["SGLang's cache, first come", "radix", asFound],
  ["SGLang's cache, longest match first of 64 waiting", "radix", longest(64)],
  ["SGLang's cache, longest match first of all", "radix", longest(SEARCHES)],
  ["Alg. 2 online", "blocks", (requests) => onlineOrders({ requests })],
  ["Alg. 4, as they came", "blocks", (requests) => inArrival(planBatch(requests, "context-pilot").requests)],
  ["Alg. 4 and 5", "blocks", (requests) => planBatch(requests, "context-pilot").requests],
  ["`prefix-exact`, one by one", "blocks", (requests) => executedLive(requests, null)],
  ["`shared-prefixes`, batches of 64", "blocks", (requests) => executedLive(requests, 64)],
  ["`shared-prefixes`, all known", "blocks", (requests) => planBatch(requests).requests],
];

/** Units of the prompts, and how many of them the cache held. */
function served(all: readonly Search[], prompts: Prompts, kind: "blocks" | "radix", arm: Arm) {
  const requests = requestsOf(all);
  const whole = all.length * K * UNITS;
  const capacityTokens = SHARE * whole;
  const cache = new SimulatedCache(kind, { capacityTokens }, 1);
  let [held, sent] = [0, 0];
  for (const each of arm(requests, prompts, capacityTokens)) {
    const units = promptOf(each, prompts);
    held += cache.serve(units);
    sent += units.length - 1;
  }
  return { held, sent };
}

const shares = EXPONENTS.map((exponent) => mean(SEEDS.map((seed) => shareOfMostUsed(searches(exponent, seed)))));
printHead(["% held", ...EXPONENTS.map((of, at) => `Zipf ${of} (${Math.round(100 * (shares[at] ?? 0))} %)`)]);
for (const [name, kind, arm] of ARMS) {
  const cells = EXPONENTS.map((exponent) =>
    mean(
      SEEDS.map((seed) => {
        const { held, sent } = served(searches(exponent, seed), { overlap: 0, isOnce: false }, kind, arm);
        return (100 * held) / sent;
      }),
    ).toFixed(1),
  );
  printRow([name, ...cells]);
}

console.log(`\nOverlapping by ${Math.round(100 * OVERLAP)} %, Zipf 0.8; million tokens\n`);
printHead(["", "sent whole", "computed", "sent once", "computed"]);
for (const [name, kind, arm] of ARMS) {
  const cells = [false, true].flatMap((isOnce) => {
    const { held, sent } = served(searches(0.8, 1, 0.5), { overlap: OVERLAP, isOnce }, kind, arm);
    return [sent, sent - held].map((units) => ((units * UNIT_TOKENS) / 1e6).toFixed(2));
  });
  printRow([name, ...cells]);
}
