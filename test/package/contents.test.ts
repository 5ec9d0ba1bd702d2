import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { describe, expect, it } from "vitest";
import { installedPackage } from "./installed-package.js";

const require = createRequire(import.meta.url);
const PROJECT = resolve(import.meta.dirname, "../..");

describe("the packed package", () => {
  const memstem = installedPackage();

  it("has what an installation needs", () => {
    expect(memstem.files).toEqual(
      expect.arrayContaining([
        "CHANGELOG.md",
        "LICENSE",
        "README.md",
        "dist/cli/main.js",
        "dist/core/index.d.ts",
        "dist/core/index.js",
        "dist/index.d.ts",
        "dist/index.js",
        "docs/README.md",
        "examples/sample-locomo.json",
        "migrations/meta/_journal.json",
        "package.json",
      ]),
    );
  });

  it("has every migration that its journal names", () => {
    const journal = JSON.parse(readFileSync(join(memstem.root, "migrations/meta/_journal.json"), "utf8")) as {
      entries: { tag: string }[];
    };
    const migrations = journal.entries.map(({ tag }) => `migrations/${tag}.sql`);
    expect(migrations.length).toBeGreaterThan(0);
    expect(memstem.files.filter((name) => name.endsWith(".sql"))).toEqual(migrations);
    expect(readdirSync(join(PROJECT, "migrations")).filter((name) => name.endsWith(".sql"))).toHaveLength(
      migrations.length,
    );
  });

  it("has nothing else: no sources, tests, benches, maps, data or settings of the project", () => {
    const expected =
      /^(dist\/.+\.(js|d\.ts)|migrations\/.+\.(sql|json)|docs\/[\w/-]+\.(md|png)|examples\/[\w-]+\.json|[A-Z]+(\.md)?|package\.json)$/;
    expect(memstem.files.filter((name) => !expected.test(name))).toEqual([]);
  });

  it("has the compiled form of every source and of no other", () => {
    const compiled = memstem.files.filter((name) => name.startsWith("dist/") && name.endsWith(".js"));
    const sources = readdirSync(join(PROJECT, "src"), { recursive: true }).map(String);
    const expected = sources.filter((name) => name.endsWith(".ts")).map((name) => `dist/${name.replace(/ts$/, "js")}`);
    expect(compiled).toEqual(expected.toSorted());
  });

  it("is what publint wants of a package", async () => {
    const { messages, pkg } = await publint({ pkgDir: memstem.root, pack: false, strict: true, level: "suggestion" });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  it("has types that resolve, by attw, wherever ESM is imported", async () => {
    const attw = join(dirname(require.resolve("@arethetypeswrong/cli/package.json")), "dist/index.js");
    const args = [attw, memstem.archive, "--profile", "esm-only", "--no-color", "--no-emoji"];
    const { code, stdout } = await memstem.node(args);
    expect(code, stdout).toBe(0);
    expect(stdout).toContain('"memstem/core"');
  });
});
