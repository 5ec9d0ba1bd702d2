/**
 * `npm run bench:ttft`: time to the first token on the engine inside, over recorded real Mem0 searches of LoCoMo's conv-26. A random model
 * (what weights say changes no time; its text is noise), an engine of its own for every arm, cold at first, the arms taking turns within
 * every question. memprefix is told what was cached, as a caller of `POST /feedback` tells it. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * `LAYOUT=window` is a conversation whose client sends its last `WINDOW=20` messages, `TURNS=60` turns, with answers of `ANSWER=120` tokens. An
 * engine keeps what it generated: here each answer, which is the same in every arm, is computed behind its prompt, untimed. memprefix expects the
 * prompts only, so that what is cached of an answer is no error. `HISTORY=exact,extended` (default: all that the service has, but `stored`),
 * `RATIOS=2,3` of those that have one.
 *
 * `SIZE=23m|135m` (23m), `K=20,100`, `LAYOUT=single,conversation`, `QUESTIONS=40`; `SLOTS=8` of the single prompts: an engine like
 * llama.cpp's holds as many prompts; `THREADS`: the machine's cores, fewer where others compute on them. Off by: |expected − observed|
 * cached tokens, on average and at most; right: the share of requests where it is within 16. `p95 ÷ first row's`: above 1 is slower.
 * `RESTART=on`: halfway every engine is replaced by a new one. Wrong after it: how many of the next requests were predicted wrongly, up to
 * the last such one of ten.
 *
 * Floor: the tokens that each prompt cannot share; what they cost is the time law `cpu` in docs/retention.md.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countO200k } from "../src/cli/o200k.js";
import { WINDOW_HISTORIES } from "../src/cli/option-values.js";
import {
  type ChatMessage,
  ENGINE_MODELS,
  type MemoryId,
  type PolicyName,
  residencyModel,
  type TokenCounter,
  type UserId,
} from "../src/core/index.js";
import { openEmbeddedEngine } from "../src/engines/embedded/embedded-engine.js";
import type { GenerationUsage } from "../src/engines/embedded/generation.js";
import { MODEL_SHAPES, type ModelSize, writeRandomModel } from "../src/engines/random-model/random-model.js";
import { answerOf, inLastMessage, readmeMessages } from "../src/eval/base/hand-built.js";
import { hasRatio } from "../src/eval/run/arms.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import type { ComposeOptions } from "../src/service/fields/call-options.js";
import { readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { mean } from "../test/eval/replay/retention-costs.js";
import { openService } from "../test/service/compose/service-fixture.js";
import { neededData } from "./recorded-data.js";

const size = (process.env["SIZE"] ?? "23m") as ModelSize;
const ks = (process.env["K"] ?? "20,100").split(",").map(Number);
const layouts = (process.env["LAYOUT"] ?? "single,conversation").split(",");
const questions = Number(process.env["QUESTIONS"] ?? 40);
const slots = Number(process.env["SLOTS"] ?? 8);
const window = Number(process.env["WINDOW"] ?? 20);
const turns = Number(process.env["TURNS"] ?? 60);
const answerTokens = Number(process.env["ANSWER"] ?? 120);
const histories = WINDOW_HISTORIES.filter((name) => process.env["HISTORY"]?.split(",").includes(name) ?? true);
const ratios = (process.env["RATIOS"] ?? "2,3").split(",").map(Number);
const restarts = process.env["RESTART"] === "on";
const threads = process.env["THREADS"] === undefined ? undefined : Number(process.env["THREADS"]);
/** A prediction within so many tokens is one that is right: the cache block of most engines. */
const BLOCK_TOKENS = 16;
const data = neededData();
const trace = readRecordedTrace(data, "conv-26");
const INSTRUCTION = "You are a helpful assistant. Answer the question from what you remember about the user.";
const user = "ana" as UserId;

interface Asked {
  readonly memories: { readonly id: MemoryId; readonly text: string }[];
  /** Plain messages, the question last; of a conversation with its history. */
  readonly messages: readonly ChatMessage[];
  /** What the engine is to keep as its answer; null: what it generates, one token. */
  readonly answer: ChatMessage | null;
}

/** One way to make prompts, on an engine of its own. */
interface Arm {
  readonly name: string;
  readonly usages: GenerationUsage[];
  /** |expected − observed| cached tokens. */
  readonly errors: number[];
  ask(asked: Asked): Promise<void>;
  /** Puts a new engine, which holds nothing, in the engine's place. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** `learn` reports an engine's usage, and says how many cached tokens were expected. */
type Prompting = (
  asked: Asked,
) => Promise<{ messages: readonly ChatMessage[]; learn?: (usage: GenerationUsage) => Promise<number> }>;

async function arm(
  name: string,
  modelPath: string,
  width: number,
  contextTokens: number,
  promptingFor: (slots: number) => Prompting,
): Promise<Arm> {
  const open = () => openEmbeddedEngine({ modelPath, slots: width, contextTokens, threads });
  let engine = await open();
  const prompting = promptingFor(width);
  const usages: GenerationUsage[] = [];
  const errors: number[] = [];
  let lastPrompt = 0;
  return {
    name,
    usages,
    errors,
    async ask(asked) {
      const { messages, learn } = await prompting(asked);
      for await (const event of engine.generate({ messages, maxTokens: 1 })) {
        if (event.kind !== "end") continue;
        usages.push(event.usage);
        const { promptTokens, cachedTokens } = event.usage;
        // A prompt that continues the last one finds the answer behind it, too.
        const cachedOfPrompts = asked.answer === null ? cachedTokens : Math.min(cachedTokens, lastPrompt);
        lastPrompt = promptTokens;
        if (learn !== undefined) errors.push(Math.abs((await learn(event.usage)) - cachedOfPrompts));
      }
      if (asked.answer === null) return;
      for await (const _event of engine.generate({ messages: [...messages, asked.answer], maxTokens: 1 }));
    },
    async restart() {
      await engine.close();
      engine = await open();
    },
    close: () => engine.close(),
  };
}

/** What memprefix is asked for. */
interface Asking extends Pick<ComposeOptions, "history" | "historyRatio" | "retention"> {
  readonly policy: PolicyName;
  /** Memory tokens of each prompt ÷ retrieved, at most; absent: no such budget. */
  readonly budgetEach?: number;
}

/** memprefix, in this process on a database of its own; a conversation where it has a retention. */
function composed({ budgetEach, ...asking }: Asking, countTokens: TokenCounter, width: number): Prompting {
  const residency = residencyModel({ kind: "slots", slots: width });
  const memprefix = openService({ engine: ENGINE_MODELS.cpu, countTokens, residency, now: Date.now });
  return async ({ memories, messages }) => {
    const tokens = memories.reduce((sum, { text }) => sum + countO200k(`100 ${text}\n`), 0);
    const answer = await memprefix.compose(
      readComposeOptions({
        userId: user,
        ...asking,
        conversationId: asking.retention == null ? null : "conversation",
        system: INSTRUCTION,
        messages: [...messages],
        memories: memories.map(({ id, text }) => ({ id, memory: text })),
        memoryBudgetTokens: budgetEach === undefined ? null : Math.floor(budgetEach * tokens),
      }),
    );
    return {
      messages: answer.messages,
      async learn({ promptTokens, cachedTokens, ttftMs }) {
        const report = { promptTokens, cachedTokens, ...(ttftMs === null ? {} : { ttftMs }) };
        await memprefix.feedback(user, null, answer.requestId, report);
        return answer.plan.expectedCachedTokens;
      },
    };
  };
}

type Layout = "single" | "conversation" | "window";

async function measure(arms: readonly Arm[], k: number, layout: Layout): Promise<void> {
  const history: ChatMessage[] = [];
  const asked = trace.questions.slice(0, layout === "window" ? turns : questions);
  for (const [n, { question, answer, retrieved }] of asked.entries()) {
    const memories = retrieved
      .slice(0, k)
      .map((at) => ({ id: String(at) as MemoryId, text: trace.memories[at]?.memory ?? "" }));
    // Numbered: answers that are all alike would be found in the cache wherever a window begins with one.
    const said = layout === "window" ? `${n}. ${answerOf(answerTokens)}` : String(answer ?? "I don't know.");
    const answered: ChatMessage = { role: "assistant", content: said };
    history.push({ role: "user", content: question });
    const messages = { single: history.slice(-1), conversation: [...history], window: history.slice(-window) }[layout];
    if (restarts && n === Math.floor(asked.length / 2)) for (const { restart } of arms) await restart();
    const kept = layout === "window" ? answered : null;
    for (let at = 0; at < arms.length; at++)
      await arms[(n + at) % arms.length]?.ask({ memories, messages, answer: kept });
    history.push(answered);
  }
  const quantile = (values: readonly number[], q: number) =>
    [...values].sort((a, b) => a - b)[Math.floor(q * (values.length - 1))] ?? Number.NaN;
  const timesOf = ({ usages }: Arm) => usages.map(({ ttftMs }) => ttftMs ?? Number.NaN);
  const baseAt = (q: number) => quantile(arms[0] === undefined ? [] : timesOf(arms[0]), q);
  for (const each of arms) {
    const { name, usages, errors } = each;
    const times = timesOf(each);
    const cached = mean(usages.map(({ cachedTokens }) => cachedTokens));
    const all = mean(usages.map(({ promptTokens }) => promptTokens));
    const cells = [k, layout, name, quantile(times, 0.5).toFixed(0), quantile(times, 0.95).toFixed(0)];
    const counts = [
      cached.toFixed(0),
      (all - cached).toFixed(0),
      `${(baseAt(0.5) / quantile(times, 0.5)).toFixed(2)}×`,
    ];
    counts.push(`${(quantile(times, 0.95) / baseAt(0.95)).toFixed(2)}×`);
    const right = errors.filter((error) => error <= BLOCK_TOKENS).length;
    const predicted =
      errors.length === 0
        ? ["–", "–"]
        : [`${mean(errors).toFixed(1)} (${Math.max(...errors)})`, `${((100 * right) / errors.length).toFixed(1)} %`];
    const afterwards = errors.slice(Math.floor(asked.length / 2)).slice(0, 10);
    if (restarts)
      predicted.push(errors.length === 0 ? "–" : String(afterwards.findLastIndex((e) => e > BLOCK_TOKENS) + 1));
    console.log(`| ${[...cells, ...counts, ...predicted].join(" | ")} |`);
  }
  for (const { close } of arms) await close();
}

const folder = mkdtempSync(join(tmpdir(), "memprefix-ttft-"));
const model = join(folder, `${size}.gguf`);
try {
  await writeRandomModel(model, { name: size, shape: MODEL_SHAPES[size] });
  console.log(
    `random ${size} model, ${questions} questions, ${slots} slots for single prompts; ${turns} turns with a window`,
  );
  console.log(
    `| k | layout | prompts | TTFT p50, ms | p95 | cached | uncached | faster, p50 | p95 ÷ first row's | off by | right |${restarts ? " wrong after it |" : ""}`,
  );
  console.log(`| --: | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |${restarts ? " --: |" : ""}`);
  // Of an engine that is not restarted.
  const counting = await openEmbeddedEngine({ modelPath: model, slots: 1, contextTokens: 16, threads: 1 });
  const { countTokens } = counting;
  for (const k of ks) {
    const single = (name: string, policy: PolicyName, ratio: number | null) =>
      arm(name, model, slots, 8_192, (width) =>
        composed(ratio === null ? { policy } : { policy, budgetEach: ratio }, countTokens, width),
      );
    if (layouts.includes("single")) {
      await measure(
        [
          await single("retrieval order", "retrieval", null),
          await single("prefix-exact", "prefix-exact", null),
          await single("carry-over ≤ 1.5×", "carry-over", 1.5),
          await single("carry-over ≤ 2×", "carry-over", 2),
          await single("carry-over ≤ 3×", "carry-over", 3),
        ],
        k,
        "single",
      );
    }
    if (layouts.includes("conversation")) {
      const inSystem: Prompting = async ({ memories, messages }) => ({ messages: readmeMessages(memories, messages) });
      await measure(
        [
          await arm("system prompt", model, 1, 16_384, () => inSystem),
          await arm("last user message", model, 1, 16_384, (width) =>
            composed({ policy: "retrieval", retention: "ephemeral" }, countTokens, width),
          ),
          await arm("memprefix, keep", model, 1, 16_384, (width) =>
            composed({ policy: "prefix-exact", retention: "keep" }, countTokens, width),
          ),
        ],
        k,
        "conversation",
      );
    }
    if (layouts.includes("window")) {
      const kinds = histories.flatMap((history): Pick<Asking, "history" | "historyRatio">[] =>
        hasRatio(history) ? ratios.map((historyRatio) => ({ history, historyRatio })) : [{ history }],
      );
      const byHand: Prompting = async ({ memories, messages }) => ({ messages: inLastMessage(memories, messages) });
      const arms = [await arm(`last ${window}, last message, by hand`, model, 1, 16_384, () => byHand)];
      for (const kind of kinds) {
        const ratio = kind.historyRatio == null ? "" : `, ratio ${kind.historyRatio}`;
        arms.push(
          await arm(`last ${window}, ${kind.history}${ratio}`, model, 1, 16_384, (width) =>
            composed({ policy: "prefix-exact", retention: "keep", ...kind }, countTokens, width),
          ),
        );
      }
      await measure(arms, k, "window");
    }
  }
  await counting.close();
} finally {
  rmSync(folder, { recursive: true });
}
