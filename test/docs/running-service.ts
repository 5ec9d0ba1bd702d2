import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { endingWithUs } from "../ending-children.js";
import { ROOT } from "./pages.js";

/** The built service, as a reader of the documentation starts it: in an empty folder, with no settings but its port. */
export interface RunningService {
  /** The folder. */
  readonly directory: string;
  readonly port: string;
}

/** Starts it before the tests of a suite, and takes it and its files away after. */
export function runningService(): RunningService {
  const directory = mkdtempSync(join(tmpdir(), "memstem-docs-"));
  let service: ChildProcess | undefined;
  let port = "";

  beforeAll(async () => {
    service = spawn("node", [join(ROOT, "dist/cli/main.js"), "serve"], {
      cwd: directory,
      env: { ...process.env, MEMSTEM_PORT: "0", MEMSTEM_LOG_LEVEL: "silent" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    endingWithUs(service);
    const [line] = await once(service.stdout ?? service, "data");
    port = /:(\d+)\s*$/.exec(String(line))?.[1] ?? "";
  });
  afterAll(async () => {
    service?.kill();
    if (service?.exitCode === null) await once(service, "exit");
    rmSync(directory, { recursive: true, force: true });
  });

  return {
    directory,
    get port() {
      return port;
    },
  };
}
