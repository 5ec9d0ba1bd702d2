import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import {
  type AnswerTime,
  answerPace,
  ENGINE_MODELS,
  type EngineModel,
  FIXED_RETENTIONS,
  type FirstTokenTime,
  fitTimeLaw,
  ORDERING_POLICIES,
  promptCost,
  type RetentionName,
  type TimeLaw,
} from "../src/core/index.js";
import { answerOf, inLastMessage } from "../src/eval/base/hand-built.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { composeTrace } from "../src/eval/replay/replay-trace.js";
import { LAWS, type Served, servedByHand } from "./retention-costs.js";
import { seeded } from "./seeded.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

/** What one engine takes: until the first token, and for each token of an answer. */
interface TrueLaw {
  readonly cost: TimeLaw;
  /** Milliseconds of an answer's token behind no prompt, and more for each token of the prompt. */
  readonly answer: { readonly fixedMs: number; readonly perHeldMs: number };
}

const time = (fixedMs: number, perTokenMs: number, perPairMs: number): TimeLaw => ({
  kind: "time",
  fixedMs,
  perTokenMs,
  perPairMs,
});
const TRUE_LAWS: Readonly<Record<string, TrueLaw>> = {
  "vllm on a CPU": { cost: LAWS["vllm on a CPU"].cost, answer: { fixedMs: 39, perHeldMs: 0.077 / 16 } },
  "Qwen 1.5B on a CPU": { cost: time(0, 13.4, 8e-4), answer: { fixedMs: 150, perHeldMs: 8e-4 } },
  "llama.cpp on a CPU": { cost: time(0, 0.788, 8.4e-4), answer: { fixedMs: 12, perHeldMs: 1e-3 } },
  "a small model on a GPU": { cost: time(15, 8e-3, 1e-8), answer: { fixedMs: 6, perHeldMs: 0 } },
  "8B on an A10": { cost: time(20, 0.25, 1e-5), answer: { fixedMs: 28, perHeldMs: 2.4e-4 } },
};
/** Of measured times: how far they are off, usually, and that of every so many one waited three times as long. */
const [OFF, LATE_EVERY] = [0.08, 12];
const SEEDS = [1, 2, 3, 4, 5];

/** An engine's model by what was measured of it. */
type Learn = (times: readonly FirstTokenTime[], answers: readonly AnswerTime[]) => EngineModel;

/** As `EngineLaw` has it, from the default one on. */
export const learnAsService: Learn = (times, answers) => {
  const cost = fitTimeLaw(times);
  if (cost === null) return ENGINE_MODELS.gpu;
  const perHeldTokenMs = mean(answers.map(({ tokens }) => tokens)) * answerPace(answers, cost);
  return { ...ENGINE_MODELS.gpu, cost, perHeldTokenMs };
};

/**
 * Prints what a prompt costs in milliseconds while memprefix still learns its engine's law: the first turns of so many conversations that come in
 * turn, each cached for itself; against the same by a law that is known, every fixed retention, and memories in the last message by hand.
 */
export function costsWhileLearning(of: {
  readonly traces: readonly RecordedTrace[];
  readonly turns: number;
  readonly clients: number;
}): void {
  const names = ["by hand", ...FIXED_RETENTIONS, "auto, known", "auto, learned"];
  printHead(["k", "answer", "engine", ...names, "learned ÷ by hand", "÷ best"]);
  const traces = Array.from({ length: of.clients }, (_, at) => {
    const trace = of.traces[at % of.traces.length] as RecordedTrace;
    const from = of.turns * Math.floor(at / of.traces.length);
    return { ...trace, questions: trace.questions.slice(from, from + of.turns) };
  });
  for (const k of [20, 100]) {
    for (const answerTokens of [16, 200]) {
      const conversations = { traces, k, answerTokens, turns: of.turns };
      const byHand = servedByHand(conversations, inLastMessage).flat();
      const fixed = FIXED_RETENTIONS.map((retention) => served(conversations, retention, null));
      for (const [name, law] of Object.entries(TRUE_LAWS)) {
        const truth: EngineModel = {
          ...{ cost: law.cost, blockTokens: 1, minimumPrefixTokens: 1 },
          perHeldTokenMs: answerTokens * law.answer.perHeldMs,
        };
        const costOf = (prompts: ReturnType<typeof served>) =>
          mean(prompts.map(({ promptTokens, cachedTokens }) => promptCost(truth, promptTokens, cachedTokens)));
        const known = served(conversations, "auto", { law, learn: () => truth, seed: 0 });
        const learned = SEEDS.map((seed) =>
          costOf(served(conversations, "auto", { law, learn: learnAsService, seed })),
        );
        const all = [...[byHand, ...fixed, known].map(costOf), mean(learned)];
        const own = all.at(-1) as number;
        const best = Math.min(...all.slice(0, 1 + FIXED_RETENTIONS.length));
        const cells = [
          ...all.map((cost) => cost.toPrecision(4)),
          (own / (all[0] as number)).toFixed(3),
          (own / best).toFixed(3),
        ];
        printRow([k, answerTokens, name, ...cells]);
      }
    }
  }
}

/** The conversations' prompts, in turn. */
function served(
  {
    traces,
    k,
    answerTokens,
    turns,
  }: { traces: readonly RecordedTrace[]; k: number; answerTokens: number; turns: number },
  retention: RetentionName,
  by: { readonly law: TrueLaw; readonly learn: Learn; readonly seed: number } | null,
): readonly Pick<Served, "promptTokens" | "cachedTokens">[] {
  const draw = seeded(by?.seed ?? 0);
  const [times, answers]: [FirstTokenTime[], AnswerTime[]] = [[], []];
  const off = () => {
    const near = Math.exp(OFF * (draw() + draw() + draw() - 1.5) * 2);
    return draw() * LATE_EVERY < 1 ? 3 * near : near;
  };
  const tokens = { encode: encodeO200k, countTokens: countO200k };
  const engine = by === null ? undefined : () => by.learn(times, answers);
  const options = { k, policy: ORDERING_POLICIES["prefix-exact"], budgetRatio: null, layout: "conversation" } as const;
  const clients = traces.map((trace) => ({
    cache: new SimulatedCache("radix"),
    prompts: composeTrace(trace, tokens, { ...options, retention, engine, answer: answerOf(answerTokens) }),
  }));
  const all: Pick<Served, "promptTokens" | "cachedTokens">[] = [];
  for (let turn = 0; turn < turns; turn++) {
    for (const { cache, prompts } of clients) {
      const next = prompts.next();
      if (next.done) continue;
      const promptTokens = next.value.tokens.length;
      const cachedTokens = cache.serve(next.value.tokens);
      if (next.value.answered !== null) cache.serve(next.value.answered);
      all.push({ promptTokens, cachedTokens });
      if (by === null) continue;
      const { cost, answer } = by.law;
      const model = { cost, blockTokens: 1, minimumPrefixTokens: 1 };
      times.push({
        uncachedTokens: promptTokens - cachedTokens,
        cachedTokens,
        ms: promptCost(model, promptTokens, cachedTokens) * off(),
      });
      const pace = answer.fixedMs + answer.perHeldMs * promptTokens;
      answers.push({ promptTokens, tokens: answerTokens, ms: answerTokens * pace * off() });
    }
  }
  return all;
}
