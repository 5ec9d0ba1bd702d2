import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { describe } from "vitest";

/** Debian's; the one without windows takes half the time. */
const DEBIANS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** The Chromium that the environment names, or Debian's; null where there is none. */
const EXECUTABLE = [process.env["CHROMIUM"], ...DEBIANS].find((path) => path !== undefined && existsSync(path)) ?? null;

/** Describes what a real browser shows; skipped, and said so, where none is installed. */
export function describeInChromium(title: string, tests: () => void): void {
  if (EXECUTABLE === null) describe.skip(`${title} (skipped: no Chromium at ${DEBIANS.join(" or ")})`, tests);
  else describe(`${title}, in Chromium`, tests);
}

/** Starts the browser, without what it does on its own. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE ?? "",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}
