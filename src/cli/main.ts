#!/usr/bin/env node
import { Console } from "node:console";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { LocomoDataError } from "../eval/locomo-data.js";
import { InvalidRequestError } from "../service/errors.js";
import { readOptions } from "../service/read-options.js";
import { DatabaseOpenError } from "../store/database-open-error.js";
import type { DemoOptions } from "./demo.js";
import { readSettings, settingsHelp } from "./settings.js";
import { VERSION } from "./version.js";

// Libraries print to the console, Mem0 even to standard output; what they say may quote memories, and answers go to standard output.
globalThis.console = new Console({ stdout: new Writable({ write: (_chunk, _encoding, done) => done() }) });

// A command's own code loads with it: what only prints help or a mistake should not wait for databases and tokenizers.
const program = new Command("memstem")
  .description("Composes prompts from agent memory that an inference engine's prefix cache can reuse.")
  .version(VERSION)
  .showHelpAfterError()
  .exitOverride();

program
  .command("serve")
  .description("run the HTTP service")
  .addHelpText("after", settingsHelp)
  .action(async () => {
    const { startService } = await import("./serve.js");
    const service = await startService(readSettings(process.env));
    process.stdout.write(`memstem ${VERSION} listens on ${service.address}\n`);
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.once(signal, () => void service.stop().then(() => process.exit(0)));
  });

program
  .command("compose")
  .description("compose one prompt: the body of POST /compose on standard input, its answer on standard output")
  .addHelpText("after", settingsHelp)
  .action(async () => {
    const { composeBodyWithNulls, readCompose, writeCompose } = await import("../http/contracts.js");
    const { assemble } = await import("./assemble.js");
    const request = readCompose(readOptions(composeBodyWithNulls, readJson(await text(process.stdin))));
    const memstem = assemble(readSettings(process.env));
    try {
      process.stdout.write(`${JSON.stringify(writeCompose(await memstem.compose(request)), null, 2)}\n`);
    } finally {
      await memstem.close();
    }
  });

program
  .command("demo")
  .description("load a LoCoMo conversation into Mem0 and show what an engine would have to prefill for its questions")
  .option("--data <file>", "a file in LoCoMo's format (default: the sample that ships with memstem)")
  .option("--conversation <id>", "which of its conversations (default: the first)")
  .option("--k <number>", "memories per question", wholeNumber, 20)
  .option("--limit <number>", "first so many questions only", wholeNumber)
  .action(async (options: DemoOptions) => {
    const { runDemo } = await import("./demo.js");
    await runDemo(options, (line) => process.stdout.write(`${line}\n`));
  });

function wholeNumber(value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1 || number > 1_000) throw new InvalidArgumentError("must be 1 to 1000");
  return number;
}

function readJson(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    throw new InvalidRequestError([{ field: "standard input", message: "is not JSON" }]);
  }
}

/** What a person can put right is said in a line or two; anything else keeps its stack. */
function explain(error: unknown): string {
  if (error instanceof InvalidRequestError) {
    return error.issues.map(({ field, message }) => `memstem: ${field}: ${message}\n`).join("");
  }
  if (error instanceof DatabaseOpenError || error instanceof LocomoDataError) return `memstem: ${error.message}\n`;
  if (error instanceof Error && "code" in error && typeof error.code === "string") return `memstem: ${error.message}\n`;
  return `memstem: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else {
    process.stderr.write(explain(error));
    process.exitCode = 1;
  }
}
