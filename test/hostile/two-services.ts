import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { readSettings } from "../../src/cli/settings.js";
import { type FullExchange, sendWith } from "../http/guards/callers.js";
import type { OpenAiEngine } from "../http/routes/openai-engine.js";
import { type StartedApp, startApp } from "../http/server/served-app.js";
import { type OwnedMemories, ownedMemories } from "./owned-memories.js";

/** One of two services on one directory. */
export interface Service {
  send(method: string, path: string, body?: unknown): Promise<FullExchange>;
  /** A chat of user "ada". */
  chat(content: string, more?: object): Promise<FullExchange>;
}

/** Two services on one directory, which share a memory source; fresh ones for every test. */
export interface TwoServices {
  readonly one: Service;
  readonly other: Service;
  readonly dataDir: string;
  readonly source: OwnedMemories;
  readonly faults: unknown[];
  /** Ends both and starts one anew, as if they had been killed. */
  restart(): Promise<Service>;
}

export function twoServices(engine: OpenAiEngine, environment: Readonly<Record<string, string>> = {}): TwoServices {
  const faults: unknown[] = [];
  let dataDir = "";
  let source = ownedMemories();
  let apps: StartedApp[] = [];
  const start = async () => {
    const settings = readSettings({
      MEMPREFIX_DATA_DIR: dataDir,
      MEMPREFIX_SOURCE: "embedded",
      MEMPREFIX_UPSTREAM_URL: engine.url,
      ...environment,
    });
    const app = await startApp(settings, source, { log: [], faults });
    apps.push(app);
    return app;
  };
  const serviceAt = (at: number): Service => {
    const send = async (method: string, path: string, body?: unknown) =>
      sendWith({ base: apps[at]?.base ?? "" }, {}, method, path, body);
    const chat = (content: string, more: object = {}) =>
      send("POST", "/v1/chat/completions", { user: "ada", messages: [{ role: "user", content }], ...more });
    return { send, chat };
  };
  const close = async () => {
    // One after the other: from source, both write their usage in this thread, and one that waits for the other's lock blocks it.
    for (const app of apps) await app.close();
    apps = [];
  };
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "memprefix-two-"));
    source = ownedMemories();
    await start();
    await start();
  });
  afterEach(async () => {
    await close();
    await rm(dataDir, { recursive: true });
    faults.length = 0;
  });
  return {
    one: serviceAt(0),
    other: serviceAt(1),
    faults,
    get dataDir() {
      return dataDir;
    },
    get source() {
      return source;
    },
    async restart() {
      await close();
      const { memprefix } = await start();
      await memprefix.finishDeletions((error) => faults.push(error), new AbortController().signal);
      return serviceAt(0);
    },
  };
}
