import { spawn } from "node:child_process";
import { readSettings } from "./settings.js";

/** What opens an address in the user's browser, by system. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  // The first argument in quotes would be the window's title.
  win32: ["cmd", "/c", "start", ""],
};

/**
 * Serves the dashboard on a directory's data, on a free port of the loopback, opens its try-it view in the browser, and resolves when the
 * process was told to end and the service has stopped.
 */
export async function showDemoPage(dataDir: string, print: (line: string) => void): Promise<void> {
  const told = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  const { startService } = await import("./serve.js");
  const settings = { MEMSTEM_DATA_DIR: dataDir, MEMSTEM_SOURCE: "none", MEMSTEM_PORT: "0", MEMSTEM_LOG_LEVEL: "warn" };
  const service = await startService(readSettings(settings));
  const address = `${service.address}/dashboard#/try`;
  print(`\nThe dashboard is at ${address}\nCtrl-C ends it, and deletes the demo's data.`);
  openInBrowser(address);
  await told;
  await service.stop();
}

/** Opens an address in the browser, if the machine has one: whoever has none was shown the address. */
function openInBrowser(address: string): void {
  const [command, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const opener = spawn(command, [...args, address], { stdio: "ignore", detached: true });
  opener.once("error", () => {});
  opener.unref();
}
