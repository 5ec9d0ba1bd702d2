import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, totalmem } from "node:os";
import { basename, join } from "node:path";
import { pricedModel } from "../core/cost/prices.js";
import { DEFAULT_ENGINE_MODEL, ENGINE_MODELS, type EngineModel } from "../core/index.js";
import { parsedJson, record, text } from "../core/text/json.js";
import { openUpstream } from "../engines/upstream/upstream.js";
import type { RunRecord } from "../eval/base/run-record.js";
import type { MeasuredEngine } from "../eval/engine/measured-engine.js";
import { simulatedEngine } from "../eval/engine/simulated-engine.js";
import { SALTED_FAMILIES, upstreamEngine } from "../eval/engine/upstream-engine.js";
import { givenMemories } from "../eval/locomo/ingesting.js";
import { type ArmChoices, armsOf } from "../eval/run/arms.js";
import { type Judge, openJudge } from "../eval/scores/judge.js";
import type { PickedData } from "./eval-data.js";
import type { EvalLocomoOptions } from "./eval-options.js";
import type { Environment } from "./invocation.js";
import { encodeO200k } from "./o200k.js";
import { VERSION } from "./package.js";
import { usageError } from "./settings.js";

/** Least similarity in Mem0's searches: none, so that each finds k memories. */
export const THRESHOLD = 0;

/** For the first byte from engine or judge: a prompt may wait for hundreds of others. */
export const ENGINE_TIMEOUT_MS = 600_000;

/** `run.json` as the run starts. Throws `UsageError` for options that conflict. */
export function describeRun(options: EvalLocomoOptions, { sha256, conversations }: PickedData): RunRecord {
  const { layout: layouts, k: ks, policies, retention: retentions, ingest: how } = options;
  const engine = describeEngine(options);
  const judge = judgeOf(options);
  const [cpu] = cpus();
  return {
    memprefix: VERSION,
    node: process.version,
    mem0: mem0Version(),
    machine: {
      platform: `${process.platform} ${process.arch}`,
      cpu: cpu?.model ?? "unknown",
      cores: cpus().length,
      memoryMegabytes: Math.round(totalmem() / 2 ** 20),
    },
    startedAt: new Date().toISOString(),
    finishedAt: null,
    dataset: options.dataset,
    data: { file: basename(options.data), sha256 },
    conversations: conversations.map(({ id, conversation, asked }) => ({
      id,
      memories: givenMemories(conversation, how).length,
      questions: asked.length,
    })),
    engine,
    judge: judge && { ...judge, url: withoutSecrets(addressIn("--judge", judge.url)) },
    ingest: how,
    categories: [...options.categories],
    limit: options.limit ?? null,
    warmUpQuestions: options.warmUp ?? (engine.kind === "simulated" ? 0 : 1),
    arms: armsOf({
      layouts,
      ks,
      policies,
      annotations: options.annotations.map((wanted) => (wanted === "default" ? null : wanted)),
      depths: depthsOf(options, engine.kind),
      retentions,
      windows: windowsOf(options),
    }),
    settings: {
      threshold: THRESHOLD,
      score: scoresOf(options),
      maxTokens: options.maxTokens,
      engineFamily: options.engineFamily,
      cost: costModel(options),
      // Absent where they are left out.
      ...(options.times ? { times: true } : {}),
      salt: randomBytes(12).toString("hex"),
    },
  };
}

const LOGPROBS = "an engine that gives log-probabilities";

function windowsOf({ window, layout }: EvalLocomoOptions): ArmChoices["windows"] {
  if (window !== undefined && !layout.includes("conversation"))
    throw usageError("--window", "needs --layout conversation");
  return window ?? [null];
}

function depthsOf(
  { adaptiveDepth = [null] }: EvalLocomoOptions,
  engine: RunRecord["engine"]["kind"],
): ArmChoices["depths"] {
  if (engine !== "url" && adaptiveDepth.some((depth) => depth !== null))
    throw usageError("--adaptive-depth", `needs ${LOGPROBS}: --engine with its address`);
  return adaptiveDepth;
}

/** The cost model of `--retention auto`: the prices of the engine's provider, else the times of a GPU. */
export function costModel({ engine, engineFamily: family, model }: EvalLocomoOptions): EngineModel {
  if (!URL.canParse(engine)) return ENGINE_MODELS[DEFAULT_ENGINE_MODEL];
  return pricedModel({ host: new URL(engine).hostname, family }, model ?? null);
}

/** An API's address without query and credentials, which may hold a secret. */
function withoutSecrets({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

/** The address of an API that an option names. Throws `UsageError` for any other text. */
export function addressIn(option: string, url: string, orElse = ""): URL {
  if (URL.canParse(url) && /^https?:/.test(url)) return new URL(url);
  throw usageError(option, `must be ${orElse}an http or https address as http://127.0.0.1:8000/v1`);
}

/** Throws `UsageError` where the engine gives no log-probabilities of prompts, or no words are judged. */
function scoresOf({ score, engineFamily, engine, judge }: EvalLocomoOptions): readonly string[] {
  if (score.includes("likelihood") && (engineFamily !== "vllm" || !URL.canParse(engine))) {
    throw usageError(
      "--score likelihood",
      `needs ${LOGPROBS} of prompts: --engine with vLLM's address and --engine-family vllm`,
    );
  }
  if (judge !== undefined && !score.includes("words")) throw usageError("--judge", "needs --score words");
  return score;
}

/** Null: no judge. Throws `UsageError`. */
function judgeOf({ judge: url, judgeModel: model }: EvalLocomoOptions) {
  if (url === undefined && model === undefined) return null;
  if (url === undefined) throw usageError("--judge", "is needed with --judge-model");
  if (model === undefined) throw usageError("--judge-model", "is needed with --judge");
  return { url, model };
}

/** Null: no judge. Throws `UsageError`. */
export function openNamedJudge(options: EvalLocomoOptions, env: Environment): Judge | null {
  const judge = judgeOf(options);
  return judge && openJudge({ ...judge, timeoutMs: ENGINE_TIMEOUT_MS, apiKey: keyOf(env, "OPENAI_API_KEY") });
}

export function engineKey(env: Environment): string | undefined {
  return keyOf(env, "MEMPREFIX_UPSTREAM_API_KEY") ?? keyOf(env, "OPENAI_API_KEY");
}

function keyOf(env: Environment, variable: string): string | undefined {
  const key = env[variable];
  return key === undefined || key === "" ? undefined : key;
}

/** Mem0 does not export its version, which is in the manifest of its package. */
function mem0Version(): string {
  const entry = createRequire(import.meta.url).resolve("mem0ai");
  const [root = ""] = /^.*[\\/]mem0ai(?=[\\/])/.exec(entry) ?? [];
  return text(record(parsedJson(readFileSync(join(root, "package.json"), "utf8")))["version"]);
}

/** How arms are kept from hitting each other's prompts in the cache. */
const EMPTIED = {
  simulated: "every arm has a simulated cache of its own, empty before each conversation",
  salted: "a cache_salt of its own for every arm and conversation, different in every run",
  marked: "a line at the head of every prompt, Mem0's README's too, different for every arm, conversation and run",
} as const;

/** The engine as `run.json` names it. Throws `UsageError` for options that name no engine. */
function describeEngine({ engine, model, engineFamily }: EvalLocomoOptions): RunRecord["engine"] {
  if (engine === "simulated")
    return { kind: "simulated", model: null, url: null, emptied: EMPTIED.simulated, served: null };
  const url = withoutSecrets(addressIn("--engine", engine, "simulated, or "));
  if (model === undefined) throw usageError("--model", "is needed for an engine behind an address: its model name");
  if (engineFamily === "anthropic") {
    throw usageError("--engine-family", "anthropic has another API; evaluations use OpenAI's");
  }
  const emptied = SALTED_FAMILIES.has(engineFamily) ? EMPTIED.salted : EMPTIED.marked;
  return { kind: "url", model, url, emptied, served: null };
}

/** Opens the engine that the options name. Does not connect before it is checked. */
export function openMeasuredEngine(
  options: EvalLocomoOptions,
  { salt, apiKey }: { readonly salt: string; readonly apiKey: string | undefined },
): MeasuredEngine {
  const { engine: url, model = "", maxTokens, engineFamily: family, score: scores } = options;
  if (url === "simulated") return simulatedEngine(encodeO200k);
  const upstream = openUpstream({ url, apiKey, timeoutMs: ENGINE_TIMEOUT_MS });
  return upstreamEngine({ upstream, model, family, maxTokens, salt, scores });
}
