import { spawn } from "node:child_process";
import { type Environment, type Invocation, untilStopped } from "./invocation.js";
import { readSettings } from "./settings.js";

/** What opens an address in the user's browser, by system. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  // The first argument in quotes would be the window's title.
  win32: ["cmd", "/c", "start", ""],
};

/**
 * Serves the dashboard on a directory's data, on a free port of the loopback, opens its try-it view in the browser, and resolves when the
 * process got a signal to end and the service has stopped.
 */
export async function showDemoPage(dataDir: string, { env, print, signals, stderr }: Invocation): Promise<void> {
  const stopped = untilStopped(signals);
  const { startService } = await import("./serve.js");
  const settings = { MEMSTEM_DATA_DIR: dataDir, MEMSTEM_SOURCE: "none", MEMSTEM_PORT: "0", MEMSTEM_LOG_LEVEL: "warn" };
  const service = await startService(readSettings(settings), stderr);
  const address = `${service.address}/dashboard#/try`;
  print(`\nThe dashboard is at ${address}\nCtrl-C ends it, and deletes the demo's data.`);
  openInBrowser(address, env);
  await stopped;
  await service.stop();
}

/** Opens an address in the browser, if the machine has one: whoever has none was shown the address. */
function openInBrowser(address: string, env: Environment): void {
  const [command, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const opener = spawn(command, [...args, address], { stdio: "ignore", detached: true, env });
  opener.once("error", () => {});
  opener.unref();
}
