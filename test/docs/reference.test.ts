import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { servedApp } from "../http/service/served-app.js";
import { ROOT, readPages } from "./pages.js";
import { commandPage, settingsPage } from "./reference-pages.js";

describe("the reference", () => {
  it("has every setting, as --help has it", async () => {
    await expect(settingsPage()).toMatchFileSnapshot(join(ROOT, "docs/settings.md"));
  });

  it("has every command with all its options, as --help has them", async () => {
    await expect(commandPage()).toMatchFileSnapshot(join(ROOT, "docs/cli.md"));
  });
});

describe("docs/http.md", () => {
  const app = servedApp();

  it("has every route of the OpenAPI document, and no other", async () => {
    const response = await fetch(`${app.base}/openapi.json`, { headers: { connection: "close" } });
    const { paths } = z
      .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
      .parse(await response.json());
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const page = readPages().find(({ path }) => path === "docs/http.md")?.text ?? "";
    const listed = [...page.matchAll(/^\| `([A-Z]+ \/[^`?]*)/gm)].map(([, route]) => route ?? "");
    expect(listed.toSorted()).toEqual(described.toSorted());
  });
});
