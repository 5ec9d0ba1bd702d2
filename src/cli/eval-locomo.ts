import { UpstreamError } from "../engines/upstream/upstream.js";
import { beginRun, EvaluationError } from "../eval/base/run-files.js";
import { EngineAnswerError } from "../eval/engine/upstream-engine.js";
import { MemorySourceError } from "../memory/memory-source.js";
import { makeDirectory } from "./data-directory.js";
import { pickedData } from "./eval-data.js";
import type { EvalLocomoOptions } from "./eval-options.js";
import { describeRun, openNamedJudge } from "./eval-settings.js";
import { type Invocation, stopSignal } from "./invocation.js";
import { needEmbeddedMem0 } from "./package.js";

/** Runs or resumes an evaluation and returns the exit code. A stopped run is reported too. Throws `UsageError` or `EvaluationError`. */
export async function runEvalLocomo(options: EvalLocomoOptions, call: Invocation): Promise<number> {
  needEmbeddedMem0("eval");
  const stop = stopSignal(call);
  try {
    const picked = pickedData(options);
    const { conversations } = picked;
    const wanted = describeRun(options, picked);
    const judge = openNamedJudge(options, call.env);
    makeOut(options.out);
    const run = beginRun(options.out, wanted, options.resume ?? false);
    // Loaded after everything that can reject a run, because loading takes as long as all of that.
    const { LocomoEvaluation } = await import("./locomo-evaluation.js");
    return await new LocomoEvaluation(options, run, conversations, judge, stop.signal).run(call);
  } catch (error) {
    throw sayable(error);
  } finally {
    stop.end();
  }
}

/** Throws {@link EvaluationError}. */
function makeOut(directory: string): void {
  try {
    makeDirectory(directory);
  } catch (error) {
    throw new EvaluationError(`--out ${directory}: ${(error as Error).message}`);
  }
}

/** An error that the caller can fix, as one line. */
function sayable(error: unknown): unknown {
  const isSayable =
    error instanceof MemorySourceError || error instanceof UpstreamError || error instanceof EngineAnswerError;
  return isSayable ? new EvaluationError(error.message) : error;
}
