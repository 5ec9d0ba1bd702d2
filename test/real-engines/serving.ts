import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../local-server.js";
import { ENGINES_FOLDER } from "./install.js";
import type { EngineKind, ModelName } from "./packages.js";

/** A real engine that serves a model under its name. */
export interface RealEngine {
  /** Its OpenAI-compatible API: ends with `/v1`. */
  readonly url: string;
  /** What it was started with: its port, too. */
  readonly options: ServingOptions;
  readonly child: ChildProcess;
  /** The newest of what it printed. */
  log(): string;
  /** Ends it as `kill -9` does; resolves when it is gone. */
  kill(): Promise<void>;
}

export interface ServingOptions {
  readonly engine: EngineKind;
  readonly model: ModelName;
  /** Default: a free one. */
  readonly port?: number;
  /** Tokens of its context. Default 8,192. */
  readonly contextTokens?: number;
  /** vLLM: blocks of its KV cache. Default: 2 GB of them. */
  readonly blocks?: number;
  /** vLLM: tokens of a block. Default: its own. */
  readonly blockTokens?: number;
  /** vLLM: the layers of a model of this shape with random weights. Its cache holds the same blocks, computed many times faster. Default: all. */
  readonly layers?: number;
  /** llama.cpp: slots. Default 1. */
  readonly slots?: number;
  /** vLLM: where it publishes events of its cache and sends them again; `free`: at ports that are free. Default: nowhere. */
  readonly events?: EventAddresses | "free";
}

interface EventAddresses {
  readonly endpoint: string;
  readonly replay_endpoint: string;
}

const READY_MS = 600_000;
const KEPT_CHARACTERS = 20_000;

/** Starts an engine that `npm run engines` has installed, and waits until it serves. Rejects with what it printed where it does not. */
export async function serving(options: ServingOptions): Promise<RealEngine> {
  const { engine, model, contextTokens = 8_192, port = await freePort() } = options;
  const events = options.events === "free" ? await freeAddresses() : options.events;
  const at = (...path: string[]) => join(ENGINES_FOLDER, ...path);
  const command = at(engine, "bin", engine === "vllm" ? "vllm" : "python");
  const args =
    engine === "vllm"
      ? [
          ...["serve", at("models", model), "--served-model-name", model, "--host", "127.0.0.1", "--port", `${port}`],
          ...["--max-model-len", `${contextTokens}`, "--dtype", "bfloat16", "--enforce-eager"],
          "--enable-prompt-tokens-details",
          ...(options.blocks === undefined ? [] : ["--num-gpu-blocks-override", `${options.blocks}`]),
          ...(options.blockTokens === undefined ? [] : ["--block-size", `${options.blockTokens}`]),
          ...(options.layers === undefined
            ? []
            : ["--load-format", "dummy", "--hf-overrides", JSON.stringify({ num_hidden_layers: options.layers })]),
          ...(events === undefined
            ? []
            : ["--kv-events-config", JSON.stringify({ enable_kv_cache_events: true, publisher: "zmq", ...events })]),
        ]
      : [
          fileURLToPath(new URL("llama_server.py", import.meta.url)),
          ...[at("models", `${model}.gguf`), model, `${port}`, `${contextTokens}`, `${options.slots ?? 1}`],
        ];
  const env = {
    ...process.env,
    VLLM_CPU_KVCACHE_SPACE: "2",
    HF_HUB_OFFLINE: "1",
    VLLM_NO_USAGE_STATS: "1",
    // Responses that a later request continues by their id.
    VLLM_ENABLE_RESPONSES_API_STORE: "1",
    // In huge pages its speed depends less on where its memory happens to lie: between two starts it differs by 1.1 in place of 1.5.
    THP_MEM_ALLOC_ENABLE: "1",
    GLIBC_TUNABLES: "glibc.malloc.hugetlb=1",
    // For `POST /reset_prefix_cache`.
    VLLM_SERVER_DEV_MODE: "1",
  };
  // In a group of its own: vLLM's engine is a child of its server.
  const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "pipe"], detached: true });
  const killGroup = () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, "SIGKILL");
  };
  process.once("exit", killGroup);
  let printed = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data) => {
      printed = (printed + String(data)).slice(-KEPT_CHARACTERS);
    });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  void ended.then(() => process.off("exit", killGroup));
  const url = `http://127.0.0.1:${port}/v1`;
  const kill = async () => {
    killGroup();
    await ended;
  };
  for (const since = performance.now(); ; ) {
    const isUp = await fetch(`${url}/models`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) {
      const started = { ...options, port, ...(events === undefined ? {} : { events }) };
      return { url, options: started, child, log: () => printed, kill };
    }
    if (child.exitCode === null && performance.now() - since < READY_MS) {
      await new Promise((later) => setTimeout(later, 250));
      continue;
    }
    await kill();
    throw new Error(`${engine} did not serve ${model}:\n${printed.slice(-2_000)}`);
  }
}

/** Of every interface: vLLM listens there; to the address of one it would connect. */
async function freeAddresses(): Promise<EventAddresses> {
  const [endpoint, replay] = [await freePort(), await freePort()].map((port) => `tcp://*:${port}`);
  return { endpoint: endpoint ?? "", replay_endpoint: replay ?? "" };
}
