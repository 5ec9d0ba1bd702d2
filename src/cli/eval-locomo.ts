import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, totalmem } from "node:os";
import { basename, dirname, join } from "node:path";
import {
  DEFAULT_ENGINE_MODEL,
  DEFAULT_POLICY,
  DEFAULT_RETENTION,
  type EngineModel,
  type RequestId,
  type Scope,
  type UserId,
} from "../core/index.js";
import { EmbeddedEngineError } from "../engines/embedded-engine-error.js";
import { ENGINES } from "../engines/engines.js";
import { UpstreamError } from "../engines/upstream.js";
import { armsOf } from "../eval/arms.js";
import type { KeptMemories } from "../eval/conversation-memories.js";
import { type EvaluatedConversation, pickQuestions } from "../eval/evaluated-conversation.js";
import { EvaluationError } from "../eval/evaluation-error.js";
import { type Extract, findKeptMemories, ingest, ingestSteps } from "../eval/ingesting.js";
import { JsonLines } from "../eval/json-lines.js";
import { type Judge, openJudge } from "../eval/judge.js";
import type { MeasuredEngine } from "../eval/measured-engine.js";
import { RecordedSearches } from "../eval/recorded-searches.js";
import { renderReports } from "../eval/report.js";
import { type RunParts, recordKey, runConversation } from "../eval/run-conversation.js";
import { beginRun, writeRun } from "../eval/run-file.js";
import { type QuestionRecord, questionRecord, type RunRecord } from "../eval/run-record.js";
import { writeTraces } from "../eval/searched-trace.js";
import { EngineAnswerError } from "../eval/upstream-engine.js";
import { writeWhole } from "../eval/write-whole.js";
import { withDeadline } from "../memory/deadline.js";
import { openEmbeddedMem0 } from "../memory/embedded-mem0.js";
import { MemorySourceError } from "../memory/memory-source.js";
import { Memstem } from "../service/memstem.js";
import { openDatabase } from "../store/open-database.js";
import { SqliteStore } from "../store/sqlite-store.js";
import { engineModel } from "./engine-model-setting.js";
import type { EvalLocomoOptions } from "./eval.js";
import { downloadData, readDataFile } from "./eval-data.js";
import { describeEngine, openMeasuredEngine } from "./eval-engine.js";
import { countO200k } from "./o200k.js";
import { progressBar } from "./progress-bar.js";
import { VERSION } from "./version.js";

const ALL_FAILED = 3;
const STOPPED = 130;

/** Of Mem0's searches: what it finds for a question is all that k says, however far off. */
const THRESHOLD = 0;
const SEARCH_MS = 120_000;
const WRITE_MS = 600_000;

/**
 * Runs an evaluation, or goes on with one, and returns the exit code. What there is when it is stopped makes a report too. Throws
 * `EvaluationError`, `LocomoDataError`.
 */
export async function runEvalLocomo(options: EvalLocomoOptions, print: (line: string) => void): Promise<number> {
  const stop = stopSignal();
  try {
    if (options.download !== undefined) await downloadData(options.data, options.download, stop.signal);
    const file = readDataFile(options.data);
    const conversations = pickQuestions(file.conversations, {
      conversations: options.conversations ?? null,
      categories: options.categories,
      limit: options.limit ?? null,
    });
    const wanted = describeRun(options, file.sha256, conversations);
    const judge = openJudgeOf(options);
    const run = beginRun(options.out, wanted, options.resume ?? false);
    return await new LocomoEvaluation(options, run, conversations, judge, stop.signal).run(print);
  } catch (error) {
    throw sayable(error);
  } finally {
    stop.end();
  }
}

/** One run, with the files that it writes. */
class LocomoEvaluation {
  readonly #records: QuestionRecord[];
  readonly #results: JsonLines<typeof questionRecord>;
  readonly #searches: RecordedSearches;
  #run: RunRecord;

  constructor(
    private readonly options: EvalLocomoOptions,
    run: RunRecord,
    private readonly conversations: readonly EvaluatedConversation[],
    private readonly judge: Judge | null,
    private readonly signal: AbortSignal,
  ) {
    this.#run = run;
    this.#results = new JsonLines(join(options.out, "results.jsonl"), questionRecord);
    this.#records = [...this.#results.kept];
    this.#searches = new RecordedSearches(options.out);
  }

  async run(print: (line: string) => void): Promise<number> {
    try {
      if (this.#left() > 0) {
        if (this.#records.length > 0) this.#note({ settings: this.#resumed() });
        await this.#finish();
      }
      if (this.#run.finishedAt === null) this.#note({ finishedAt: new Date().toISOString() });
    } catch (error) {
      // Stopped: what there is makes a report, and --resume goes on from it.
      if (!this.signal.aborted) throw error;
    } finally {
      this.#results.close();
      this.#searches.close();
    }
    return this.#report(print);
  }

  #left(): number {
    const asked = this.conversations.reduce((sum, { asked }) => sum + asked.length, 0);
    return asked * this.#run.arms.length - this.#records.length;
  }

  async #finish(): Promise<void> {
    const memories = await this.#search();
    const { out } = this.options;
    const salt = String(this.#run.settings?.["salt"]);
    const engine = await openMeasuredEngine(this.options, { directory: out, salt, apiKey: engineKey() });
    try {
      await engine.check(this.signal);
      await this.#ask(engine, memories);
    } finally {
      await engine.close();
    }
  }

  /** Puts into Mem0 what is not there yet, and makes the searches that were not made yet. */
  async #search(): Promise<ReadonlyMap<string, KeptMemories>> {
    const { out, k: ks, ingest: how } = this.options;
    const kept = new Map<string, KeptMemories>();
    for (const { id } of this.conversations) {
      const known = findKeptMemories(out, id);
      if (known !== null) kept.set(id, known);
    }
    const model = extractionModel(this.options);
    const mem0 = openEmbeddedMem0({ dataDir: out, threshold: THRESHOLD, ...(model === null ? {} : { model }) });
    const source = withDeadline(mem0, { searchMs: SEARCH_MS, writeMs: WRITE_MS });
    const extract: Extract | null =
      model === null ? null : (scope, { messages }, signal) => mem0.extract(scope, messages, signal);
    try {
      const missing = this.conversations.filter(({ id }) => !kept.has(id));
      const steps = missing.reduce((sum, { conversation }) => sum + ingestSteps(conversation, how), 0);
      await withProgress("loading memories", steps, async (step) => {
        for (const { id, conversation } of missing) {
          const given = { conversation, how, directory: out };
          kept.set(id, await ingest(source, scopeOf(id), given, extract, this.signal, step));
        }
      });
      this.#note({
        conversations: this.#run.conversations.map((conversation) => ({
          ...conversation,
          memories: kept.get(conversation.id)?.length ?? conversation.memories,
        })),
      });
      const unsearched = this.conversations.flatMap(({ id, asked }) =>
        asked.flatMap(({ at }) => ks.filter((k) => this.#searches.find(id, at, k) === undefined)),
      ).length;
      await withProgress("searching", unsearched, async (step) => {
        for (const conversation of this.conversations) {
          const given = { memories: kept.get(conversation.id) ?? [], ks };
          await this.#searches.complete(source, scopeOf(conversation.id), conversation, given, this.signal, step);
        }
      });
    } finally {
      await source.close();
    }
    for (const conversation of this.conversations) {
      const memories = kept.get(conversation.id) ?? [];
      writeTraces(out, conversation, { memories, searches: this.#searches, ks });
    }
    return kept;
  }

  async #ask(engine: MeasuredEngine, memories: ReadonlyMap<string, KeptMemories>): Promise<void> {
    const { arms, warmUpQuestions } = this.#run;
    const cost = costModel(this.options);
    const parts: RunParts = {
      arms,
      engine,
      judge: this.judge,
      countTokens: countO200k,
      openMemstem: (now) => openMemstem(cost, now),
    };
    const recorded = new Map(
      this.#records.map((record) => [recordKey(record.arm, record.conversation, record.question), record]),
    );
    await withProgress("asking", this.#left(), async (step) => {
      for (const [place, conversation] of this.conversations.entries()) {
        const { id, asked } = conversation;
        if (asked.every(({ at }) => arms.every((arm) => recorded.has(recordKey(arm.id, id, at))))) continue;
        await runConversation(
          parts,
          {
            conversation,
            memories: memories.get(id) ?? [],
            searches: this.#searches,
            // What an engine needs once: every conversation begins cold, and that is measured.
            warmUpQuestions: place === 0 ? warmUpQuestions : 0,
            recorded,
            onRecord: (record) => {
              this.#results.append(record);
              this.#records.push(record);
              step();
            },
          },
          this.signal,
        );
      }
    });
  }

  #report(print: (line: string) => void): number {
    const { out } = this.options;
    const { html, markdown } = renderReports(this.#run, this.#records);
    writeWhole(join(out, "report.html"), html);
    writeWhole(join(out, "report.md"), markdown);
    print(markdown);
    const failed = this.#records.filter(({ outcome }) => outcome === "failed").length;
    if (failed > 0) print(`${failed} of ${this.#records.length} prompts failed; results.jsonl says how.`);
    const unjudged = this.#records.filter(
      (record) => record.outcome === "answered" && record.judge !== null && record.judge.isCorrect === null,
    ).length;
    if (unjudged > 0) print(`The judge gave no verdict on ${unjudged} answers; results.jsonl says why.`);
    print(`${join(out, "report.html")}, report.md, results.jsonl, run.json`);
    if (this.#run.finishedAt === null) {
      print(`Stopped with ${this.#left()} prompts left: the same command with --resume goes on.`);
      return STOPPED;
    }
    return failed > 0 && failed === this.#records.length ? ALL_FAILED : 0;
  }

  #resumed(): RunRecord["settings"] {
    const settings = this.#run.settings ?? {};
    const before = Array.isArray(settings["resumedAt"]) ? settings["resumedAt"] : [];
    return { ...settings, resumedAt: [...before, new Date().toISOString()] };
  }

  #note(news: Partial<RunRecord>): void {
    this.#run = { ...this.#run, ...news };
    writeRun(this.options.out, this.#run);
  }
}

/** What `run.json` says at the beginning. Throws {@link EvaluationError} where options do not go together. */
function describeRun(
  options: EvalLocomoOptions,
  sha256: string,
  conversations: readonly EvaluatedConversation[],
): RunRecord {
  const { layout: layouts, k: ks, policies, retention: retentions, budgetRatio, ingest: how } = options;
  const engine = describeEngine(options);
  const extraction = extractionModel(options);
  const [cpu] = cpus();
  return {
    memstem: VERSION,
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
    data: { file: basename(options.data), sha256 },
    conversations: conversations.map(({ id, conversation, asked }) => ({
      id,
      memories: how === "extract" ? 0 : ingestSteps(conversation, how),
      questions: asked.length,
    })),
    engine,
    judge: judgeOf(options),
    ingest: how,
    categories: [...options.categories],
    limit: options.limit ?? null,
    seed: options.seed,
    warmUpQuestions: options.warmUp ?? (engine.kind === "simulated" ? 0 : 1),
    arms: armsOf({ layouts, ks, policies, retentions, budgetRatio }),
    settings: {
      threshold: THRESHOLD,
      maxTokens: options.maxTokens,
      engineFamily: options.engineFamily,
      engineSlots: options.engineSlots,
      context: options.context ?? null,
      threads: options.threads ?? null,
      cost: costModel(options),
      extract: extraction === null ? null : { url: extraction.url, model: extraction.model },
      salt: randomBytes(12).toString("hex"),
    },
  };
}

function costModel({ cost, engine }: EvalLocomoOptions): EngineModel {
  const read = engineModel.safeParse(cost ?? (engine === "embedded" ? "cpu" : DEFAULT_ENGINE_MODEL));
  if (read.success) return read.data;
  throw new EvaluationError(`--cost: ${read.error.issues[0]?.message ?? "is not valid"}`);
}

function openMemstem(cost: EngineModel, now: () => number): Memstem {
  return new Memstem({
    store: new SqliteStore(openDatabase(":memory:")),
    source: null,
    defaults: { policy: DEFAULT_POLICY, retention: DEFAULT_RETENTION, engine: cost, engineFamily: "generic" },
    engines: ENGINES,
    countTokens: countO200k,
    newRequestId: () => randomUUID() as RequestId,
    now,
  });
}

/** An OpenAI-compatible API that two options name together; null where neither does. */
function apiOf(
  names: readonly [url: string, model: string],
  url: string | undefined,
  model: string | undefined,
): { readonly url: string; readonly model: string } | null {
  if (url === undefined && model === undefined) return null;
  if (url === undefined) throw new EvaluationError(`${names[0]}: is needed with ${names[1]}`);
  if (model === undefined) throw new EvaluationError(`${names[1]}: is needed with ${names[0]}`);
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw new EvaluationError(`${names[0]}: must be an http or https address as http://127.0.0.1:8000/v1`);
  }
  return { url, model };
}

function judgeOf({ judge, judgeModel }: EvalLocomoOptions): { readonly url: string; readonly model: string } | null {
  const named = apiOf(["--judge", "--judge-model"], judge, judgeModel);
  if (named === null) return null;
  // Without what may be a secret in it.
  const { origin, pathname } = new URL(named.url);
  return { url: `${origin}${pathname}`, model: named.model };
}

function openJudgeOf(options: EvalLocomoOptions): Judge | null {
  const { judge: url, judgeModel: model, timeoutMs } = options;
  if (judgeOf(options) === null || url === undefined || model === undefined) return null;
  const apiKey = keyOf("OPENAI_API_KEY");
  return openJudge({ url, model, timeoutMs, ...(apiKey === undefined ? {} : { apiKey }) });
}

function extractionModel(options: EvalLocomoOptions) {
  const named = apiOf(["--extract-url", "--extract-model"], options.extractUrl, options.extractModel);
  if (options.ingest !== "extract") {
    if (named !== null) throw new EvaluationError("--extract-url: means nothing without --ingest extract");
    return null;
  }
  if (named === null) {
    const missing = "Mem0 extracts memories with a language model, and none is named";
    throw new EvaluationError(
      `--ingest extract: ${missing}: give --extract-url and --extract-model, or take --ingest observations or turns, which need none`,
    );
  }
  return { ...named, apiKey: keyOf("OPENAI_API_KEY") };
}

function engineKey(): string | undefined {
  return keyOf("MEMSTEM_UPSTREAM_API_KEY") ?? keyOf("OPENAI_API_KEY");
}

function keyOf(variable: string): string | undefined {
  const key = process.env[variable];
  return key === undefined || key === "" ? undefined : key;
}

/** Each conversation's memories are a user's of its own. */
function scopeOf(conversation: string): Scope {
  return { tenant: "default", userId: conversation as UserId, agentId: null };
}

/** Mem0 does not export its version; its `package.json` lies above what it exports. */
function mem0Version(): string {
  let directory = dirname(createRequire(import.meta.url).resolve("mem0ai"));
  for (; dirname(directory) !== directory; directory = dirname(directory)) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
      const isObject = typeof manifest === "object" && manifest !== null;
      if (isObject && "name" in manifest && manifest.name === "mem0ai" && "version" in manifest)
        return String(manifest.version);
    } catch {
      // Further up.
    }
  }
  return "unknown";
}

/** Aborts with the first SIGINT or SIGTERM; the second one ends the process there and then. */
function stopSignal(): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(STOPPED);
    process.stderr.write("\nmemstem: stopping; once more to stop at once\n");
    controller.abort();
  };
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const name of signals) process.on(name, stop);
  return {
    signal: controller.signal,
    end: () => {
      for (const name of signals) process.off(name, stop);
    },
  };
}

async function withProgress(title: string, total: number, work: (step: () => void) => Promise<void>): Promise<void> {
  if (total === 0) return await work(() => {});
  const bar = progressBar(title, total);
  try {
    await work(() => bar.increment());
  } finally {
    bar.stop();
  }
}

/** What a person can put right is said in a line. */
function sayable(error: unknown): unknown {
  const isSayable =
    error instanceof MemorySourceError ||
    error instanceof UpstreamError ||
    error instanceof EngineAnswerError ||
    error instanceof EmbeddedEngineError;
  return isSayable ? new EvaluationError(error.message) : error;
}
