import { setMaxListeners } from "node:events";
import { type ConversationId, DEFAULT_ENGINE_MODEL, ENGINE_MODELS, type UserId } from "../core/index.js";
import { openUpstream, UpstreamError } from "../engines/upstream/upstream.js";
import { EvaluationError } from "../eval/base/run-files.js";
import { EngineAnswerError, jsonSender } from "../eval/engine/upstream-engine.js";
import { answerScorer } from "../eval/facts/answer-odds.js";
import { FACT_CASES } from "../eval/facts/fact-cases.js";
import { type ComposeTurn, UNTRUSTED } from "../eval/facts/fact-prompts.js";
import { type FactResults, factTables, measureFacts } from "../eval/facts/facts.js";
import { composeRequest } from "../service/compose/compose-request.js";
import type { Memprefix } from "../service/library/memprefix.js";
import { openMeasuredMemprefix } from "./assemble.js";
import { ENGINE_TIMEOUT_MS, engineKey } from "./eval-settings.js";
import { type Invocation, STOPPED, stopSignal } from "./invocation.js";
import { withProgress } from "./progress.js";

export interface EvalFactsOptions {
  readonly engine: string;
  readonly model: string;
  readonly limit: number;
}

/** Gives the exit code; a stopped run is reported too. Throws `EvaluationError`. */
export async function runEvalFacts(options: EvalFactsOptions, call: Invocation): Promise<number> {
  const { engine, model, limit } = options;
  if (!URL.canParse(engine) || !/^https?:/.test(engine))
    throw new EvaluationError("--engine: must be an http or https address as http://127.0.0.1:8000/v1");
  const stop = stopSignal(call);
  // All prompts of a case are sent at once.
  setMaxListeners(0, stop.signal);
  const apiKey = engineKey(call.env);
  const send = jsonSender(openUpstream({ url: engine, apiKey, timeoutMs: ENGINE_TIMEOUT_MS }), stop.signal);
  const memprefix = openMeasuredMemprefix(
    ENGINE_MODELS[DEFAULT_ENGINE_MODEL],
    () => 0,
    undefined,
    new Set([UNTRUSTED]),
  );
  const cases = FACT_CASES.slice(0, limit);
  let results: FactResults | null = null;
  try {
    await withProgress(call.stderr, "asking", cases.length, async (step) => {
      for await (results of measureFacts({ cases, open: opener(memprefix), score: answerScorer(send, model) })) step();
    });
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return STOPPED;
    if (error instanceof UpstreamError || error instanceof EngineAnswerError) throw new EvaluationError(error.message);
    throw error;
  } finally {
    if (results !== null) call.print(factTables(results));
    stop.end();
    await memprefix.close();
  }
}

/** Each conversation is a user's own. */
function opener(memprefix: Memprefix): () => ComposeTurn {
  let users = 0;
  return () => {
    const userId = `facts-${users++}` as UserId;
    return async ({ messages, memories }, annotations) => {
      const conversationId = "facts" as ConversationId;
      const request = composeRequest({ userId, conversationId, messages, memories, annotations, retention: "keep" });
      return (await memprefix.compose(request)).messages;
    };
  };
}
