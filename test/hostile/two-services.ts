import { afterEach, beforeEach } from "vitest";
import { readSettings } from "../../src/cli/settings.js";
import { type FullExchange, sendWith } from "../http/guards/callers.js";
import type { OpenAiEngine } from "../http/routes/openai-engine.js";
import { type StartedApp, startApp } from "../http/server/served-app.js";
import { temporaryFolders } from "../temporary-folders.js";
import { type OwnedMemories, ownedMemories } from "./owned-memories.js";

/** One of two services on one directory. */
interface Service {
  send(method: string, path: string, body?: unknown): Promise<FullExchange>;
  /** A chat of user "ada". */
  chat(content: string, more?: object): Promise<FullExchange>;
}

/** Two services on one directory, which share a memory source; fresh ones for every test. */
export interface TwoServices {
  readonly one: Service;
  readonly other: Service;
  readonly source: OwnedMemories;
  readonly faults: unknown[];
  /** What the source has. */
  keptTexts(): string[];
  /** Ends both and starts one anew, as if they had been killed. */
  restart(): Promise<void>;
}

export function twoServices(engine: OpenAiEngine, environment: Readonly<Record<string, string>> = {}): TwoServices {
  const faults: unknown[] = [];
  const newFolder = temporaryFolders();
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
    dataDir = newFolder();
    source = ownedMemories();
    await start();
    await start();
  });
  afterEach(async () => {
    await close();
    faults.length = 0;
  });
  return {
    one: serviceAt(0),
    other: serviceAt(1),
    faults,
    get source() {
      return source;
    },
    keptTexts: () => source.kept.map(({ text }) => text),
    async restart() {
      await close();
      const { memprefix } = await start();
      await memprefix.finishDeletions((error) => faults.push(error), new AbortController().signal);
    },
  };
}
