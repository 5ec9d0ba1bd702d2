/**
 * `npm run bench -- papers warm-start`: what contexts known beforehand are worth to requests that come later, as ContextPilot's offline mode builds its
 * index before it serves. Recorded real Mem0 searches of six LoCoMo users (first 150 questions each): the first half is known, the second is asked one
 * by one. An endless cache that is exact on blocks and empty at the start, memories alone; share of blocks that it held, means over the users. Takes
 * `--data FOLDER` (`recorded-data.ts`).
 *
 * `known`: memprefix composed the first half as a `warm_start`; ContextPilot's tree is built of it (Alg. 4).
 * `sent`: those prompts went to the engine, memprefix's one by one, ContextPilot's in the orders of its tree. Floor: `cold`.
 */
import {
  ClusterTree,
  ContextIndex,
  clusterContexts,
  type Digest,
  type Label,
  prefixExact,
  RecentRetrievals,
  type TurnId,
} from "../src/core/index.js";
import { alignTo } from "../src/core/ordering/ordering.js";
import { leadingHeld } from "./overlap-shares.js";
import { neededTraces } from "./recorded-data.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

/** A memory of LoCoMo has some 17. */
const BLOCK_TOKENS = 17;
const [LIMIT, MAX_NODES] = [150, 20_000];
const HERE = "warm-start" as Digest;

type Contexts = readonly (readonly Label[])[];

/** Orders the contexts of one user, one after the other. */
interface Orderer {
  order(context: readonly Label[]): readonly Label[];
}

/** memprefix's default; `known` contexts were composed before, of which the engine has nothing. */
function ours(known: Contexts): Orderer {
  const knowledge = { index: new ContextIndex([], 1, MAX_NODES), recent: new RecentRetrievals([]) };
  let turn = 0;
  const take = (context: readonly Label[]) => knowledge.recent.take([...context], ++turn as TurnId);
  known.forEach(take);
  return {
    order(context) {
      const retrieved = context.map((label) => ({ label, tokens: BLOCK_TOKENS }));
      const { labels } = prefixExact.order({ anchor: HERE, retrieved, carrying: null }, knowledge);
      take(context);
      knowledge.index.insert(HERE, labels, turn as TurnId);
      return labels;
    },
  };
}

/** ContextPilot (Alg. 1 and 2) behind a tree of the `known` contexts (Alg. 4). */
function contextPilot(known: Contexts): Orderer {
  const tree = new ClusterTree(clusterContexts(known), MAX_NODES);
  let turn = known.length;
  return {
    order(context) {
      const labels = alignTo(tree.search(context).blocks, context);
      turn++;
      tree.insert(context, turn);
      return labels;
    },
  };
}

/** Share of the later contexts' blocks that the cache held, behind what was `sent` before them. */
function held(orderer: Orderer, later: Contexts, sent: Contexts = []): number {
  const before = sent.map((context) => orderer.order(context));
  const orders = later.map((context) => orderer.order(context));
  const hits = leadingHeld([...before, ...orders] as never).slice(before.length);
  return hits.reduce((sum, blocks) => sum + blocks, 0) / later.reduce((sum, { length }) => sum + length, 0);
}

const traces = neededTraces();
const users = (k: number) =>
  traces.map(({ questions }) => {
    const all = questions.slice(0, LIMIT).map(({ retrieved }) => retrieved.slice(0, k).map((at) => (at + 1) as Label));
    const half = Math.floor(all.length / 2);
    return { known: all.slice(0, half), later: all.slice(half) };
  });

printHead(["% of blocks held", "k", "cold", "known", "sent"]);
for (const [name, make, isBuiltFirst] of [
  ["`prefix-exact`", ours, false],
  ["`context-pilot`", contextPilot, true],
] as const) {
  for (const k of [5, 20, 100]) {
    const shares = users(k).map(({ known, later }) => [
      held(make([]), later),
      held(make(known), later),
      held(make(isBuiltFirst ? known : []), later, known),
    ]);
    const cells = [0, 1, 2].map((at) => mean(shares.map((each) => each[at] ?? 0)));
    printRow([name, k, ...cells.map((share) => (100 * share).toFixed(1))]);
  }
}
