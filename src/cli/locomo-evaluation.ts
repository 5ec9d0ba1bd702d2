import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Scope, UserId } from "../core/index.js";
import { EvaluationError, JsonLines, writeRun, writeWhole } from "../eval/base/run-files.js";
import {
  type EngineIdentity,
  type QuestionRecord,
  questionRecord,
  type RunRecord,
  recordKey,
} from "../eval/base/run-record.js";
import type { MeasuredEngine } from "../eval/engine/measured-engine.js";
import { findKeptMemories, givenMemories, ingest, type KeptMemories, timedMemories } from "../eval/locomo/ingesting.js";
import type { EvaluatedConversation } from "../eval/locomo/locomo-data.js";
import { RecordedSearches, writeTraces } from "../eval/locomo/recorded-searches.js";
import { renderReport } from "../eval/report/report.js";
import { type ConversationRun, type RunParts, runConversation } from "../eval/run/run-conversation.js";
import type { Judge } from "../eval/scores/judge.js";
import { openEmbeddedMem0 } from "../memory/embedded-mem0.js";
import { withDeadline } from "../memory/memory-source.js";
import { openMeasuredMemprefix } from "./assemble.js";
import type { EvalLocomoOptions } from "./eval-options.js";
import { costModel, engineKey, openMeasuredEngine, THRESHOLD } from "./eval-settings.js";
import { type Invocation, type Output, STOPPED } from "./invocation.js";
import { countO200k } from "./o200k.js";
import { withProgress } from "./progress.js";

const ALL_FAILED = 3;

const SEARCH_MS = 120_000;
const WRITE_MS = 600_000;

/** One run, with the files that it writes. */
export class LocomoEvaluation {
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

  async run(call: Invocation): Promise<number> {
    try {
      if (this.#left() > 0) await this.#finish(call);
      if (this.#run.finishedAt === null) this.#note({ finishedAt: new Date().toISOString() });
    } catch (error) {
      // Stopped: a partial run is reported too, and --resume continues it.
      if (!this.signal.aborted) throw error;
    } finally {
      this.#results.close();
      this.#searches.close();
    }
    return this.#report(call.print);
  }

  #left(): number {
    const asked = this.conversations.reduce((sum, { asked }) => sum + asked.length, 0);
    return asked * this.#run.arms.length - this.#records.length;
  }

  async #finish(call: Invocation): Promise<void> {
    const salt = String(this.#run.settings?.["salt"]);
    const engine = openMeasuredEngine(this.options, { salt, apiKey: engineKey(call.env) });
    // First, because it is quick, and adding memories may take hours.
    this.#recordServed(await engine.check(this.signal));
    await this.#ask(engine, await this.#search(call.stderr), call.stderr);
  }

  /** Throws {@link EvaluationError} where the run was begun on other weights or another version. */
  #recordServed(served: EngineIdentity | null): void {
    const { engine } = this.#run;
    if (engine.served !== null && !isDeepStrictEqual(engine.served, served)) {
      const [before, now] = [engine.served, served].map((one) => JSON.stringify(one));
      throw new EvaluationError(`--resume: the engine served ${before} when the run was begun, and now ${now}`);
    }
    this.#note({ engine: { ...engine, served } });
  }

  /**
   * Adds missing memories to Mem0, makes missing searches, and writes the traces. Resolves to the memories as prompts give them, by
   * conversation id. Rejects with the signal's reason.
   */
  async #search(stderr: Output): Promise<ReadonlyMap<string, KeptMemories>> {
    const { out, k: ks, ingest: how, times } = this.options;
    const kept = new Map<string, KeptMemories>();
    for (const { id } of this.conversations) {
      const known = findKeptMemories(out, id);
      if (known !== null) kept.set(id, known);
    }
    const mem0 = openEmbeddedMem0({ dataDir: out, threshold: THRESHOLD });
    const source = withDeadline(mem0, { searchMs: SEARCH_MS, writeMs: WRITE_MS });
    try {
      const missing = this.conversations.filter(({ id }) => !kept.has(id));
      const steps = missing.reduce((sum, { conversation }) => sum + givenMemories(conversation, how).length, 0);
      await withProgress(stderr, "loading memories", steps, async (step) => {
        for (const { id, conversation } of missing) {
          const given = { conversation, how, directory: out };
          kept.set(id, await ingest(source, scopeOf(id), given, this.signal, step));
        }
      });
      const unsearched = this.conversations.flatMap(({ id, asked }) =>
        asked.flatMap(({ at }) => ks.filter((k) => this.#searches.find(id, at, k) === undefined)),
      ).length;
      await withProgress(stderr, "searching", unsearched, async (step) => {
        for (const conversation of this.conversations) {
          const given = { memories: kept.get(conversation.id) ?? [], ks };
          await this.#searches.complete(source, scopeOf(conversation.id), conversation, given, this.signal, step);
        }
      });
    } finally {
      await source.close();
    }
    const given = times ? new Map([...kept].map(([id, memories]) => [id, timedMemories(memories)])) : kept;
    for (const conversation of this.conversations) {
      writeTraces(out, conversation, { memories: given.get(conversation.id) ?? [], searches: this.#searches, ks });
    }
    return given;
  }

  /** Runs the remaining questions of all conversations, one after the other. Rejects with the signal's reason. */
  async #ask(engine: MeasuredEngine, memories: ReadonlyMap<string, KeptMemories>, stderr: Output): Promise<void> {
    const { arms, warmUpQuestions } = this.#run;
    const cost = costModel(this.options);
    const parts: RunParts = {
      arms,
      engine,
      judge: this.judge,
      countTokens: countO200k,
      openMemprefix: (now) => openMeasuredMemprefix(cost, now),
    };
    const recorded = new Map(
      this.#records.map((record) => [recordKey(record.arm, record.conversation, record.question), record]),
    );
    // A real engine's cache may be gone since the run stopped; or the question that was in flight may be cached whole.
    const mayBeCold = recorded.size > 0 && engine.losesCache;
    const coldArms = new Set(mayBeCold ? arms.map(({ id }) => id) : []);
    await withProgress(stderr, "asking", this.#left(), async (step) => {
      const onRecord = (record: QuestionRecord) => {
        this.#results.append(record);
        this.#records.push(record);
        step();
      };
      for (const [place, conversation] of this.conversations.entries()) {
        const { id, asked } = conversation;
        if (asked.every(({ at }) => arms.every((arm) => recorded.has(recordKey(arm.id, id, at))))) continue;
        const run: ConversationRun = {
          conversation,
          memories: memories.get(id) ?? [],
          searches: this.#searches,
          // An engine warms up once: a conversation's own cold start is measured.
          warmUpQuestions: place === 0 ? warmUpQuestions : 0,
          coldArms,
          recorded,
          onRecord,
        };
        await runConversation(parts, run, this.signal);
      }
    });
  }

  #report(print: (line: string) => void): number {
    const { out } = this.options;
    const { whole, summary } = renderReport(this.#run, this.#records);
    writeWhole(join(out, "report.md"), whole);
    print(`${summary}\n`);
    const failed = this.#records.filter(({ outcome }) => outcome === "failed").length;
    if (failed > 0) print(`${failed} of ${this.#records.length} prompts failed; results.jsonl says how.`);
    const unjudged = this.#records.filter(
      (record) => record.outcome === "answered" && record.judge !== null && record.judge.isCorrect === null,
    ).length;
    if (unjudged > 0) print(`The judge gave no verdict on ${unjudged} answers; results.jsonl says why.`);
    print(`${join(out, "report.md")}, results.jsonl, run.json`);
    if (this.#run.finishedAt === null) {
      print(`Stopped with ${this.#left()} prompts left; the same command with --resume continues.`);
      return STOPPED;
    }
    return failed > 0 && failed === this.#records.length ? ALL_FAILED : 0;
  }

  #note(news: Partial<RunRecord>): void {
    this.#run = { ...this.#run, ...news };
    writeRun(this.options.out, this.#run);
  }
}

/** Each conversation is a user of its own. */
function scopeOf(conversation: string): Scope {
  return { tenant: "default", userId: conversation as UserId, agentId: null };
}
