import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Scope, UserId } from "../core/index.js";
import { NO_ANSWER } from "../eval/base/hand-built.js";
import { readJson } from "../eval/base/run-files.js";
import { pickConversation, readLocomo } from "../eval/locomo/locomo-data.js";
import {
  type ComparedQuestion,
  comparePrefill,
  PREFILL_ARMS,
  prefillTable,
} from "../eval/replay/prefill-comparison.js";
import { openEmbeddedMem0 } from "../memory/embedded-mem0.js";
import { assemble } from "./assemble.js";
import { type Invocation, STOPPED, untilStopped } from "./invocation.js";
import { encodeO200k } from "./o200k.js";
import { needEmbeddedMem0 } from "./package.js";
import { withProgress } from "./progress.js";
import { readSettings } from "./settings.js";

export interface DemoOptions {
  /** First questions only. */
  readonly limit?: number;
  /** Show the dashboard after the figures. */
  readonly open?: boolean;
}

const SAMPLE = fileURLToPath(new URL("../../examples/sample-locomo.json", import.meta.url));
const TOP_K = 20;

/**
 * Loads the sample conversation's facts into embedded Mem0, searches for each question, and compares the tokens to prefill with Mem0's README prompt
 * and with memprefix. Uses a directory of its own, which it removes.
 */
export async function runDemo(options: DemoOptions, call: Invocation): Promise<void> {
  needEmbeddedMem0("demo");
  const dataDir = await mkdtemp(join(tmpdir(), "memprefix-demo-"));
  const interrupt = () => {
    rmSync(dataDir, { recursive: true, force: true });
    call.exit(STOPPED);
  };
  call.signals.on("SIGINT", interrupt);
  try {
    await printFigures(options, dataDir, call);
    if (options.open !== true) return;
    call.signals.off("SIGINT", interrupt);
    await showDemoPage(dataDir, call);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
    call.signals.off("SIGINT", interrupt);
  }
}

async function printFigures(
  { limit }: DemoOptions,
  dataDir: string,
  { print, stderr }: Pick<Invocation, "print" | "stderr">,
): Promise<void> {
  const conversation = pickConversation(readLocomo(readJson(SAMPLE)));
  const questions = conversation.questions.slice(0, limit);
  const memprefix = assemble(readSettings({ MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_SOURCE: "none" }));
  const source = openEmbeddedMem0({ dataDir, threshold: 0 });
  try {
    const scope: Scope = { tenant: "default", userId: "demo" as UserId, agentId: null };
    const signal = new AbortController().signal;
    await withProgress(stderr, "loading memories", conversation.observations.length, async (step) => {
      for (const { text } of conversation.observations) {
        await source.add(scope, [{ text }], signal);
        step();
      }
    });
    const searchMs: number[] = [];
    const asked = await withProgress(stderr, "searching", questions.length, async (step) => {
      const found: ComparedQuestion[] = [];
      for (const { question, answer } of questions) {
        const start = performance.now();
        const memories = await source.search({ scope, query: question, topK: TOP_K }, signal);
        searchMs.push(performance.now() - start);
        found.push({ question, answer: answer ?? NO_ANSWER, memories });
        step();
      }
      return found;
    });
    const costs = await withProgress(stderr, "composing", PREFILL_ARMS.length * asked.length, (step) =>
      comparePrefill(memprefix, asked, encodeO200k, step),
    );
    const median = searchMs.sort((a, b) => a - b)[Math.floor(searchMs.length / 2)] ?? 0;
    print(
      `${conversation.id}: ${conversation.observations.length} memories in Mem0, ${asked.length} questions, k = ${TOP_K}, ` +
        `search p50 ${median.toFixed(0)} ms; tokens per question:\n`,
    );
    print(prefillTable(costs, asked.length));
    print("\nbilled: in prices of an uncached token, by OpenAI's prices of cached ones (docs/retention.md)");
  } finally {
    await source.close();
    await memprefix.close();
  }
}

/** Serves the dashboard on a free loopback port until a signal stops it, and prints the address of its try-it view. */
async function showDemoPage(dataDir: string, { print, signals, stderr }: Invocation): Promise<void> {
  const stopped = untilStopped(signals);
  const { startService } = await import("./serve.js");
  const settings = {
    MEMPREFIX_DATA_DIR: dataDir,
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_PORT: "0",
    MEMPREFIX_LOG_LEVEL: "warn",
  };
  const service = await startService(readSettings(settings), stderr);
  print(`\nThe dashboard is at ${service.address}/dashboard#/try\nCtrl-C ends it, and deletes the demo's data.`);
  await stopped;
  await service.stop();
}
