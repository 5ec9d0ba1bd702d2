import { type Command, Option } from "commander";
import { MODEL_SIZES } from "../engines/random-model/random-model.js";
import type { RandomModelOptions, ServeEngineOptions } from "./engine.js";
import { type Invocation, untilStopped } from "./invocation.js";
import { positive, wholeNumber } from "./option-values.js";
import { VERSION } from "./version.js";

/** Adds `memstem engine` and its subcommands. */
export function addEngineCommands(program: Command, call: Invocation): void {
  const engine = program.command("engine").description("the engine inside: llama.cpp in this process");

  engine
    .command("random-model")
    .description("write a model with random weights for measuring: real times and cached tokens, meaningless text")
    .addOption(
      new Option("--size <size>", "parameters: 23 million, or 135 million in SmolLM2's dimensions")
        .choices(MODEL_SIZES)
        .default("23m"),
    )
    .requiredOption("--out <file>", "the GGUF file to write; must not exist")
    .option("--seed <number>", "which random weights", wholeNumber(1, 1_000), 1)
    .action(async (options: RandomModelOptions) => {
      const { runRandomModel } = await import("./engine.js");
      await runRandomModel(options, call.print);
    });

  engine
    .command("serve")
    .description("serve the engine by itself, as an OpenAI-compatible server; it has no keys, so keep it on loopback")
    .requiredOption("--model <file>", "a GGUF file")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <number>", "port to listen on; 0 takes a free one", wholeNumber(0, 65_535), 4601)
    .option("--slots <number>", "concurrent requests, and prompts kept in the cache", wholeNumber(1, 1_000), 4)
    .option("--context <tokens>", "context: prompt and answer (default: the model's, at most 8192)", positive)
    .option("--threads <number>", "threads that compute (default: the machine's cores)", wholeNumber(1, 1_000))
    .action(async (options: ServeEngineOptions) => {
      const { serveEngine } = await import("./engine.js");
      // The error's name only: its message may quote a prompt.
      const onFault = (error: unknown) => call.note(error instanceof Error ? error.name : "fault");
      const running = await serveEngine(options, onFault);
      const stopped = untilStopped(call.signals);
      call.print(`memstem ${VERSION} engine listens on ${running.address}`);
      await stopped;
      await running.stop();
      call.exit(0);
    });
}
