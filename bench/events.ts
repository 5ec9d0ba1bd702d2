/**
 * `npm run bench -- events --data FOLDER`: what memprefix gains by an engine's KV events. Six users with recorded real Mem0 searches (`recorded-data.ts`)
 * take turns with single prompts of `K=20` memories at one engine, simulated as vLLM's: blocks of 16 tokens, a prompt's last ones evicted first. After
 * three prompts in ten, a client that bypasses memprefix sends 100 to 700 tokens. memprefix gets nothing; or reports (`/feedback`) and the cache's
 * size (`/metrics`); or events. Cells: % of tokens that hit, and mean |expected − cached| in tokens, which cannot be below half a block.
 */
import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { BLOCK_TOKENS } from "../src/core/cache/simulated-cache.js";
import { CachingEngine, DEFAULT_ENGINE_MODEL, ENGINE_MODELS, type UserId } from "../src/core/index.js";
import { ResidentBlocks } from "../src/engines/kv-events/resident-blocks.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { INSTRUCTION } from "../src/eval/base/hand-built.js";
import { seeded } from "../src/eval/measures/bootstrap.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { PublishingCache } from "./publishing-cache.js";
import { neededTraces } from "./recorded-data.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const K = Number(process.env["K"] ?? 20);
const TURNS = 100;
const BYPASS_SHARE = 0.3;
const POLICIES = ["prefix-exact", "context-pilot"] as const;
const SIGNALS = ["nothing", "reports and size", "events"] as const;
const PROMPT_TOKENS = countO200k(INSTRUCTION) + 20 * K;
const traces = neededTraces();
const tokenize = chatTokenizer(encodeO200k);

async function cellOf(policy: (typeof POLICIES)[number], capacityTokens: number, signal: (typeof SIGNALS)[number]) {
  const engine = new CachingEngine();
  const cache = new PublishingCache(capacityTokens, BLOCK_TOKENS, true);
  const mirror = new ResidentBlocks();
  mirror.forget(true);
  if (signal === "events") engine.residents.push(mirror);
  let now = Date.UTC(2026, 0, 1);
  const memprefix = openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => now, engine);
  const random = seeded(7);
  const errors: number[] = [];
  let [cachedTokens, promptTokens, computedTokens] = [0, 0, 0];
  const compute = (tokens: readonly number[]) => {
    const { cached, events } = cache.compute(tokens);
    mirror.take(events);
    computedTokens += tokens.length - cached;
    return cached;
  };
  for (let turn = 0; turn < TURNS; turn++)
    for (const [n, { memories, questions }] of traces.entries()) {
      const asked = questions[turn];
      if (asked === undefined) continue;
      now += 1_000;
      if (signal === "reports and size")
        engine.read({ capacityTokens, blockTokens: BLOCK_TOKENS, computedTokens }, now);
      const userId = `user-${n}` as UserId;
      const found = asked.retrieved.slice(0, K).map((id) => ({ id: `m${id}`, memory: memories[id]?.memory ?? "" }));
      const messages = [
        { role: "system", content: INSTRUCTION },
        { role: "user", content: asked.question },
      ];
      const answer = await memprefix.compose(readComposeOptions({ userId, messages, memories: found, policy }));
      const { requestId, plan } = answer;
      const tokens = tokenize(answer.messages);
      const cached = compute(tokens);
      memprefix.chats.composer.tokenized(userId, null, requestId, {
        tokens: tokens.length,
        chains: mirror.chainsOf(tokens, null),
      });
      const report = { cachedTokens: cached, promptTokens: tokens.length };
      if (signal === "reports and size") await memprefix.feedback(userId, null, requestId, report);
      errors.push(Math.abs((plan.expectedCachedTokens * tokens.length) / plan.totalTokens - cached));
      cachedTokens += cached;
      promptTokens += tokens.length;
      if (random() < BYPASS_SHARE)
        compute(Array.from({ length: 100 + Math.floor(600 * random()) }, (_, at) => 1e6 * errors.length + at));
    }
  await memprefix.close();
  return `${((100 * cachedTokens) / promptTokens).toFixed(1)} %, off by ${mean(errors).toFixed(0)}`;
}

printHead(["policy", "prompts in the cache", ...SIGNALS]);
for (const policy of POLICIES)
  for (const prompts of [10, 30, 100, 200]) {
    const cells: string[] = [];
    for (const signal of SIGNALS) cells.push(await cellOf(policy, prompts * PROMPT_TOKENS, signal));
    printRow([policy, prompts, ...cells]);
  }
