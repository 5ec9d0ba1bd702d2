import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createMemstemClient } from "../../src/client/index.js";
import type { Composing } from "../../src/integrations/composing.js";
import { endingWithUs } from "../ending-children.js";

const PROGRAM = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** A service in a process of its own, as adapters call it over HTTP. */
export interface RemoteMemstem {
  readonly memstem: Composing;
  close(): Promise<void>;
}

/** Starts a service that searches nowhere, and keeps its files in this folder. */
export async function remoteMemstem(dataDir: string): Promise<RemoteMemstem> {
  const settings = {
    MEMSTEM_PORT: "0",
    MEMSTEM_LOG_LEVEL: "silent",
    MEMSTEM_SOURCE: "none",
    MEMSTEM_DATA_DIR: dataDir,
  };
  const service = endingWithUs(
    spawn(process.execPath, ["--import", import.meta.resolve("tsx"), PROGRAM, "serve"], {
      env: { PATH: process.env["PATH"] ?? "", ...settings },
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
  const [line] = await once(service.stdout ?? service, "data");
  const port = /:(\d+)\s*$/.exec(String(line))?.[1] ?? "";
  return {
    memstem: createMemstemClient({ url: `http://127.0.0.1:${port}` }),
    async close() {
      service.kill();
      if (service.exitCode === null) await once(service, "exit");
    },
  };
}
