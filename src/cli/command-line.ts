/*
 * The command line: every command, its options and its exit code. Only this room builds concrete parts from settings.
 *
 * Enters: arguments, `MEMPREFIX_` environment variables, standard input.
 * Leaves: answers on standard output; progress, logs and errors on standard error.
 * A command's action imports its code, so that help and mistakes load no database and no tokenizer.
 */

import { Command, CommanderError, Option } from "commander";
import { POLICY_NAMES } from "../core/compose/policies.js";
import { DEFAULT_TENANT } from "../service/base/tenant.js";
import type { DemoOptions } from "./demo.js";
import type { DoctorOptions } from "./doctor.js";
import { readDotEnv } from "./dot-env.js";
import { errorText, unbuilt } from "./error-text.js";
import { addEvalCommands } from "./eval.js";
import { type CommandIo, type Environment, type Invocation, invocation, type Output, onStop } from "./invocation.js";
import { positive, ratio, wholeNumber } from "./option-values.js";
import { VERSION } from "./package.js";
import type { ReplayCommand } from "./replay.js";
import type { RunningService } from "./serve.js";
import { readSettings, settingsHelp, UsageError, unknownVariables } from "./settings.js";

/** Exit code for an unknown option or a wrong setting; other errors end with 1. */
const USAGE_ERROR = 2;

/**
 * Runs one command and resolves to its exit code; `memprefix serve` runs until a signal stops it. Uses nothing of the process but its
 * parameters.
 *
 * @param args without `memprefix`
 */
export async function run(args: readonly string[], env: Environment, io: CommandIo): Promise<number> {
  const call = invocation(env, io);
  try {
    await commandLine(call).parseAsync(args.length === 0 ? ["--help"] : args, { from: "user" });
    return call.exitCode;
  } catch (error) {
    // Commander throws for help and the version, too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
    call.stderr.write((await unbuilt(error)) ?? errorText(error));
    return error instanceof UsageError ? USAGE_ERROR : 1;
  }
}

function commandLine(call: Invocation): Command {
  const program = new Command("memprefix")
    .description("Composes prompts from agent memory that an inference engine's prefix cache can reuse.")
    .version(VERSION, "-v, --version")
    // The whole help would scroll the one-line error off the screen.
    .showHelpAfterError("--help says what it takes")
    .configureOutput({
      writeOut: (text) => void call.stdout.write(text),
      writeErr: (text) => void call.stderr.write(text),
      getOutHelpWidth: () => widthOf(call.stdout),
      getErrHelpWidth: () => widthOf(call.stderr),
      outputError: (message, write) => write(message.replace(/^error: /, "memprefix: ")),
    })
    .exitOverride()
    .hook("preAction", () => noteUnknown(call.env, call));

  program
    .command("serve")
    .description("run the HTTP service")
    .option("--host <address>", "address to listen on")
    .option("--port <number>", "port to listen on")
    .option("--data-dir <directory>", "directory of memprefix's files")
    .option("--upstream <url>", "base URL of the engine's API")
    .addHelpText("after", "\nFlags override the environment, which overrides .env in the working directory.")
    .addHelpText("after", () => settingsHelp())
    .action(async ({ host, port, dataDir, upstream }: ServeOptions) => {
      const inFile = readDotEnv(process.cwd());
      noteUnknown(inFile, call);
      const settings = readSettings({ ...inFile, ...call.env }, { host, port, dataDir, upstreamUrl: upstream });
      const { startService } = await import("./serve.js");
      const service = await startService(settings, call.stderr);
      // Before the service reports that it listens: a reader of that may send a signal at once.
      const stopped = stopAtSignal(call, service);
      call.print(`memprefix ${VERSION} listens on ${service.address}`);
      for (const line of service.message) call.print(line);
      await stopped;
      call.exit(0);
    });

  program
    .command("doctor")
    .description(
      "check the store, Mem0, the engine and the running service, and recommend changes; sends the engine three prompts of about 1,500 tokens; exits with 1 if something is broken",
    )
    .option("--user <id>", "whose memories to search for", "memprefix-doctor")
    .option("--model <name>", "model to try (default: the only one that the engine lists)")
    .option("--isolation", "check only whether tenants share the engine's cache; names the layer that ignores salts")
    .option(
      "--keys <keys>",
      "with --isolation: keys of different tenants to try in the running service, separated by commas",
      (text: string) => text.split(","),
    )
    .option("--json", "print the findings as JSON, most valuable first")
    .addHelpText("after", () => settingsHelp())
    .action(async (options: DoctorOptions) => {
      const { runDoctor } = await import("./doctor.js");
      await runDoctor(options, call);
    });

  program
    .command("demo")
    .description("load a sample conversation into Mem0 and count the tokens that its prompts compute")
    .option("--limit <number>", "only the first n questions", positive)
    .option("--open", "then serve the dashboard, where you can try your own memories, until Ctrl-C")
    .action(async (options: DemoOptions) => {
      const { runDemo } = await import("./demo.js");
      await runDemo(options, call);
    });

  program
    .command("replay")
    .description("compose a recorded trace again, and count its tokens on a simulated prefix cache")
    .requiredOption("--trace <file>", "a recorded trace: memories, questions, and what a search returned for each")
    .option("--k <number>", "memories per question", wholeNumber(1, 1_000), 20)
    .addOption(
      new Option(
        "--policy <name>",
        "ordering policy (default: all in the table, prefix-exact with --json and for a conversation)",
      ).choices(POLICY_NAMES),
    )
    .option(
      "--budget-ratio <number>",
      "most memory tokens of carry-over over all prompts so far, as a multiple of those retrieved; in a conversation, of what each turn adds (default: none, which orders as prefix-exact)",
      ratio,
    )
    .addOption(
      new Option(
        "--layout <name>",
        "one prompt per question, or one conversation (a row for each retention, `keep` with --json)",
      )
        .choices(["single", "conversation"])
        .default("single"),
    )
    .addOption(new Option("--cache <name>", "how the engine caches").choices(["radix", "blocks"]).default("blocks"))
    .option("--capacity <tokens>", "capacity of the cache in tokens (default: unlimited)", positive)
    .option("--limit <number>", "only the first n questions", positive)
    .option("--json", "every request of one policy as JSON")
    .action(async (command: ReplayCommand) => {
      const { runReplay } = await import("./replay.js");
      runReplay(command, call.print);
    });

  addEvalCommands(program, call);

  const keys = program
    .command("keys")
    .description("manage API keys; after you create the first key, every request needs one")
    .addHelpText("after", () => settingsHelp(STORED));

  keys
    .command("add")
    .description("create a key; it is shown only once, and also works in a running service")
    .option(
      "--tenant <name>",
      "tenant of the key; `default` has all data from before the first key, and Mem0's own user ids",
      DEFAULT_TENANT.name,
    )
    .option("--label <text>", "what it is for")
    .action(async (options: { tenant: string; label?: string }) => {
      const { addKey } = await import("./keys.js");
      await addKey(options, call);
    });

  keys
    .command("list")
    .description("list all keys without their secrets: id, tenant, creation time, state, label")
    .action(async () => {
      const { listKeys } = await import("./keys.js");
      await listKeys(call);
    });

  keys
    .command("revoke")
    .description("reject a key from the next request on")
    .argument("<id>", "id of the key from `keys list`; also the middle part of the key")
    .action(async (id: string) => {
      const { revokeKey } = await import("./keys.js");
      await revokeKey(id, call.env);
    });

  return program;
}

/** Warns of variables that are no settings. */
function noteUnknown(env: Environment, { note }: Invocation): void {
  for (const { variable, nearest } of unknownVariables(env))
    note(`${variable} is not a setting and is ignored; the nearest is ${nearest}`);
}

interface ServeOptions {
  readonly host?: string;
  readonly port?: string;
  readonly dataDir?: string;
  readonly upstream?: string;
}

/** Settings of where users' data is. */
const STORED = ["dataDir", "databaseUrl"] as const;

/** Stops a service at the first signal. A second ends the process at once: answered requests are stored, others are lost. */
function stopAtSignal({ signals, exit }: Invocation, service: RunningService): Promise<void> {
  return new Promise((resolve, reject) => {
    let isStopping = false;
    onStop(signals, () => {
      if (isStopping) {
        exit(1);
        return;
      }
      isStopping = true;
      service.stop().then(resolve, reject);
    });
  });
}

/** A terminal's columns; 80 for any other output. */
function widthOf(output: Output): number {
  return "isTTY" in output && output.isTTY === true && "columns" in output && typeof output.columns === "number"
    ? output.columns
    : 80;
}
