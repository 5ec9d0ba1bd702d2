import { expect, it } from "vitest";
import { describeInChromium } from "../chromium.js";
import { textsMatching } from "../http/routes/stored-rows.js";
import { servedApp } from "../http/server/served-app.js";
import { browserPages, type OpenedPage } from "./browser.js";

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;

describeInChromium("the try-it view", () => {
  const app = servedApp();
  const pages = browserPages();

  const open = () => pages.open(`${app.base}/dashboard#/try`);
  const compose = async ({ page }: OpenedPage) => {
    await page.getByRole("button", { name: "Compose" }).click();
    await page.getByText(/prompts composed; the made-up users are deleted again/).waitFor();
  };
  const rowsOf = async ({ page }: OpenedPage) => {
    const rows = await page.locator(".results table tbody tr").all();
    return Promise.all(
      rows.map(async (row) => {
        const [sent = 0, cached = 0, computed = 0] = (await row.locator("td.number").allInnerTexts()).map((text) =>
          Number.parseInt(text.replaceAll(",", ""), 10),
        );
        const name = (await row.locator("th").innerText()).split("\n")[0];
        return { name, sent, cached, computed };
      }),
    );
  };
  /** Made-up users, and texts of the sample, that are stored. */
  const left = () => textsMatching(app.database, /memprefix-try-[\w-]+|walnuts|tile museum/);

  it("composes the sample by retention, side by side, and keeps nothing of it", async () => {
    const opened = await open();
    await compose(opened);
    const byRetention = await rowsOf(opened);
    expect(byRetention.map(({ name }) => name)).toEqual([
      "Memories in the system prompt",
      "keep",
      "volatile",
      "ephemeral",
      "auto",
    ]);
    for (const { sent, cached, computed } of byRetention) expect(cached + computed).toBe(sent);
    const [instructions, keep] = byRetention;
    expect(keep?.computed).toBeLessThan((instructions?.computed ?? 0) * 0.6);
    expect(await opened.page.locator(".pane").count()).toBe(5);
    expect(await opened.page.locator(".pane").nth(1).locator("mark.shared").count()).toBeGreaterThan(3);
    expect(left()).toEqual([]);
    const summary = await fetch(`${app.base}/usage/summary?window=hour`, { headers: { connection: "close" } });
    expect(await summary.json()).toMatchObject({ total: { prompts: 0 } });
    expect(opened.asked.filter((address) => !address.startsWith(`${app.base}/`))).toEqual([]);
    // A service under load rejects for now, and the page asks again.
    expect(opened.problems.filter((problem) => !/404|503/.test(problem))).toEqual([]);
  });

  it("shows the prompt of the question that is chosen", async () => {
    const opened = await open();
    await compose(opened);
    const second = opened.page.getByRole("group", { name: "Question" }).getByRole("button", { name: "2" });
    await second.click();
    expect(await second.getAttribute("aria-pressed")).toBe("true");
    const keep = opened.page.getByRole("region", { name: "Prompt, keep" });
    expect(await keep.innerText()).toContain("Can Ines come along after work");
    expect(await keep.innerText()).not.toContain("What could Ana see tomorrow");
  });

  it("shows hostile text as text", async () => {
    const opened = await open();
    const { page } = opened;
    await page.getByLabel(/^Memories, one/).fill(`${HOSTILE}\nAna is in Rome`);
    await page.getByLabel(/^History/).fill(`user: Where? ${HOSTILE}`);
    await compose(opened);
    const prompt = page.getByRole("region", { name: "Prompt, keep" });
    expect(await prompt.innerText()).toContain(`Where? ${HOSTILE}`);
    expect(await prompt.locator("img, script").count()).toBe(0);
    expect(await page.evaluate("window.hacked")).toBeUndefined();
  });

  it("says what is wrong with what was pasted", async () => {
    const { page } = await open();
    await page.getByLabel(/^Memories, one/).fill("");
    await page.getByRole("button", { name: "Compose" }).click();
    await page.getByRole("alert").getByText("Give at least one memory.").waitFor();
  });

  it("keeps nothing of a run whose page is left", async () => {
    const { page } = await open();
    await page.getByRole("button", { name: "Compose" }).click();
    await page.getByText(/^[1-9]\d* of \d+ prompts composed …/).waitFor();
    expect(left()).not.toEqual([]);
    await page.goto("about:blank");
    await expect.poll(left).toEqual([]);
  });
});
