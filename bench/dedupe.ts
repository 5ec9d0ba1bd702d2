/**
 * `npm run bench:dedupe -- --data FOLDER` (`recorded-data.ts`): how often a memory says what another one of its prompt, or the question, says
 * too, and what giving it once is worth. First over recorded searches, single prompts of the default policy on a simulated vLLM cache;
 * then over all memories of a conversation at once, as Mem0 holds them when it is given LoCoMo's facts, its turns, or its turns twice: with
 * each turn written back in other spacing and punctuation.
 */
import { readFileSync } from "node:fs";
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { withoutContained } from "../src/core/blocks/contained-texts.js";
import {
  BlockRegister,
  compose,
  DEDUPE_NAMES,
  DEFAULT_ANNOTATIONS,
  type DedupeName,
  EMPTY_SCOPE,
  ENGINE_MODELS,
  KEEPS_ALL,
  type MemoryId,
  ORDERING_POLICIES,
  ScopeState,
} from "../src/core/index.js";
import { readLocomo } from "../src/eval/locomo/locomo-data.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { replayTrace } from "../src/eval/replay/replay-trace.js";
import { BlockHashCache } from "../src/simulator/block-hash-cache.js";
import { locomoFile, RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { neededData } from "./recorded-data.js";

const data = neededData();
const tokens = { encode: encodeO200k, countTokens: countO200k };

/** Retrieved memories, and those left out by kind. */
function countLeftOut(trace: RecordedTrace, k: number) {
  const state = new ScopeState(EMPTY_SCOPE, countO200k);
  const counts = { prompts: 0, retrieved: 0, equal: 0, contained: 0, said: 0, promptsWithAny: 0 };
  for (const { question, retrieved } of trace.questions) {
    const { warnings } = compose(state, {
      conversation: null,
      messages: [{ role: "user", content: question }],
      memories: retrieved
        .slice(0, k)
        .map((at) => ({ id: String(at) as MemoryId, text: trace.memories[at]?.memory ?? "" })),
      policy: ORDERING_POLICIES["prefix-exact"],
      memoryBudgetTokens: null,
      memoryBudgetRatio: null,
      annotations: DEFAULT_ANNOTATIONS,
      residency: KEEPS_ALL,
      now: 0,
      retention: "keep",
      engine: ENGINE_MODELS.gpu,
      countTokens: countO200k,
      isOurs: () => false,
    });
    const of = (code: string) => warnings.find((warning) => warning.code === code)?.memoryIds?.length ?? 0;
    counts.prompts++;
    counts.retrieved += Math.min(k, retrieved.length);
    counts.equal += of("duplicate_text");
    counts.contained += of("contained_text");
    counts.said += of("memory_in_messages");
    if (of("contained_text") + of("memory_in_messages") > 0) counts.promptsWithAny++;
  }
  return counts;
}

function prefill(trace: RecordedTrace, k: number, dedupe: DedupeName) {
  const { totals } = replayTrace(trace, new BlockHashCache(), tokens, {
    k,
    policy: ORDERING_POLICIES["prefix-exact"],
    budgetRatio: null,
    layout: "single",
    dedupe,
  });
  return { prompt: totals.promptTokens, prefilled: totals.promptTokens - totals.cachedTokens };
}

for (const k of [20, 100]) {
  const sum = { prompts: 0, retrieved: 0, equal: 0, contained: 0, said: 0, promptsWithAny: 0 };
  const sent = { exact: { prompt: 0, prefilled: 0 }, contained: { prompt: 0, prefilled: 0 } };
  for (const name of RECORDED_CONVERSATIONS) {
    const trace = readRecordedTrace(data, name);
    const counts = countLeftOut(trace, k);
    for (const key of Object.keys(sum) as (keyof typeof sum)[]) sum[key] += counts[key];
    for (const dedupe of DEDUPE_NAMES) {
      const { prompt, prefilled } = prefill(trace, k, dedupe);
      sent[dedupe].prompt += prompt;
      sent[dedupe].prefilled += prefilled;
    }
  }
  console.log(`recorded searches, k = ${k}: ${sum.prompts} prompts, ${sum.retrieved} memories`);
  console.log(
    `  equal texts ${sum.equal}, contained ${sum.contained}, in the question ${sum.said}; in ${sum.promptsWithAny} prompts`,
  );
  for (const dedupe of DEDUPE_NAMES) {
    console.log(`  ${dedupe}: ${sent[dedupe].prompt} prompt tokens, ${sent[dedupe].prefilled} to prefill`);
  }
}

/** How many of these texts, retrieved all at once, are left out, and of how many tokens. */
function leftOutOf(texts: readonly string[]): string {
  const register = new BlockRegister({ blocks: [], versions: [], forgotten: [] }, 1, countO200k);
  const all = register.resolve(texts.map((text, at) => ({ id: `m-${at}` as MemoryId, text })));
  const kept = withoutContained(register, all, { standing: [], due: new Set(), question: null });
  const size = (blocks: typeof all.blocks) => blocks.reduce((total, block) => total + block.tokens, 0);
  const saved = size(all.blocks) - size(kept.blocks);
  const share = ((100 * saved) / size(all.blocks)).toFixed(2);
  return `${texts.length} memories, equal ${all.sharing.length}, contained ${kept.contained.length}, ${saved} tokens (${share} %)`;
}

const file = locomoFile(data);
if (file === null) console.log("FOLDER/locomo has no file of LoCoMo: what Mem0 holds is left out");
else {
  const conversations = readLocomo(JSON.parse(readFileSync(file, "utf8")));
  const lists: Record<string, (at: (typeof conversations)[number]) => string[]> = {
    "LoCoMo's facts": ({ observations }) => observations.map(({ text }) => text),
    "its turns": ({ turns }) =>
      turns.map(({ speaker, text }) => `${speaker}: ${text}`).filter((text) => text.trim() !== ""),
    "its turns without speakers": ({ turns }) => turns.map(({ text }) => text).filter((text) => text.trim() !== ""),
    "its turns, and written back": ({ turns }) =>
      turns.flatMap(({ text }) => (text.trim() === "" ? [] : [text, ` ${text.replace(/[.!]+$/, "")}  `])),
  };
  for (const [name, textsOf] of Object.entries(lists)) {
    for (const conversation of conversations) {
      console.log(`${name}, ${conversation.id}: ${leftOutOf(textsOf(conversation))}`);
    }
  }
}
