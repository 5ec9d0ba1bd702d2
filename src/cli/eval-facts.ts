import { setMaxListeners } from "node:events";
import { z } from "zod";
import { type ConversationId, DEFAULT_ENGINE_MODEL, ENGINE_MODELS, type UserId } from "../core/index.js";
import { openUpstream, UpstreamError } from "../engines/upstream/upstream.js";
import { EvaluationError, JsonLines } from "../eval/base/run-files.js";
import { EngineAnswerError, jsonSender } from "../eval/engine/upstream-engine.js";
import { answerScorer } from "../eval/facts/answer-odds.js";
import { FACT_CASES } from "../eval/facts/fact-cases.js";
import { type ComposeTurn, UNTRUSTED } from "../eval/facts/fact-prompts.js";
import { factRow, factTables, measureFact } from "../eval/facts/facts.js";
import { composeRequest } from "../service/compose/compose-request.js";
import type { Memprefix } from "../service/library/memprefix.js";
import { openMeasuredMemprefix } from "./assemble.js";
import { addressIn, ENGINE_TIMEOUT_MS, engineKey } from "./eval-settings.js";
import { type Invocation, STOPPED, stopSignal } from "./invocation.js";
import { withProgress } from "./progress.js";

export interface EvalFactsOptions {
  readonly engine: string;
  readonly model: string;
  readonly limit: number;
  readonly out?: string;
}

/** Gives the exit code; a stopped run is reported too. Throws `UsageError` or `EvaluationError`. */
export async function runEvalFacts(options: EvalFactsOptions, call: Invocation): Promise<number> {
  const { engine, model, limit, out } = options;
  addressIn("--engine", engine);
  const lines = out === undefined ? null : new JsonLines(out, factRow.extend({ model: z.literal(model) }));
  const rows = (lines?.kept ?? []).filter((row) => row.case < limit);
  const missing = [...FACT_CASES.slice(0, limit).entries()].filter(([at]) => rows.every((row) => row.case !== at));
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
  const parts = { model, open: opener(memprefix), score: answerScorer(send, model) };
  try {
    await withProgress(call.stderr, "asking", missing.length, async (step) => {
      for (const [at, fact] of missing) {
        const row = await measureFact(at, fact, parts);
        lines?.append(row);
        rows.push(row);
        step();
      }
    });
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return STOPPED;
    if (error instanceof UpstreamError || error instanceof EngineAnswerError) throw new EvaluationError(error.message);
    throw error;
  } finally {
    if (rows.length > 0) call.print(factTables(rows));
    lines?.close();
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
