import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { seeded } from "../../../src/eval/measures/bootstrap.js";
import { renderReport } from "../../../src/eval/report/report.js";
import { armsOf } from "../../../src/eval/run/arms.js";
import { describeInChromium, launchChromium } from "../../chromium.js";
import { answeredBy, runOf } from "../run/run-fixture.js";

/** Ways to build prompts with long names, more than a chart has colours for. */
const ARMS = armsOf({
  depths: [null],
  retentions: ["auto"],
  windows: [null],
  layouts: ["single", "conversation"],
  ks: [20],
  policies: ["readme", "retrieval", "prefix-exact", "carry-over"],
  annotations: ["none", null, "paper"],
});

/** A run of ten conversations in which everything was measured. */
function madeUpReport(): string {
  const draw = seeded(3);
  const conversations = Array.from({ length: 10 }, (_, nth) => `conv-${nth}`);
  const records = conversations.flatMap((conversation) =>
    Array.from({ length: 12 }, (_, question) =>
      ARMS.map((arm, at) => {
        const promptTokens = 2_000 + Math.floor(200 * draw());
        const isCorrect = draw() < 0.5 + 0.01 * at;
        return answeredBy(arm, question, {
          conversation,
          promptTokens,
          cachedTokens: Math.floor(promptTokens * (0.2 + 0.03 * at)),
          answerTokens: 10,
          ttftMs: 50 + 100 * draw(),
          totalMs: 400,
          retrievedTokens: 400,
          memoryTokens: 400,
          answer: "Yes",
          gold: "Yes",
          f1: draw(),
          bleu1: draw(),
          judge: { isCorrect, prompt: "", raw: "" },
        });
      }),
    ).flat(),
  );
  const judge = { url: "http://127.0.0.1:1/v1", model: "judge-1" };
  const conversationsOfRun = conversations.map((id) => ({ id, memories: 100, questions: 12 }));
  return renderReport(runOf({ arms: ARMS, conversations: conversationsOfRun, judge }), records).html;
}

/** What is wrong with what a page shows, as it is laid out; evaluated in the page. */
const PROBLEMS = `(() => {
  const problems = [];
  const wide = document.documentElement;
  if (wide.scrollWidth > wide.clientWidth) problems.push("the page scrolls sideways");
  const boxOf = (element) => element.getBoundingClientRect();
  const cover = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  for (const svg of document.querySelectorAll("figure svg[role=img]")) {
    const name = svg.querySelector("title").textContent;
    const frame = boxOf(svg);
    const texts = [...svg.querySelectorAll("text")].map((text) => ({ says: text.textContent, box: boxOf(text) }));
    for (const { says, box } of texts) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1) problems.push(name + ": " + says + " is cut off");
    }
    for (const [at, one] of texts.entries()) {
      for (const other of texts.slice(at + 1)) {
        if (cover(one.box, other.box)) problems.push(name + ": " + one.says + " covers " + other.says);
      }
    }
  }
  for (const item of document.querySelectorAll(".legend li, .quality li")) {
    if (boxOf(item).right > wide.clientWidth + 1) problems.push(item.textContent + " is wider than the page");
  }
  return problems;
})()`;

/** The least contrast of a text with what is behind it, by WCAG 2; evaluated in the page. */
const LEAST_CONTRAST = `(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = channels(getComputedStyle(at).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const own = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
  const contrasts = [...document.querySelectorAll("main *:not(title, desc)")].filter(own).map((element) => {
    const style = getComputedStyle(element);
    const [front, back] = [luminance(channels(element.closest("svg") ? style.fill : style.color)), luminance(behind(element))];
    return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  });
  return Math.min(...contrasts);
})()`;

describeInChromium(`the report of a run of ${ARMS.length} arms`, () => {
  const directory = mkdtempSync(join(tmpdir(), "memprefix-report-"));
  const file = join(directory, "report.html");
  let browser: Browser;
  beforeAll(async () => {
    writeFileSync(file, madeUpReport());
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const SHOWN = [
    [390, "light"],
    [390, "dark"],
    [1440, "light"],
    [1440, "dark"],
  ] as const;

  async function opened(width: number, colorScheme: "light" | "dark"): Promise<{ page: Page; errors: string[] }> {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const page = await context.newPage();
    const errors: string[] = [];
    page.on("console", (message) => errors.push(message.text()));
    page.on("pageerror", ({ message }) => errors.push(message));
    page.on("request", (request) => {
      if (request.url() !== pathToFileURL(file).href) errors.push(`asks for ${request.url()}`);
    });
    await page.goto(pathToFileURL(file).href);
    return { page, errors };
  }

  it.each(SHOWN)(
    "%i pixels wide, %s: nothing is cut off or covered, and all text can be read",
    async (width, scheme) => {
      const { page, errors } = await opened(width, scheme);
      expect(await page.evaluate(PROBLEMS)).toEqual([]);
      expect(await page.evaluate(LEAST_CONTRAST)).toBeGreaterThanOrEqual(4.5);
      expect(errors).toEqual([]);
      await page.context().close();
    },
  );

  it("has no two lines of a chart in one style", async () => {
    const { page } = await opened(390, "light");
    const styles: unknown = await page.evaluate(
      `[...document.querySelectorAll("svg")].map((svg) => [...svg.querySelectorAll("polyline")].map((line) => line.getAttribute("class")))`,
    );
    const charts = styles as string[][];
    expect(charts.some((lines) => lines.length > 5)).toBe(true);
    expect(charts.filter((lines) => new Set(lines).size < lines.length)).toEqual([]);
    await page.context().close();
  });

  it("keeps the names of rows in sight when a table is scrolled sideways", async () => {
    const { page } = await opened(390, "dark");
    const left: unknown = await page.evaluate(`(() => {
      const box = document.querySelector(".scroll");
      box.scrollLeft = 100;
      const name = box.querySelector("tbody tr:not(.group) th");
      return { scrolled: box.scrollLeft, name: name.getBoundingClientRect().left - box.getBoundingClientRect().left };
    })()`);
    expect(left).toEqual({ scrolled: 100, name: 0 });
    await page.context().close();
  });
});
