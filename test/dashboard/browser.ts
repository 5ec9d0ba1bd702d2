import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll } from "vitest";
import { z } from "zod";
import { launchChromium } from "../chromium.js";
import { onDemand } from "../on-demand.js";

/** A page, and what happened in it. */
export interface OpenedPage {
  readonly page: Page;
  /** Addresses that it asked for. */
  readonly asked: readonly string[];
  /** Errors of scripts, of the console, and what the page's policy rejected. */
  readonly problems: readonly string[];
}

/** Opens pages in one browser for the file; each page has a profile of its own, which ends with its test. */
export function browserPages(): { open(address: string, options?: BrowserContextOptions): Promise<OpenedPage> } {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  afterAll(() => browser.close());
  return {
    async open(address, options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB", ...options });
      const page = await context.newPage();
      page.setDefaultTimeout(20_000);
      const asked: string[] = [];
      const problems: string[] = [];
      page.on("request", (request) => asked.push(request.url()));
      page.on("pageerror", ({ message }) => problems.push(message));
      page.on("console", (message) => {
        if (message.type() === "error") problems.push(message.text());
      });
      await page.goto(address);
      return { page, asked, problems };
    },
  };
}

const findings = z.object({
  violations: z.array(
    z.object({
      id: z.string(),
      impact: z.string().nullable(),
      nodes: z.array(z.object({ target: z.array(z.unknown()), failureSummary: z.string().optional() })),
    }),
  ),
});

async function axe(): Promise<string> {
  return readFileSync(join(await onDemand("axe-core", "4.14.1"), "axe.min.js"), "utf8");
}

/**
 * What axe finds in a page that keeps people from using it: its findings of impact serious and critical.
 *
 * @param rule the one that is tried, where the page was tried by all of them before
 */
export async function seriousFindings(page: Page, rule?: "color-contrast"): Promise<readonly string[]> {
  // Evaluated by the debugger, which the page's policy does not concern.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(await axe());
  const options = JSON.stringify({ resultTypes: ["violations"], ...(rule === undefined ? {} : { runOnly: [rule] }) });
  const { violations } = findings.parse(await page.evaluate(`axe.run(document, ${options})`));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
    );
}
