import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { openEmbeddedEngine } from "../engines/embedded/embedded-engine.js";
import { openAiUpstream } from "../engines/embedded/embedded-openai.js";
import { MODEL_SHAPES, type ModelSize, writeRandomModel } from "../engines/random-model/random-model.js";
import { BODY_RATE, receiveBody, refuseUnsafeBody } from "../http/guards/body.js";
import { answerProblem, isFault, problemOf, SlowBodyError } from "../http/problems/problem.js";
import type { HttpEnvironment } from "../http/requests/request.js";

/** Options of `memprefix engine random-model`. */
export interface RandomModelOptions {
  readonly size: ModelSize;
  readonly out: string;
  readonly seed: number;
}

/** Writes a model with random weights and says what it is. Rejects where the file exists already or cannot be written. */
export async function runRandomModel(options: RandomModelOptions, print: (line: string) => void): Promise<void> {
  const { size, out, seed } = options;
  const { bytes, parameters } = await writeRandomModel(out, { name: size, shape: MODEL_SHAPES[size], seed });
  const [millions, megabytes] = [parameters, bytes].map((number) => Math.round(number / 1e6));
  print(`${out}: ${millions} million random parameters, ${megabytes} MB; its text is noise`);
}

/** Options of `memprefix engine serve`. */
export interface ServeEngineOptions {
  readonly model: string;
  readonly host: string;
  readonly port: number;
  readonly slots: number;
  /** Tokens of a prompt with its answer; default: the model's, at most 8,192. */
  readonly context?: number;
  readonly threads?: number;
}

/** An engine that listens. */
export interface RunningEngine {
  readonly address: string;
  stop(): Promise<void>;
}

const MAX_BODY_BYTES = 16 * 1024 * 1024;

/**
 * Serves the engine inside by itself, as an OpenAI-compatible server. Bodies keep to the service's limits. Rejects where it cannot be
 * started (`EmbeddedEngineError`) or the address cannot be listened on.
 */
export async function serveEngine(
  options: ServeEngineOptions,
  onFault: (error: unknown) => void,
  rate = BODY_RATE,
): Promise<RunningEngine> {
  const { model: modelPath, host, port, slots, context: contextTokens, threads } = options;
  const engine = await openEmbeddedEngine({ modelPath, slots, contextTokens, threads });
  const answer = openAiUpstream(engine, onFault);
  const app = new Hono<HttpEnvironment>();
  app.use(receiveBody({ maxBytes: MAX_BODY_BYTES, rate, clock: () => performance.now(), onTooLarge: () => {} }));
  app.use(refuseUnsafeBody);
  app.onError((error, c) => {
    const value = problemOf(error);
    if (isFault(error, value) && !c.req.raw.signal.aborted) onFault(error);
    return answerProblem(c, value, { error, headers: error instanceof SlowBodyError ? { connection: "close" } : {} });
  });
  app.all("*", ({ req }) => answer(req.raw));
  try {
    return await new Promise<RunningEngine>((resolve, reject) => {
      const server = serve({ fetch: app.fetch, hostname: host, port }, ({ port }) => {
        const stop = async () => {
          // First the answers, which end their connections, so that the server can.
          await engine.close();
          if ("closeAllConnections" in server) server.closeAllConnections();
          await new Promise<void>((closed) => server.close(() => closed()));
        };
        resolve({ address: `http://${host.includes(":") ? `[${host}]` : host}:${port}`, stop });
      });
      server.once("error", reject);
    });
  } catch (error) {
    await engine.close();
    throw error;
  }
}
