import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { onDemand } from "../on-demand.js";
import { installedPackage } from "./installed-package.js";

const PROJECT = resolve(import.meta.dirname, "../..");

describe("the packed package, installed", () => {
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
      /^(dist\/.+\.(js|d\.ts)|dist\/(http\/contracts|eval\/facts)\/[\w-]+\.json|dist\/dashboard\/(page\.(html|css)|api\.html|icon\.svg)|migrations\/.+\.(sql|json)|docs\/[\w/-]+\.(md|png|txt)|examples\/([\w-]+\.json|helm\/[\w/-]+\.(yaml|md)|(hermes|openclaw)\/(README\.md|memprefix\/[\w.]+\.(py|yaml|js|json)))|[A-Z]+(\.md)?|package\.json)$/;
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

  const json = (text: string) => JSON.parse(text) as unknown;

  it("composes in-process, and goes on after it was opened again", async () => {
    memprefix.write(
      "library.js",
      `
      import { createMemprefix, InvalidRequestError } from "memprefix";
      const prompts = [];
      const history = [];
      for (const [question, memories] of [["Where?", ["in Paris"]], ["Why?", ["in Paris", "for love"]]]) {
        const memprefix = createMemprefix({ dataDir: "library-data", source: { kind: "none" } });
        history.push({ role: "user", content: question });
        const found = { results: memories.map((memory) => ({ id: memory, memory })) };
        const { messages } = await memprefix.compose({ userId: "ada", conversationId: "c", messages: history, memories: found, retention: "keep" });
        prompts.push(messages);
        history.push({ role: "assistant", content: "So." });
        const refused = await memprefix.compose({ userId: "", query: "x" }).catch((error) => error);
        if (!(refused instanceof InvalidRequestError)) throw refused;
        await memprefix.close();
      }
      console.log(JSON.stringify(prompts));
      `,
    );
    const { code, stdout, stderr } = await memprefix.node(["library.js"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const first = { role: "user", content: "<memories>\n- in Paris\n</memories>\n\nWhere?" };
    expect(json(stdout)).toEqual([
      [first],
      [
        first,
        { role: "assistant", content: "So." },
        {
          role: "user",
          content: "<memories>\n- for love\n</memories>\nMost relevant: in Paris\n\nWhy?",
        },
      ],
    ]);
  });

  it("has no other doors than its exports", async () => {
    memprefix.write("inside.js", 'await import("memprefix/dist/store/sqlite/open.js");');
    expect((await memprefix.node(["inside.js"])).stderr).toContain("ERR_PACKAGE_PATH_NOT_EXPORTED");
    memprefix.write(
      "manifest.js",
      'import it from "memprefix/package.json" with { type: "json" }; console.log(it.version);',
    );
    expect((await memprefix.node(["manifest.js"])).stdout).toBe(`${memprefix.version}\n`);
  });

  it("runs as a command, with its migrations and its sample found", async () => {
    expect(await memprefix.command(["--version"])).toEqual({ code: 0, stdout: `${memprefix.version}\n`, stderr: "" });
    expect(await memprefix.command(["keys", "add"])).toMatchObject({ code: 0, stderr: "" });
    expect(existsSync(join(memprefix.folder, "memprefix-data/memprefix.db"))).toBe(true);
  });
});
