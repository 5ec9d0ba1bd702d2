import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { type EmbeddedEngineOptions, openEmbeddedEngine } from "../engines/embedded/embedded-engine.js";
import {
  isLabelledRandom,
  MODEL_SHAPES,
  MODEL_SIZES,
  type ModelSize,
  writeRandomModel,
} from "../engines/random-model/random-model.js";
import { openUpstream } from "../engines/upstream/upstream.js";
import { EvaluationError } from "../eval/base/run-files.js";
import type { EvalArm, RunRecord } from "../eval/base/run-record.js";
import { insideEngine } from "../eval/engine/inside-engine.js";
import type { MeasuredEngine } from "../eval/engine/measured-engine.js";
import { simulatedEngine } from "../eval/engine/simulated-engine.js";
import { SALTED_FAMILIES, upstreamEngine } from "../eval/engine/upstream-engine.js";
import type { EvalLocomoOptions } from "./eval-options.js";
import { encodeO200k } from "./o200k.js";

/** Tokens of a conversation's prompts with random weights, which were trained on no length; the engine's default is for single ones. */
const CONVERSATION_TOKENS = 16_384;

/** Models that need no file, by name. */
const RANDOM = new Map<string, ModelSize>(MODEL_SIZES.map((size) => [`random-${size}`, size]));

/** How arms are kept from finding each other's prompts in the cache. */
const EMPTIED = {
  simulated: "every arm has a simulated cache of its own, empty before each conversation",
  embedded: "every arm has an engine of its own, and each conversation a cache salt of its own",
  salted: "a cache_salt of its own for every arm and conversation, different in every run",
  marked: "a line at the head of every prompt, Mem0's README's too, different for every arm, conversation and run",
} as const;

/** The engine as `run.json` names it. Throws {@link EvaluationError} for options that name no engine. */
export function describeEngine({ engine, model, engineFamily }: EvalLocomoOptions): RunRecord["engine"] {
  if (engine === "simulated")
    return { kind: "simulated", model: null, url: null, emptied: EMPTIED.simulated, served: null };
  if (engine === "embedded") {
    if (model === undefined) {
      throw new EvaluationError("--model: is needed for --engine embedded: a GGUF file, random-23m or random-135m");
    }
    if (!RANDOM.has(model) && !existsSync(model)) throw new EvaluationError(`--model ${model}: there is no such file`);
    return { kind: "embedded", model: basename(model), url: null, emptied: EMPTIED.embedded, served: null };
  }
  if (!URL.canParse(engine) || !/^https?:/.test(engine)) {
    throw new EvaluationError(
      "--engine: must be simulated, embedded, or an http or https address as http://127.0.0.1:8000/v1",
    );
  }
  if (model === undefined)
    throw new EvaluationError("--model: is needed for an engine behind an address: its model name");
  if (engineFamily === "anthropic") {
    throw new EvaluationError("--engine-family: anthropic has another API; evaluations use OpenAI's");
  }
  const { origin, pathname } = new URL(engine);
  const emptied = SALTED_FAMILIES.has(engineFamily) ? EMPTIED.salted : EMPTIED.marked;
  return { kind: "url", model, url: `${origin}${pathname}`, emptied, served: null };
}

/** Opens the engine that the options name. Nothing is loaded or connected to before the first arm opens. */
export async function openMeasuredEngine(
  options: EvalLocomoOptions,
  {
    directory,
    salt,
    apiKey,
  }: { readonly directory: string; readonly salt: string; readonly apiKey: string | undefined },
): Promise<MeasuredEngine> {
  const { kind } = describeEngine(options);
  const { engine: url, model = "", maxTokens, engineFamily: family, timeoutMs, scores, score } = options;
  switch (kind) {
    case "simulated":
      return simulatedEngine(encodeO200k);
    case "embedded": {
      const modelPath = await modelFile(model, directory);
      const isRandom = await isLabelledRandom(modelPath);
      const isNoise = isRandom || !scores;
      // Each engine's library listens for the end of the process; Node would take many of them for a leak.
      const open = (arm: EvalArm) => {
        process.setMaxListeners(process.getMaxListeners() + 1);
        return openEmbeddedEngine({ modelPath, ...roomFor(arm, options, isRandom) });
      };
      // The text is noise: only the first token is measured.
      return insideEngine({ open, maxTokens: isNoise ? 1 : maxTokens, isNoise });
    }
    case "url": {
      const upstream = openUpstream({ url, apiKey, timeoutMs });
      return upstreamEngine({ upstream, model, family, maxTokens, salt, isNoise: !scores, scores: score });
    }
  }
}

/** Each prompt of a conversation extends the last one, so one slot holds them all. */
function roomFor(
  { layout }: EvalArm,
  { engineSlots, context, threads }: EvalLocomoOptions,
  isRandom: boolean,
): Pick<EmbeddedEngineOptions, "slots" | "contextTokens" | "threads"> {
  const isConversation = layout === "conversation";
  const contextTokens = context ?? (isRandom && isConversation ? CONVERSATION_TOKENS : undefined);
  return { slots: isConversation ? 1 : engineSlots, contextTokens, threads };
}

/** The model's file; a random model is written into the run's directory first. */
async function modelFile(model: string, directory: string): Promise<string> {
  const size = RANDOM.get(model);
  if (size === undefined) return model;
  const path = join(directory, `${model}.gguf`);
  if (existsSync(path)) return path;
  const draft = `${path}.part`;
  await rm(draft, { force: true });
  await writeRandomModel(draft, { name: size, shape: MODEL_SHAPES[size] });
  await rename(draft, path);
  return path;
}
