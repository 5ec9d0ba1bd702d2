import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { pino } from "pino";
import type { ScopeBounds } from "../core/index.js";
import { RecognisedFamily } from "../engines/upstream/engine-family.js";
import { isLoopbackAddress } from "../http/guards/access.js";
import { createApp } from "../http/server/app.js";
import { type HttpSurface, nodeServer } from "../http/server/node-server.js";
import { MemorySourceError, StoreUnavailableError, UpstreamError } from "../service/base/errors.js";
import { systemClock } from "../service/library/memprefix.js";
import { assembleWhereStored, openFollowedEngine, type Waits } from "./assemble.js";
import type { Output } from "./invocation.js";
import { kvEventPackages } from "./kv-events.js";
import { loadMcp } from "./mcp.js";
import { loadO200k } from "./o200k.js";
import { VERSION } from "./package.js";
import { type Settings, variableOf } from "./setting-list.js";
import {
  addressOf,
  DEFAULT_USER_WITH_KEYS,
  hasUnknownFamily,
  leftOutSource,
  sourceOf,
  usageError,
} from "./settings.js";
import { startMessage } from "./start-message.js";
import { startSweeps } from "./sweeps.js";

const NEEDS_A_KEY =
  "without an API key only the loopback is listened on; make one with memprefix keys add, or give one as MEMPREFIX_API_KEY";
const NAME_THE_USER =
  "name it in the header x-memprefix-user, in the body's own field for it, or in a base URL /users/{user}/v1";
const OTHER_API = "use an API that the engine has, or LiteLLM in front of it";
/** Limit for running requests, streams included, after SIGTERM. Docker kills after 10 s. */
export const SHUTDOWN_MS = 8_000;
/** Limit for answers to requests that arrived during the stop. */
const LAST_ANSWERS_MS = 500;
/** Interval at which a stopping service closes idle connections. */
const SWEEP_MS = 20;

/** Values that no setting changes. */
export interface ServiceConstants {
  readonly shutdownMs?: number;
  readonly waits?: Waits;
  readonly scopeBounds?: ScopeBounds;
}

export interface RunningService {
  readonly address: string;
  /** What it works with, a line each. */
  readonly message: readonly string[];
  /** Rejects new requests, finishes running ones within {@link SHUTDOWN_MS}, then closes everything. The rest is cut off. */
  stop(): Promise<void>;
}

/**
 * Starts the service. Rejects where it cannot listen on the address, where the address is not the loopback and there is no API key, and where
 * the database cannot be opened.
 *
 * @param stderr where its log goes
 */
export async function startService(
  settings: Settings,
  stderr: Output,
  { shutdownMs = SHUTDOWN_MS, waits, scopeBounds }: ServiceConstants = {},
): Promise<RunningService> {
  // The process's young generation is for this thread. V8 would give it to every other thread, whatever that one's limit.
  setFlagsFromString("--max-semi-space-size=0");
  // Synchronous for the process's own stderr, so that nothing is lost at its end.
  const written = stderr.fd === undefined ? stderr : pino.destination({ dest: stderr.fd, sync: true });
  const log = pino({ level: settings.logLevel, base: null }, written);
  const onFault = (error: unknown) => log.error({ err: withoutMessage(error) }, "fault");
  const packages = await kvEventPackages(settings);
  const recognised = hasUnknownFamily(settings) ? new RecognisedFamily() : null;
  const assembled = await assembleWhereStored(settings, { scopeBounds, recognised });
  const { memprefix, keys, storedKeys, source, announce } = assembled;
  const hasKey = keys.configured !== undefined || (await storedKeys.list()).some(({ revokedAt }) => revokedAt === null);
  if (!isLoopbackAddress(settings.host) && !hasKey) {
    await memprefix.close();
    throw usageError("MEMPREFIX_HOST", NEEDS_A_KEY);
  }
  if (settings.defaultUser !== undefined && (await keys.any())) {
    await memprefix.close();
    throw usageError(variableOf("defaultUser"), DEFAULT_USER_WITH_KEYS);
  }
  // Before it listens: while `npm ci` replaces a running service's packages, nothing can be loaded.
  loadO200k();
  await source?.load?.().catch((error: unknown) => {
    const reason = reasonOf(error);
    log.error({ reason }, "memory source not loaded");
    memprefix.degraded.failed("memory_search", "the memory source was not loaded", reason);
  });
  memprefix.observe({
    failed: ({ part, cause, isOfRequest }) => log.warn({ part, cause }, isOfRequest ? "refused" : "degraded"),
    recovered: (part) => log.info({ part }, "recovered"),
  });
  let isStopping = false;
  const { chat, stop: stopReadings } = openFollowedEngine(settings, memprefix.cachingEngine, {
    packages,
    waits,
    recognised,
    onFollowed: ({ endpoint }) => log.info({ endpoint }, "events of the engine's cache are followed"),
    onFault,
  });
  if (chat !== null) await recognised?.ask(chat.upstream, (family) => log.info({ family }, "engine recognised"));
  const surface = createApp({
    memprefix,
    keys,
    isStopping: () => isStopping,
    chat,
    mcp: loadMcp,
    version: VERSION,
    webhookToken: settings.webhookToken,
    hasText: settings.dashboardText === "on",
    // Writing it takes as long as much of a compose: after the answer's first bytes.
    onRequest: (entry) => setImmediate(() => log.info(entry, "request")),
    onFault,
    onAbsentRoute: (path) =>
      log.warn({ path: `/v1/${path}`, instead: OTHER_API }, "the engine lacks this route, or what was requested there"),
    onNobody: () => log.warn({ instead: NAME_THE_USER }, "a chat names no user: it gets no memories"),
    clock: () => performance.now(),
  });
  const { server, port } = await listen(surface, settings).catch(async (error: unknown) => {
    // Its sockets would keep the process alive.
    recognised?.stop();
    await stopReadings();
    await memprefix.close();
    throw error;
  });
  const address = addressOf({ ...settings, port });
  announce(address);
  log.info({ address, source: sourceOf(settings), ...placeOf(settings) }, "listening");
  const install = leftOutSource(settings);
  if (install !== null) log.warn({ install }, "no memory source: the embedded Mem0's packages are not installed");
  const stopSweeps = startSweeps(memprefix, { keepDays: settings.keepDays, now: systemClock, onFault });
  memprefix.startWriting(onFault);
  const finishing = new AbortController();
  const finished = memprefix.finishDeletions(onFault, finishing.signal).catch(onFault);
  const underWay = new RequestsUnderWay(server);
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      log.info("stopping");
      isStopping = true;
      const deadline = performance.now() + shutdownMs;
      finishing.abort();
      recognised?.stop();
      await Promise.all([stopSweeps(), stopReadings(), finished]);
      const left = () => Math.max(0, deadline - performance.now());
      // Otherwise a kept connection would stay open, and send requests, until its own timeout.
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
      await underWay.finished(shutdownMs);
      // Until now, new requests were answered that the service is stopping.
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const cut = setTimeout(() => server.closeAllConnections(), Math.min(left(), LAST_ANSWERS_MS));
      await closed;
      clearTimeout(cut);
      clearInterval(sweep);
      await memprefix.close(left());
    })();
    return stopping;
  };
  return { address, message: startMessage(settings, recognised, address), stop };
}

/** Where users' data is, without the credentials that open it. */
function placeOf({ dataDir, databaseUrl }: Settings): { readonly dataDir: string } | { readonly database: string } {
  if (databaseUrl === undefined) return { dataDir };
  const { host, pathname } = new URL(databaseUrl);
  return { database: `postgres://${host}${pathname}` };
}

function reasonOf(error: unknown): string {
  return error instanceof MemorySourceError ? error.message : withoutMessage(error).type;
}

function listen(surface: HttpSurface, settings: Settings): Promise<{ server: Server; port: number }> {
  return new Promise((resolve, reject) => {
    const server = nodeServer(surface, settings.host);
    server.once("error", reject);
    server.listen(settings.port, settings.host, () =>
      resolve({ server, port: (server.address() as AddressInfo).port }),
    );
  });
}

/** Keeps the stack. A message may quote what was being handled, except messages known not to. */
function withoutMessage(error: unknown): { readonly type: string; readonly stack: string; readonly message?: string } {
  if (!(error instanceof Error)) return { type: typeof error, stack: "" };
  const frames = error.stack?.split("\n").filter((line) => /^\s+at /.test(line)) ?? [];
  const isSaid = [StoreUnavailableError, MemorySourceError, UpstreamError].some((kind) => error instanceof kind);
  const said = isSaid ? { message: error.message } : {};
  return { type: error.name, ...said, stack: frames.join("\n") };
}

/** A server's unanswered requests: bounded by its connections. */
class RequestsUnderWay {
  readonly #answers = new Set<ServerResponse>();

  constructor(server: Server) {
    server.prependListener("request", (_request, answer) => {
      this.#answers.add(answer);
      answer.once("close", () => this.#answers.delete(answer));
    });
  }

  /** Resolves when all current requests are answered, or after `maxMs`. Does not wait for later ones. */
  async finished(maxMs: number): Promise<void> {
    const answered = [...this.#answers].map(
      (answer) =>
        new Promise<void>((done) => {
          if (answer.closed) done();
          else answer.once("close", done);
        }),
    );
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, maxMs);
    });
    await Promise.race([Promise.all(answered), tooLate]);
    clearTimeout(timer);
  }
}
