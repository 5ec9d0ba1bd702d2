import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { begin, type Ended } from "../cli/memprefix-command.js";
import type { Begun } from "../cli/own-directories.js";
import { temporaryFolder } from "../temporary-folders.js";

/** The service, as a reader of the documentation starts it: with its data in an empty folder, and no settings but its port. */
export interface RunningService {
  /** The folder. */
  readonly directory: string;
  readonly port: string;
}

/** Starts it before the tests of a suite, and takes it and its files away after. */
export function runningService(): RunningService {
  const directory = temporaryFolder();
  let service: Begun<Ended> | undefined;
  let port = "";

  beforeAll(async () => {
    const dataDir = join(directory, "memprefix-data");
    service = begin(["serve"], { MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_PORT: "0", MEMPREFIX_LOG_LEVEL: "silent" });
    port = await service.printed(/ listens on \S+:(\d+)\n/);
  });
  afterAll(async () => {
    service?.kill("SIGTERM");
    await service?.ended;
  });

  return {
    directory,
    get port() {
      return port;
    },
  };
}
