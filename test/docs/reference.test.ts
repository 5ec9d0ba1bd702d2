import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { PRICES_READ } from "../../src/core/cost/prices.js";
import { ROOT, readPages, samplesOf } from "./pages.js";
import { commandPage, llmsText, pricesTable, settingsPage } from "./reference-pages.js";
import { runningService } from "./running-service.js";

describe("the reference", () => {
  it("has every setting, as --help has it", async () => {
    await expect(settingsPage()).toMatchFileSnapshot(join(ROOT, "docs/settings.md"));
  });

  it("has the list of prices, and when it was read", () => {
    const page = readPages().find(({ path }) => path === "docs/retention.md")?.text ?? "";
    expect(page).toContain(pricesTable());
    expect(page).toContain(`read in ${PRICES_READ}`);
  });

  it("is indexed for models, as for readers", async () => {
    await expect(llmsText()).toMatchFileSnapshot(join(ROOT, "docs/llms.txt"));
  });

  it("has every command with all its options, as --help has them", async () => {
    await expect(await commandPage()).toMatchFileSnapshot(join(ROOT, "docs/cli.md"));
  });
});

describe("docs/http.md", () => {
  const service = runningService();

  /** Every route of the OpenAPI document, as `POST /compose`. */
  async function describedRoutes(): Promise<readonly string[]> {
    const response = await fetch(`http://127.0.0.1:${service.port}/openapi.json`, { headers: { connection: "close" } });
    const { paths } = z
      .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
      .parse(await response.json());
    return Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
  }

  it("has every route of the OpenAPI document, and no other", async () => {
    const page = readPages().find(({ path }) => path === "docs/http.md")?.text ?? "";
    const listed = [...page.matchAll(/^\| `([A-Z]+ \/[^`?]*)/gm)].map(([, route]) => route ?? "");
    expect(listed.toSorted()).toEqual((await describedRoutes()).toSorted());
  });

  it("has every route that a sample calls", async () => {
    const templates = (await describedRoutes()).map((route) => route.split(" ")[1]?.replaceAll(/\{\w+\}/g, "[^/]+"));
    const called = readPages()
      .flatMap(samplesOf)
      .flatMap(({ text }) => [...text.matchAll(/(?:localhost|127\.0\.0\.1):4600(\/[^\s'"?]*)/g)])
      .map(([, path]) => path ?? "");
    expect(called.length).toBeGreaterThan(5);
    // A client's base URL is no route of its own.
    const isRoute = (path: string) => path === "/v1" || templates.some((route) => new RegExp(`^${route}$`).test(path));
    expect(called.filter((path) => !isRoute(path))).toEqual([]);
  });
});
