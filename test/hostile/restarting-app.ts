import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { readSettings } from "../../src/cli/settings.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { type StartedApp, startApp } from "../http/server/started-app.js";

/** The app behind an address that stays while it is restarted on its files: before each request, as another process. */
export interface RestartingApp {
  readonly base: string;
  readonly faults: unknown[];
}

export function restartingApp(
  upstream: { readonly url: string },
  environment: Readonly<Record<string, string>> = {},
): RestartingApp {
  const faults: unknown[] = [];
  let dataDir = "";
  let app: StartedApp | null = null;
  let front: Server;
  const restart = async () => {
    // What is stored behind an answer is stored before the process ends.
    await app?.close();
    const settings = readSettings({
      MEMPREFIX_DATA_DIR: dataDir,
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_UPSTREAM_URL: upstream.url,
      ...environment,
    });
    app = await startApp(settings, answeringSource(["Ada likes it warm."]), { log: [], faults });
    return app.base;
  };

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "memprefix-restarts-"));
    front = createServer(async (incoming, response) => {
      const body = Buffer.concat(await incoming.toArray());
      const { method = "", url = "", headers } = incoming;
      const sent = request((await restart()) + url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      });
      sent.end(body);
    });
    await new Promise<void>((listening) => front.listen(0, "127.0.0.1", listening));
  });
  afterEach(async () => {
    front.closeAllConnections();
    await new Promise((closed) => front.close(closed));
    await app?.close();
    app = null;
    await rm(dataDir, { recursive: true });
    faults.length = 0;
  });

  return {
    get base() {
      return `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
    },
    faults,
  };
}
