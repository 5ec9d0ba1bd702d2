import { expect, it } from "vitest";
import { describeInChromium } from "../chromium.js";
import { servedApp } from "../http/server/served-app.js";
import { browserPages, type OpenedPage, seriousFindings } from "./browser.js";

const VIEWS = ["", "requests", "misses", "try", "request?user_id=ana&request_id=t-2"] as const;

describeInChromium("the page", () => {
  const app = servedApp();
  const pages = browserPages();
  const open = (view: string, options = {}) => pages.open(`${app.base}/dashboard#/${view}`, options);

  /** Two turns of a conversation, of which the second's instructions differ. */
  const talk = async () => {
    const memories = [{ id: "m1", memory: "Ana is vegetarian." }];
    const first = { role: "user", content: "Where do we eat?" };
    const asked = { user_id: "ana", conversation_id: "trip", memories };
    await app.compose({ ...asked, request_id: "t-1", system: "Today is Monday.", messages: [first] });
    const rest = [
      { role: "assistant", content: "At home." },
      { role: "user", content: "And tomorrow?" },
    ];
    await app.compose({ ...asked, request_id: "t-2", system: "Today is Tuesday.", messages: [first, ...rest] });
  };
  const settled = async ({ page }: OpenedPage) => {
    await page.locator("main h1, main [role=alert]").first().waitFor();
    await page.locator("main:not([aria-busy])").waitFor();
  };
  const brightness = async ({ page }: OpenedPage) => {
    const colour = String(await page.evaluate("getComputedStyle(document.body).backgroundColor"));
    return (colour.match(/\d+/g) ?? []).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
  };

  it("loads its own files and no other, without a word in the console", async () => {
    await talk();
    const opened = await open("");
    await settled(opened);
    expect(opened.problems).toEqual([]);
    expect(opened.asked.map((address) => new URL(address).origin).filter((origin) => origin !== app.base)).toEqual([]);
    expect(await opened.page.title()).toBe("Now · memprefix");
  });

  it("fits a phone at every view, and has no serious finding of axe at any, light and dark", async () => {
    await talk();
    for (const view of VIEWS) {
      const opened = await open(view, { viewport: { width: 360, height: 740 } });
      const { page } = opened;
      await settled(opened);
      expect(await page.evaluate("document.documentElement.scrollWidth"), view).toBeLessThanOrEqual(360);
      await page.setViewportSize({ width: 1280, height: 900 });
      await page.emulateMedia({ colorScheme: "light" });
      expect(await seriousFindings(page), view).toEqual([]);
      await page.emulateMedia({ colorScheme: "dark" });
      expect(await seriousFindings(page, "color-contrast"), `${view}, dark`).toEqual([]);
      await page.close();
    }
  });

  it("is dark where the system is", async () => {
    expect(await brightness(await open("try", { colorScheme: "light" }))).toBeGreaterThan(200);
    expect(await brightness(await open("try", { colorScheme: "dark" }))).toBeLessThan(40);
  });

  it("is used by keyboard: past the menu, through the menu, and in the dialog of the key", async () => {
    const opened = await open("try");
    const { page } = opened;
    await settled(opened);
    const focused = () => page.evaluate("document.activeElement.id || document.activeElement.textContent");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    expect(await focused()).toBe("view");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("try-memories");

    await page.getByRole("link", { name: "Misses" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Why did prompts miss?" }).waitFor();
    expect(await page.getByRole("link", { name: "Misses", exact: true }).getAttribute("aria-current")).toBe("page");
    // A screen reader goes on where the new view begins.
    expect(await focused()).toBe("view");

    await page.getByRole("button", { name: "Key" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    expect(await focused()).toBe("key");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await focused()).toBe("Key");
  });
});
