import { createMemprefixClient } from "../../src/client/index.js";
import type { Composing } from "../../src/integrations/composing.js";
import { launch, listening } from "../cli/launch.js";
import { SERVES } from "../cli/own-directories.js";

/** A service in a process of its own, as adapters call it over HTTP. */
export interface RemoteMemprefix {
  readonly memprefix: Composing;
  close(): Promise<void>;
}

/** Starts a built service that searches nowhere, and keeps its files in this folder. */
export async function remoteMemprefix(dataDir: string): Promise<RemoteMemprefix> {
  const service = launch(["serve"], { PATH: process.env["PATH"] ?? "", ...SERVES, MEMPREFIX_DATA_DIR: dataDir });
  return {
    memprefix: createMemprefixClient({ url: await listening(service) }),
    async close() {
      service.child.kill();
      await service.ended;
    },
  };
}
