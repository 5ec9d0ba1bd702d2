/**
 * `npm run bench -- papers zero-overlap`: what composing costs where nothing can be reused: one user, 1,000 requests of 15 memories, none of which was
 * ever retrieved before. In-process, commit to a database in memory included. A round has every arm once, in an order that alternates;
 * the table has the least of five rounds, as other work on the machine only adds. No data is needed.
 *
 * What stands in every row: 15 new blocks are numbered, hashed, counted in tokens and stored. Floor of the difference between two rows: 0.
 */
import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { DEFAULT_ENGINE_MODEL, ENGINE_MODELS, type PolicyName } from "../src/core/index.js";
import { type ComposeRequest, readComposeOptions } from "../src/service/compose/compose-request.js";
import { printHead, printRow } from "./table.js";

const [REQUESTS, K, ROUNDS] = [1_000, 15, 5];
const ARMS: readonly PolicyName[] = ["retrieval", "knowledge-tree", "context-pilot", "prefix-exact"];
/** Of a memory. */
const WORDS = 17;

function requests(policy: PolicyName): ComposeRequest[] {
  return Array.from({ length: REQUESTS }, (_, request) => {
    const memories = Array.from({ length: K }, (_, nth) => {
      const at = request * K + nth;
      return { id: `m-${at}`, memory: `fact ${at}${" word".repeat(WORDS)}` };
    });
    return readComposeOptions({ userId: "u", query: `What of ${request}?`, memories, policy });
  });
}

interface Taken {
  /** Milliseconds of all requests. */
  readonly ms: number;
  readonly promptTokens: number;
  /** Prompts in which memories stand in another order than they were retrieved. */
  readonly moved: number;
}

async function taken(asked: readonly ComposeRequest[]): Promise<Taken> {
  const memprefix = openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => 0);
  let [promptTokens, moved] = [0, 0];
  const start = performance.now();
  for (const request of asked) {
    const { plan } = await memprefix.compose(request);
    promptTokens += plan.totalTokens;
    if (plan.orderChanged) moved++;
  }
  const ms = performance.now() - start;
  await memprefix.close();
  return { ms, promptTokens, moved };
}

console.log(`${REQUESTS} requests of ${K} new memories; ms per request, least of ${ROUNDS} rounds\n`);
printHead(["order", "ms per request", "more than `retrieval`, ms", "more prompt tokens", "moved"]);
const rounds = new Map<PolicyName, Taken[]>(ARMS.map((policy) => [policy, []]));
await taken(requests("retrieval"));
for (let round = 0; round < ROUNDS; round++) {
  for (const policy of round % 2 === 0 ? ARMS : ARMS.toReversed()) {
    rounds.get(policy)?.push(await taken(requests(policy)));
  }
}
const each = (policy: PolicyName) => {
  const all = rounds.get(policy) ?? [];
  return { ms: Math.min(...all.map(({ ms }) => ms)) / REQUESTS, last: all.at(-1) };
};
const plain = each("retrieval");
for (const policy of ARMS) {
  const { ms, last } = each(policy);
  const tokens = (last?.promptTokens ?? 0) - (plain.last?.promptTokens ?? 0);
  printRow([`\`${policy}\``, ms.toFixed(3), (ms - plain.ms).toFixed(3), tokens, last?.moved]);
}
