import type { AddressInfo } from "node:net";
import { type AssembledService, assembleWhereStored, openChatEngine } from "../../../src/cli/assemble.js";
import { loadMcp } from "../../../src/cli/mcp.js";
import type { Settings } from "../../../src/cli/setting-list.js";
import type { UpstreamOptions } from "../../../src/engines/upstream/upstream.js";
import type { RequestLog } from "../../../src/http/requests/request.js";
import { createApp, type HttpParts } from "../../../src/http/server/app.js";
import { nodeServer } from "../../../src/http/server/node-server.js";
import type { MemorySource } from "../../../src/memory/memory-source.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";

/** Between two looks for connections that became idle while the server closes: clients keep theirs for seconds. */
const SWEEP_MS = 20;
/** Until connections on which no request ever came are closed: to Node they are not idle, and clients open one in place of one that they break. */
const CUT_MS = 200;

/** The app on a socket, for tests that take it away themselves. */
export interface StartedApp {
  readonly memprefix: Memprefix;
  readonly base: string;
  close(): Promise<void>;
}

/** Times and limits that no setting has. */
export type ShortTimes = Partial<Pick<UpstreamOptions, "after" | "idleMs" | "timeoutMs">> &
  Pick<HttpParts, "limits"> & { readonly composeTimeoutMs?: number };

/** Serves the app. What it logs, and what goes wrong in it, is put where the third argument says. */
export async function startApp(
  settings: Settings,
  source: MemorySource | null,
  { log, faults }: { readonly log: RequestLog[]; readonly faults: unknown[] },
  assembled: Pick<AssembledService, "memprefix" | "keys"> | null = null,
  { composeTimeoutMs, limits = {}, ...waits }: ShortTimes = {},
): Promise<StartedApp> {
  const { memprefix, keys } = assembled ?? (await assembleWhereStored(settings, { source }));
  const chat = openChatEngine(settings, waits);
  const surface = createApp({
    limits,
    memprefix,
    keys,
    isStopping: () => false,
    chat: chat && composeTimeoutMs !== undefined ? { ...chat, composeTimeoutMs } : chat,
    mcp: loadMcp,
    version: "1.2.3",
    webhookToken: settings.webhookToken,
    hasText: settings.dashboardText === "on",
    onRequest: (entry) => log.push(entry),
    onFault: (error) => faults.push(error),
    clock: () => performance.now(),
  });
  return new Promise((resolve) => {
    const server = nodeServer(surface, "127.0.0.1");
    server.listen(0, "127.0.0.1", () =>
      resolve({
        memprefix,
        base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        async close() {
          const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
          const cut = setTimeout(() => server.closeAllConnections(), CUT_MS);
          await new Promise((closed) => server.close(closed));
          clearInterval(sweep);
          clearTimeout(cut);
          await memprefix.close();
        },
      }),
    );
  });
}
