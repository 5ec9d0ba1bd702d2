import { serve } from "@hono/node-server";
import { pino } from "pino";
import type { EmbeddedEngine } from "../engines/embedded-engine.js";
import { openAiUpstream } from "../engines/embedded-openai.js";
import { embeddedUpstream } from "../engines/embedded-upstream.js";
import { createApp } from "../http/app.js";
import type { Memstem } from "../service/memstem.js";
import { assemble, openChatEngine, openEngineInside } from "./assemble.js";
import type { Settings } from "./settings.js";
import { sourceOf } from "./settings.js";
import { VERSION } from "./version.js";

/** Connections that are still open this long after a stop was asked for are closed. */
const SHUTDOWN_MS = 10_000;
/** While stopping, connections without a request under way are closed this often. */
const SWEEP_MS = 20;

/** A running service. */
export interface RunningService {
  readonly address: string;
  /** Stops taking requests, finishes those under way, closes everything. */
  stop(): Promise<void>;
}

/** Starts the service. Rejects where the address cannot be listened on, or the database or the engine inside cannot be opened. */
export async function startService(settings: Settings): Promise<RunningService> {
  // Synchronous, so that nothing is lost when the process ends.
  const log = pino({ level: settings.logLevel, base: null }, pino.destination({ dest: 2, sync: true }));
  const onFault = (error: unknown) => log.error({ err: withoutMessage(error) }, "fault");
  const inside = await openEngineInside(settings);
  const memstem = await assembled(settings, inside);
  const app = createApp({
    memstem,
    chat: openChatEngine(settings, inside && embeddedUpstream(openAiUpstream(inside, onFault))),
    version: VERSION,
    maxBodyBytes: settings.maxBodyBytes,
    maxBatchBytes: settings.maxBatchBytes,
    onRequest: (entry) => log.info(entry, "request"),
    onFault,
    clock: () => performance.now(),
  });
  const { server, port } = await listen(app, settings).catch(async (error: unknown) => {
    await memstem.close();
    await inside?.close();
    throw error;
  });
  const address = `http://${settings.host.includes(":") ? `[${settings.host}]` : settings.host}:${port}`;
  log.info({ address, source: sourceOf(settings), dataDir: settings.dataDir }, "listening");
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      log.info("stopping");
      const cut = setTimeout(() => "closeAllConnections" in server && server.closeAllConnections(), SHUTDOWN_MS);
      // A kept connection that had a request under way would else stay open, and take more, until its own timeout.
      const sweep = setInterval(() => "closeIdleConnections" in server && server.closeIdleConnections(), SWEEP_MS);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(cut);
      clearInterval(sweep);
      await memstem.close();
      await inside?.close();
    })();
    return stopping;
  };
  return { address, stop };
}

async function assembled(settings: Settings, inside: EmbeddedEngine | null): Promise<Memstem> {
  try {
    return assemble(settings, undefined, inside);
  } catch (error) {
    await inside?.close();
    throw error;
  }
}

type Server = ReturnType<typeof serve>;

function listen(app: ReturnType<typeof createApp>, settings: Settings): Promise<{ server: Server; port: number }> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, hostname: settings.host, port: settings.port }, ({ port }) =>
      resolve({ server, port }),
    );
    server.once("error", reject);
  });
}

/** A stack says where; a message may quote what was being handled. */
function withoutMessage(error: unknown): { readonly type: string; readonly stack: string } {
  if (!(error instanceof Error)) return { type: typeof error, stack: "" };
  const frames = error.stack?.split("\n").filter((line) => /^\s+at /.test(line)) ?? [];
  return { type: error.name, stack: frames.join("\n") };
}
