import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { onDemand } from "../on-demand.js";
import { installedPackage } from "./installed-package.js";

const PROJECT = resolve(import.meta.dirname, "../..");

describe("the packed package", () => {
  const memprefix = installedPackage();

  it("has what an installation needs", () => {
    expect(memprefix.files).toEqual(
      expect.arrayContaining([
        ...["CHANGELOG.md", "LICENSE", "README.md", "dist/cli/main.js", "dist/core/index.d.ts", "dist/core/index.js"],
        ...["dist/dashboard/page.html", "dist/index.d.ts", "dist/index.js", "docs/README.md"],
        ...["examples/hermes/memprefix/__init__.py", "examples/openclaw/memprefix/index.js"],
        ...["examples/sample-locomo.json", "migrations/meta/_journal.json", "package.json"],
      ]),
    );
  });

  it("has every migration that its journal names", () => {
    const migrations = ["migrations", "migrations/postgres"].flatMap((folder) => {
      const journal = JSON.parse(readFileSync(join(memprefix.root, folder, "meta/_journal.json"), "utf8")) as {
        entries: { tag: string }[];
      };
      const named = journal.entries.map(({ tag }) => `${folder}/${tag}.sql`);
      expect(named.length).toBeGreaterThan(0);
      expect(readdirSync(join(PROJECT, folder)).filter((name) => name.endsWith(".sql"))).toHaveLength(named.length);
      return named;
    });
    expect(memprefix.files.filter((name) => name.endsWith(".sql")).sort()).toEqual(migrations.sort());
  });

  it("has nothing else: no sources, tests, benches, maps, data or settings of the project", () => {
    const expected =
      /^(dist\/.+\.(js|d\.ts)|dist\/http\/contracts\/[\w-]+\.json|dist\/dashboard\/(page\.(html|css)|api\.html|icon\.svg)|migrations\/.+\.(sql|json)|docs\/[\w/-]+\.(md|png|txt)|examples\/([\w-]+\.json|helm\/[\w/-]+\.(yaml|md)|(hermes|openclaw)\/(README\.md|memprefix\/[\w.]+\.(py|yaml|js|json)))|[A-Z]+(\.md)?|package\.json)$/;
    expect(memprefix.files.filter((name) => !expected.test(name))).toEqual([]);
  });

  it("has the compiled form of every source and of no other", () => {
    const compiled = memprefix.files.filter((name) => name.startsWith("dist/") && name.endsWith(".js"));
    const sources = readdirSync(join(PROJECT, "src"), { recursive: true }).map(String);
    const isOfPage = (name: string) => name.startsWith("dashboard/");
    const expected = sources
      .filter((name) => name.endsWith(".ts") && !isOfPage(name))
      .map((name) => `dist/${name.replace(/ts$/, "js")}`);
    expect(compiled).toEqual([...expected, "dist/dashboard/api.js", "dist/dashboard/page.js"].toSorted());
  });

  it("has the page's modules as one script, with the license of what it includes", () => {
    const script = readFileSync(join(memprefix.root, "dist/dashboard/page.js"), "utf8");
    const license = readFileSync(join(PROJECT, "node_modules/uplot/LICENSE"), "utf8").trim();
    const wordsIn = (text: string) => text.split(/[\s*]+/).join(" ");
    expect(wordsIn(script).includes(wordsIn(license))).toBe(true);
  });

  it("is what publint wants of a package", async () => {
    const publint = join(await onDemand("publint", "0.3.25"), "src/cli.js");
    const said = await memprefix.node([publint, "run", memprefix.root, "--strict", "--pack", "false"]);
    expect(said).toMatchObject({ code: 0, stdout: expect.stringContaining("All good!") });
  });
});
