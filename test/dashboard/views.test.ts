import { expect, it } from "vitest";
import { describeInChromium } from "../chromium.js";
import { callerOf } from "../http/guards/callers.js";
import { type ServedApp, servedApp } from "../http/server/served-app.js";
import { browserPages } from "./browser.js";

const HOSTILE = `<img src=x onerror="window.hacked=1">"'&<script>window.hacked=1</script>`;
const MEMORIES = [
  { id: "m1", memory: "Ana is vegetarian." },
  { id: "m2", memory: "Ana is in Lisbon this week." },
];

/** Two turns of a conversation. The second's instructions differ, so nothing of the first can be reused. */
async function talk(
  app: ServedApp,
  user: string,
  conversation: string,
  prefix: string,
  more: object = {},
): Promise<void> {
  const first = { role: "user", content: "Where do we eat tonight?" };
  const said = [
    first,
    { role: "assistant", content: "At Jardim das Cerejas." },
    { role: "user", content: "And tomorrow?" },
  ];
  const asked = { user_id: user, conversation_id: conversation, memories: MEMORIES, ...more };
  await app.compose({ ...asked, request_id: `${prefix}-1`, system: "You plan trips. Monday.", messages: [first] });
  await app.compose({ ...asked, request_id: `${prefix}-2`, system: `You plan trips. ${prefix}.`, messages: said });
}

describeInChromium("the views of what prompts cost", () => {
  const app = servedApp();
  const pages = browserPages();
  const open = async (view: string) => {
    const opened = await pages.open(`${app.base}/dashboard#/${view}`);
    await opened.page.locator("main h1").first().waitFor();
    return opened;
  };
  const recorded = async (count: number) => {
    await expect
      .poll(async () => {
        const { requests } = JSON.parse((await app.send("GET", "/usage/requests")).text) as { requests: unknown[] };
        return requests.length;
      })
      .toBe(count);
  };

  it("show new prompts, and what the engine then reports of them, without a reload of the page", async () => {
    const { page, problems } = await open("requests");
    await page.getByText("No requests yet").waitFor();
    const { plan } = await app.compose({ user_id: "ana", request_id: "r-1", query: "Where?", memories: MEMORIES });
    const row = page.getByRole("row").filter({ hasText: "ana" });
    await row.waitFor();
    expect(await row.count()).toBe(1);
    expect(await row.innerText()).toContain(String(plan.total_tokens));
    await app.send("POST", "/feedback", {
      user_id: "ana",
      request_id: "r-1",
      prompt_tokens: 100,
      cached_tokens: 75,
      ttft_ms: 120,
    });
    await row.getByText("75%").waitFor();
    await row.getByText("120 ms").waitFor();
    expect(await page.getByRole("row").filter({ hasText: "ana" }).count()).toBe(1);

    await page.getByRole("button", { name: "Pause" }).click();
    await app.compose({ user_id: "ben", query: "Where?", memories: MEMORIES });
    await recorded(2);
    expect(await page.getByRole("row").filter({ hasText: "ben" }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it("filter requests, new ones too, and keep the filter in the address", async () => {
    await talk(app, "ana", "trip", "a");
    await talk(app, "ben", "work", "b");
    await recorded(4);
    const { page } = await open("requests");
    const rows = page.locator("main tbody tr");
    await expect.poll(() => rows.count()).toBe(4);
    await page.getByLabel("User", { exact: true }).fill("ana");
    await page.keyboard.press("Enter");
    await expect.poll(() => rows.count()).toBe(2);
    expect(page.url()).toContain("user_id=ana");
    await page.getByLabel("Cause of miss").selectOption("instructions_changed");
    await expect.poll(() => rows.count()).toBe(1);
    expect(await rows.first().innerText()).toContain("instructions changed");
    await talk(app, "ben", "home", "c");
    await talk(app, "ana", "home", "d");
    await expect.poll(() => rows.count()).toBe(2);
    expect(await page.locator("main tbody").innerText()).not.toContain("ben");
    await page.reload();
    await expect.poll(() => rows.count()).toBe(2);
    await page.goBack();
    await expect.poll(async () => page.url().includes("cause=")).toBe(false);
    await expect.poll(() => rows.count()).toBe(4);
  });

  it("open a request beside the one that it continued", async () => {
    await talk(app, "ana", "trip", "a");
    await recorded(2);
    const { page, problems } = await open("requests");
    await page.locator("main tbody tr").first().getByRole("link").first().click();
    await page.getByRole("heading", { level: 1, name: "What was cached of request a-2?" }).waitFor();
    const { words } = JSON.parse((await app.send("GET", "/request/explain?user_id=ana&request_id=a-2")).text) as {
      words: string[];
    };
    expect(await page.locator(".words li").allInnerTexts()).toEqual(words);
    expect(await page.locator(".lane").count()).toBe(2);
    expect(await page.locator(".lane").first().innerText()).toContain("after the first difference");
    // No text where the operator has not allowed it.
    expect(await page.locator("main").innerText()).not.toMatch(/vegetarian|Jardim|You plan trips/);
    await page.getByRole("link", { name: "open it" }).click();
    await page.getByRole("heading", { level: 1, name: "What was cached of request a-1?" }).waitFor();
    expect(problems).toEqual([]);
  });

  it("say why prompts missed and what to do about it, and lead to those that did", async () => {
    await talk(app, "ana", "trip", "a");
    await recorded(2);
    const { page } = await open("misses");
    const card = page.locator("article.cause").filter({ hasText: "The instructions changed" });
    expect(await card.innerText()).toContain("Keep dates");
    await card.getByRole("link", { name: "Show them" }).click();
    await page.getByRole("heading", { level: 1, name: "What was cached of each request?" }).waitFor();
    await expect.poll(() => page.locator("main tbody tr").count()).toBe(1);
  });

  it("show sums by window and by model, and follow new prompts", async () => {
    await talk(app, "ana", "trip", "a");
    await app.compose({ user_id: "ben", query: "Where?", memories: MEMORIES, model: "opus" });
    await recorded(3);
    const { page } = await open("");
    await expect.poll(() => page.locator("figure.chart canvas").count()).toBe(3);
    await page.getByRole("link", { name: "opus" }).click();
    await page.getByText("model: opus").waitFor();
    await page.getByRole("link", { name: "Hour" }).click();
    await expect.poll(() => page.url()).toMatch(/model=opus.*window=hour|window=hour.*model=opus/);
    const prompts = page
      .locator(".tile")
      .filter({ hasText: /^Prompts/ })
      .locator(".value");
    await expect.poll(() => prompts.innerText()).toBe("1");
    await app.compose({ user_id: "ben", query: "When?", memories: MEMORIES, model: "opus" });
    await expect.poll(() => prompts.innerText(), { timeout: 10_000 }).toBe("2");
  });

  it("put ids, names and texts of any kind in as text", async () => {
    await talk(app, HOSTILE, HOSTILE, "h", { agent_id: HOSTILE });
    await recorded(2);
    const shown = new URLSearchParams({
      user_id: HOSTILE,
      agent_id: HOSTILE,
      request_id: "h-2",
    });
    for (const view of ["", "requests", "misses", `request?${shown}`]) {
      const { page, problems } = await open(view);
      await page.locator("main:not([aria-busy])").waitFor();
      expect(await page.locator("main img, main script").count()).toBe(0);
      expect(await page.evaluate("window.hacked")).toBeUndefined();
      expect(problems).toEqual([]);
      if (view !== "" && view !== "misses") expect(await page.locator("main").innerText()).toContain("<img src=x");
    }
  });

  it("show a key what is its tenant's, and nothing to no key", async () => {
    await talk(app, "ana", "trip", "a");
    await recorded(2);
    const acme = callerOf(app, "acme");
    await acme.send("POST", "/compose", { user_id: "carl", query: "Where?", memories: MEMORIES });
    const { page } = await pages.open(`${app.base}/dashboard#/requests`);
    await page.getByText("An API key is needed").waitFor();
    await page.getByRole("button", { name: "Key" }).click();
    await page.getByLabel("Key", { exact: true }).fill(acme.key);
    await page.getByRole("button", { name: "Use it" }).click();
    const rows = page.locator("main tbody tr");
    await expect.poll(() => rows.count()).toBe(1);
    expect(await rows.first().innerText()).toContain("carl");
    await acme.send("POST", "/compose", { user_id: "cora", query: "Where?", memories: MEMORIES });
    await expect.poll(() => rows.count()).toBe(2);
    expect(await page.locator("main").innerText()).not.toContain("ana");
  });

  it("say what a request was rejected for, and that the service does not answer", async () => {
    const { page } = await pages.open(`${app.base}/dashboard#/requests?cause=none`);
    const alert = page.getByRole("alert");
    await alert.getByText("The service answered 422").waitFor();
    expect(await alert.innerText()).toMatch(/: cause /);
    await page.route("**/usage/**", (route) => route.abort());
    await page.getByRole("link", { name: "Misses" }).click();
    await alert.getByText("The service does not answer").waitFor();
  });
});

describeInChromium("the views with text", () => {
  const app = servedApp({ environment: { MEMPREFIX_DASHBOARD_TEXT: "on" } });
  const pages = browserPages();

  it("show texts where the operator lets them, as text", async () => {
    const memories = [{ id: "m1", memory: `Ana said ${HOSTILE}` }];
    await app.compose({ user_id: "ana", request_id: "r-1", query: "Where?", memories });
    const { page } = await pages.open(`${app.base}/dashboard#/request?user_id=ana&request_id=r-1`);
    await page.locator(".lane").first().waitFor();
    expect(await page.locator(".lane").first().innerText()).toContain("<img src=x");
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(await page.evaluate("window.hacked")).toBeUndefined();
  });
});

describeInChromium("the chart of what was saved", () => {
  // Writing to the cache costs more than computing.
  const cost = { kind: "money", uncached: 1, written: 1.25, cached: 0.1 };
  const MEMPREFIX_ENGINE_COST = JSON.stringify({ cost, blockTokens: 1, minimumPrefixTokens: 1 });
  const app = servedApp({ environment: { MEMPREFIX_ENGINE_COST } });
  const pages = browserPages();

  it("has losses on its axis, too", async () => {
    await app.compose({ user_id: "ana", query: "Where?", memories: MEMORIES });
    const { page } = await pages.open(`${app.base}/dashboard`);
    await page.addInitScript(`
      window.drawn = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (...given) {
        window.drawn.push(given[0]);
        return fillText.apply(this, given);
      };
    `);
    await page.reload();
    const saved = page.locator("figure.chart").filter({ hasText: "Saved" });
    await saved.locator("canvas").waitFor();
    expect(await saved.locator(".readout").innerText()).toMatch(/Saved -\d/);
    const drawn = () => page.evaluate("window.drawn.filter((text) => /^-\\d/.test(text)).length");
    await expect.poll(drawn).toBeGreaterThan(0);
  });
});
