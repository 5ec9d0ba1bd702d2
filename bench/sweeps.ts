/**
 * `npm run bench -- papers sweeps`: RAGCache++'s sweeps on its synthetic workload, over simulated prefix caches: baselines, overlap, concurrency, cache
 * pressure, depth of hits against their number; and, with `--data FOLDER` (`recorded-data.ts`), its baselines and AdaCache's popularity on
 * recorded Mem0 searches. One table each, as docs/papers.md has them.
 *
 * The workload is the paper's: 500 documents of 200 tokens in 50 regions of 10; 200 queries in bursts of 10 of one region; k = 5, of which the
 * share `overlap`, one at least, is kept from the query before; the others are drawn from the region. Its sweep of overlap has 100 documents, 10 regions
 * and 100 queries, as the paper's. Which documents are kept the paper does not say: here the first ones, in front, because at 0.8 its retrieval order
 * "already produces near-maximal prefix overlap" (4.4). `KEPT=random` keeps any, in front and in their order.
 *
 * vLLM's cache (blocks of 16). Tokens computed per prompt; the first 5 queries are left out. Ceiling of every strategy: `oracle`, the best of all k!
 * orders for each request.
 */

import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import {
  ContextIndex,
  type Digest,
  knowledgeTree,
  type Label,
  type OrderingPolicy,
  prefixExact,
  RecentRetrievals,
  retrieval,
  sorted,
  type TurnId,
} from "../src/core/index.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { shareOfMostReturned } from "./overlap-shares.js";
import { givenData } from "./recorded-data.js";
import { seeded } from "./seeded.js";
import { mean, median } from "./statistics.js";
import { percent, printHead, printRow, whole } from "./table.js";

const [K, PER_REGION, DOCUMENT_TOKENS, BURST, WARM_UP] = [5, 10, 200, 10, 5];
const [SYSTEM_TOKENS, QUESTION_TOKENS, SEEDS] = [64, 24, 20];
const KEEPS_RANDOM = process.env["KEPT"] === "random";

/** The paper's configuration B, in which most of its tables are, and its A, in which its overlap varies (table 11). */
interface Corpus {
  readonly regions: number;
  readonly queries: number;
}
const LARGE: Corpus = { regions: 50, queries: 200 };
const SMALL: Corpus = { regions: 10, queries: 100 };
const HERE = "sweeps" as Digest;

type Queries = readonly (readonly Label[])[];

/** Most recently served documents first, others in retrieval order behind them: the paper's recency baseline. */
class Recency implements OrderingPolicy {
  readonly name = "recency";
  readonly #served = new Map<Label, number>();

  order({ retrieved }: Parameters<OrderingPolicy["order"]>[0]) {
    const at = ({ label }: { readonly label: Label }) => this.#served.get(label) ?? -1;
    const labels = [...retrieved].sort((a, b) => at(b) - at(a)).map(({ label }) => label);
    return { labels, carried: new Set<Label>(), searchPath: [] };
  }

  learn(request: Parameters<OrderingPolicy["order"]>[0], _: unknown, __: unknown, turn: TurnId): void {
    for (const { label } of request.retrieved) this.#served.set(label, turn);
  }
}

/** The longest served prefix that any order of the documents has, the others behind it in retrieval order. */
const oracle: OrderingPolicy = {
  name: "oracle",
  order({ anchor, retrieved }, { index }) {
    const all = retrieved.map(({ label }) => label);
    let best: readonly Label[] = [];
    const extend = (front: readonly Label[]): void => {
      if (front.length > best.length) best = front;
      for (const label of all) {
        if (front.includes(label)) continue;
        const longer = [...front, label];
        if (index.heldBlocks(anchor, longer) === longer.length) extend(longer);
      }
    };
    extend([]);
    return { labels: [...best, ...all.filter((label) => !best.includes(label))], carried: new Set(), searchPath: [] };
  },
};

const STRATEGIES: readonly (readonly [name: string, make: () => OrderingPolicy])[] = [
  ["sorted", () => sorted],
  ["recency", () => new Recency()],
  ["retrieval order", () => retrieval],
  ["`knowledge-tree` (greedy)", () => knowledgeTree],
  ["`prefix-exact`", () => prefixExact],
  ["oracle", () => oracle],
];

/** The orders of a user's or a workload's queries; what `batch` of them are ordered by is what was served before the first of them. */
function ordersBy(policy: OrderingPolicy, queries: Queries, tokens: number, batch = 1): Queries {
  const known = { index: new ContextIndex([], 1, 20_000), recent: new RecentRetrievals([]) };
  const orders: (readonly Label[])[] = [];
  for (let from = 0; from < queries.length; from += batch) {
    const requests = queries.slice(from, from + batch).map((labels) => ({
      anchor: HERE,
      retrieved: labels.map((label) => ({ label, tokens })),
      carrying: null,
    }));
    const ordered = requests.map((request) => policy.order(request, known));
    for (const [nth, ordering] of ordered.entries()) {
      const turn = (from + nth + 1) as TurnId;
      const request = requests[nth];
      known.index.insert(HERE, ordering.labels, turn);
      known.recent.take(queries[turn - 1] ?? [], turn);
      if (request !== undefined) policy.learn?.(request, ordering, known, turn);
      orders.push(ordering.labels);
    }
  }
  return orders;
}

function workload(overlap: number, seed: number, corpus: Corpus): Queries {
  const random = seeded(seed);
  const drawn = (from: readonly Label[], count: number) =>
    from
      .map((label) => ({ label, key: random() }))
      .sort((a, b) => a.key - b.key)
      .slice(0, count)
      .map(({ label }) => label);
  const count = Math.max(1, Math.floor(K * overlap));
  const queries: Label[][] = [];
  for (let burst = 0; burst < corpus.queries / BURST; burst++) {
    const first = Math.floor(random() * corpus.regions) * PER_REGION;
    const region = Array.from({ length: PER_REGION }, (_, at) => (first + at + 1) as Label);
    let last: readonly Label[] = [];
    for (let n = 0; n < BURST; n++) {
      const chosen = new Set(KEEPS_RANDOM ? drawn(last, count) : last.slice(0, count));
      const kept = last.filter((label) => chosen.has(label));
      const others = drawn(
        region.filter((label) => !chosen.has(label)),
        K - kept.length,
      );
      last = [...kept, ...others];
      queries.push([...last]);
    }
  }
  return queries;
}

/** Mean Jaccard similarity of each query's documents and those of the query before. */
function similarity(queries: Queries): number {
  return mean(
    queries.slice(1).map((labels, at) => {
      const before = new Set(queries[at]);
      const common = labels.filter((label) => before.has(label)).length;
      return common / (labels.length + before.size - common);
    }),
  );
}

interface Measured {
  /** Tokens computed, by query. */
  readonly computed: readonly number[];
  /** Leading documents that the cache held, by query. */
  readonly depth: readonly number[];
  /** The paper's Fast%: whether a query computes less than 0.6 × the median of the warm-up. */
  readonly fast: readonly boolean[];
}

function measured(orders: Queries, capacityTokens?: number): Measured {
  const cache = new SimulatedCache("blocks", { capacityTokens });
  const system = Array.from({ length: SYSTEM_TOKENS }, (_, at) => -1 - at);
  const served = orders.map((order, query) => {
    const documents = order.flatMap((label) => Array.from({ length: DOCUMENT_TOKENS }, (_, at) => label * 1_000 + at));
    const question = Array.from({ length: QUESTION_TOKENS }, (_, at) => 10_000_000 + query * 100 + at);
    const tokens = [...system, ...documents, ...question];
    const cachedTokens = cache.serve(tokens);
    const depth = Math.max(0, Math.floor((cachedTokens - SYSTEM_TOKENS + 15) / DOCUMENT_TOKENS));
    return { computed: tokens.length - cachedTokens, depth };
  });
  const measuredOnes = served.slice(WARM_UP);
  const limit = 0.6 * median(served.slice(0, WARM_UP).map(({ computed }) => computed));
  return {
    computed: measuredOnes.map(({ computed }) => computed),
    depth: measuredOnes.map(({ depth }) => depth),
    fast: measuredOnes.map(({ computed }) => computed < limit),
  };
}

function table(title: string, columns: readonly string[], rows: readonly (readonly string[])[]): void {
  console.log(`\n${title}\n`);
  printHead(columns);
  for (const row of rows) printRow(row);
}

interface Setting {
  readonly overlap: number;
  readonly corpus?: Corpus;
  /** Queries that are ordered by the same knowledge. */
  readonly batch?: number;
  /** Of the cache, in tokens. */
  readonly capacity?: number;
}
const SEEDED = Array.from({ length: SEEDS }, (_, at) => at + 1);

/** All seeds of one setting, as one series. */
function over(make: () => OrderingPolicy, { overlap, corpus = LARGE, batch, capacity }: Setting): Measured {
  const runs = SEEDED.map((seed) =>
    measured(ordersBy(make(), workload(overlap, seed, corpus), DOCUMENT_TOKENS, batch), capacity),
  );
  return {
    computed: runs.flatMap(({ computed }) => computed),
    depth: runs.flatMap(({ depth }) => depth),
    fast: runs.flatMap(({ fast }) => fast),
  };
}

const named = (name: string) => STRATEGIES.find(([other]) => other === name)?.[1] ?? (() => retrieval);
const COMPARED = ["retrieval order", "`knowledge-tree` (greedy)", "`prefix-exact`"];

/** Median and mean tokens in retrieval order, and how much less greedy and ours compute. */
function compared(setting: Setting): string[] {
  const [first, ...others] = COMPARED.map((name) => {
    const { computed } = over(named(name), setting);
    return [median(computed), mean(computed)] as const;
  });
  const [p50, all] = first ?? [0, 0];
  return [whole(p50), whole(all), ...others.flatMap(([m, a]) => [percent(1 - m / p50), percent(1 - a / all)])];
}
const COMPARISON = ["retrieval order, p50", "mean", "greedy, p50", "mean", "`prefix-exact`, p50", "mean"];

const uncached = SYSTEM_TOKENS + QUESTION_TOKENS + K * DOCUMENT_TOKENS;
table(
  "Baselines, overlap 0.6",
  ["order", "p50", "p95", "mean", "with a hit", "documents deep", "Fast%"],
  [
    ["no cache", whole(uncached), whole(uncached), whole(uncached), "", "", ""],
    ...STRATEGIES.map(([name, make]) => {
      const { computed, depth, fast } = over(make, { overlap: 0.6 });
      const ascending = [...computed].sort((a, b) => a - b);
      const hits = depth.filter((documents) => documents > 0);
      const p95 = ascending[Math.floor(0.95 * ascending.length)] ?? 0;
      const cells = [median(computed), p95, mean(computed)].map(whole);
      return [
        name,
        ...cells,
        percent(hits.length / depth.length),
        mean(hits).toFixed(2),
        percent(mean(fast.map(Number))),
      ];
    }),
  ],
);
table(
  "Overlap, 100 documents",
  ["kept of the query before", "Jaccard", ...COMPARISON],
  [0, 0.2, 0.4, 0.6, 0.8, 1].map((overlap) => {
    const alike = mean(SEEDED.map((seed) => similarity(workload(overlap, seed, SMALL))));
    return [String(overlap), alike.toFixed(3), ...compared({ overlap, corpus: SMALL })];
  }),
);
table(
  "Concurrency, overlap 0.6",
  ["ordered at a time", ...COMPARISON],
  [1, 2, 4, 8].map((batch) => [String(batch), ...compared({ overlap: 0.6, batch })]),
);
table(
  "Cache pressure, overlap 0.6",
  ["cache, tokens", ...COMPARISON],
  [1_500, 3_000, 6_000, 12_000, 48_000].map((capacity) => [whole(capacity), ...compared({ overlap: 0.6, capacity })]),
);

if (givenData() !== null) {
  const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(givenData() ?? "", name));
  const searches = (k: number) =>
    traces.map(({ questions }) =>
      questions.slice(0, 150).map(({ retrieved }) => retrieved.slice(0, k).map((at) => (at + 1) as Label)),
    );
  const ks = [5, 7, 20];
  const meansFor = (make: () => OrderingPolicy) =>
    ks.map((k) =>
      mean(searches(k).map((queries) => mean(measured(ordersBy(make(), queries, DOCUMENT_TOKENS)).computed))),
    );
  const all = STRATEGIES.map(([name, make]) => ({ name, means: meansFor(make) }));
  const of = (name: string) => all.find((one) => one.name === name)?.means ?? [];
  const [asRetrieved, best] = [of("retrieval order"), of("oracle")];
  table(
    "Recorded searches of six users, each memory as a document of 200 tokens: mean, and share of the oracle's gain",
    ["order", ...ks.flatMap((k) => [`k = ${k}`, "of the gain"])],
    all.map(({ name, means }) => [
      name,
      ...means.flatMap((tokens, at) => {
        const [from, to] = [asRetrieved[at] ?? 0, best[at] ?? 0];
        return [whole(tokens), percent((from - tokens) / (from - to))];
      }),
    ]),
  );
  const firsts = traces.map(({ questions }) => questions.slice(0, 150).map(({ retrieved }) => retrieved.slice(0, 1)));
  table(
    "Popularity",
    ["of all memories", "make of first places"],
    [0.1, 0.2].map((part) => [
      `the most found ${percent(part)}`,
      percent(median(firsts.map((found, at) => shareOfMostReturned(found, part * (traces[at]?.memories.length ?? 0))))),
    ]),
  );
}
