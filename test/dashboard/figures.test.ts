import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { percent, short, whole } from "../../src/dashboard/format.js";
import { describeInChromium } from "../chromium.js";
import { servedApp } from "../http/server/served-app.js";
import { browserPages } from "./browser.js";

const MEMORIES = Array.from({ length: 20 }, (_, at) => ({ id: `m${at}`, memory: `Ana saw film number ${at} in May.` }));

/** The figures of a page's tiles by their titles. */
async function tilesOf(page: Page): Promise<Readonly<Record<string, string>>> {
  const tiles = await page.locator(".tile").all();
  const read = tiles.map(async (tile) => {
    const value = (await tile.locator("dd .value").count()) > 0 ? tile.locator("dd .value") : tile.locator("dd");
    return [await tile.locator("dt").innerText(), (await value.innerText()).split("\n")[0] ?? ""] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}

describeInChromium("figures that two views show", () => {
  const app = servedApp();
  const pages = browserPages();
  const read = async (path: string) => JSON.parse((await app.send("GET", path)).text);

  it("are the same in all of them, and in the API", async () => {
    const said: { role: string; content: string }[] = [];
    for (const [turn, system] of ["Plan films.", "Plan films.", "Plan plays."].entries()) {
      said.push({ role: "user", content: `Which one was film ${turn}?` });
      const request = { user_id: "ana", conversation_id: "films", request_id: `r-${turn}`, memories: MEMORIES };
      const { plan } = await app.compose({ ...request, system, messages: said });
      said.push({ role: "assistant", content: "The one in May." });
      // The engine counts as memprefix does, and found ten tokens less than were expected.
      const cached = Math.max(0, Number(plan.expected_cached_tokens) - 10);
      const report = { prompt_tokens: plan.total_tokens, cached_tokens: cached, ttft_ms: 100 };
      await app.send("POST", "/feedback", { user_id: "ana", request_id: `r-${turn}`, ...report });
    }
    await expect.poll(async () => (await read("/usage/requests")).requests.length).toBe(3);
    const {
      total,
      misses,
      by_model: models,
    } = (await read("/usage/summary?window=hour")) as {
      total: Record<string, number>;
      misses: { cause: string; tokens: number }[];
      by_model: Record<string, number>[];
    };
    const { requests: rows } = (await read("/usage/requests")) as { requests: Record<string, number>[] };
    const sum = (name: string) => rows.reduce((all, row) => all + (row[name] ?? 0), 0);
    expect(total["prompt_tokens"]).toBe(sum("prompt_tokens"));
    const cachedShare = sum("reported_cached_tokens") / sum("reported_prompt_tokens");

    const { page } = await pages.open(`${app.base}/dashboard`);
    await page.locator(".tile").first().waitFor();
    const now = await tilesOf(page);
    expect(now).toMatchObject({
      Prompts: "3",
      "Cached share": percent(cachedShare),
      "Tokens computed": short(sum("prompt_tokens") - sum("reported_cached_tokens")),
      Missed: short(misses.reduce((all, { tokens }) => all + tokens, 0)),
    });
    const cells = (at: number) => page.locator("main tbody tr").nth(at).locator("th, td").allInnerTexts();
    const [, prompts, tokens, computed, missed, share] = await cells(0);
    expect(models).toHaveLength(1);
    expect([prompts, computed, missed, share]).toEqual([
      now["Prompts"],
      ...[now["Tokens computed"], now["Missed"], now["Cached share"]],
    ]);
    expect(tokens).toBe(short(sum("prompt_tokens")));

    await page.getByRole("link", { name: "Misses" }).click();
    await page.getByRole("heading", { name: `${whole(total["missed_tokens"])} tokens were computed` }).waitFor();
    const cards = await page.locator("main > section article.cause .note").allInnerTexts();
    const counted = cards.map((text) => Number(/^([\d,]+) tokens/.exec(text)?.[1]?.replace(",", "")));
    expect(counted.reduce((all, one) => all + one, 0)).toBe(total["missed_tokens"]);

    for (const at of rows.keys()) {
      await page.goto(`${app.base}/dashboard#/requests`);
      await page.locator("main tbody tr").nth(2).waitFor();
      const [, cached, , all, , first] = await cells(at);
      await page.locator("main tbody tr").nth(at).getByRole("link").first().click();
      // The list has a column of this name, too.
      await page.locator(".tile").getByText("First token").waitFor();
      const own = await tilesOf(page);
      expect([own["Cached, by the engine"], own["Prompt tokens"], own["First token"]]).toEqual([cached, all, first]);
      expect(own["Prompt tokens"]).toBe(whole(rows[at]?.["prompt_tokens"]));
    }
  });
});
