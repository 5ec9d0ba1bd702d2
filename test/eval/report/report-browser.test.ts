import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { seeded } from "../../../src/eval/measures/bootstrap.js";
import { renderReport } from "../../../src/eval/report/report.js";
import { armsOf } from "../../../src/eval/run/arms.js";
import { describeInChromium } from "../../chromium.js";
import { browserPages, seriousFindings } from "../../dashboard/browser.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { answeredBy, runOf } from "../run/run-fixture.js";

/** Ways to build prompts with long names. */
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

/** What is wider than the page; evaluated in it. */
const TOO_WIDE = `(() => {
  const { clientWidth } = document.documentElement;
  return [...document.querySelectorAll("main, .quality li")]
    .filter((element) => element.getBoundingClientRect().right > clientWidth + 1)
    .map((element) => element.textContent);
})()`;

describeInChromium(`the report of a run of ${ARMS.length} arms`, () => {
  const pages = browserPages();
  const folder = temporaryFolders();
  const opened = (width: number, colorScheme: "light" | "dark") => {
    const file = join(folder(), "report.html");
    writeFileSync(file, madeUpReport());
    return pages.open(pathToFileURL(file).href, { viewport: { width, height: 900 }, colorScheme });
  };

  it.each([
    [390, "light"],
    [390, "dark"],
    [1440, "light"],
    [1440, "dark"],
  ] as const)("%i pixels wide, %s: nothing is cut off, and all text can be read", async (width, scheme) => {
    const { page, problems, asked } = await opened(width, scheme);
    expect(await page.evaluate(TOO_WIDE)).toEqual([]);
    expect(await seriousFindings(page, "color-contrast")).toEqual([]);
    expect({ problems, asked }).toEqual({ problems: [], asked: [page.url()] });
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
  });
});
