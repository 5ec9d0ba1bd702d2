import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DockerfileParser, type Env } from "dockerfile-ast";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { SETTING_NAMES, variableOf } from "../../src/cli/setting-list.js";

const PROJECT = resolve(import.meta.dirname, "../..");
const versions = z.record(z.string(), z.string());
const { scripts, dependencies, devDependencies, peerDependencies } = z
  .object({
    scripts: z.object({ start: z.string() }),
    ...{ dependencies: versions, devDependencies: versions, peerDependencies: versions },
  })
  .parse(JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")));

const PAGE = readFileSync(join(PROJECT, "docs/container.md"), "utf8");

describe("the Dockerfile", () => {
  const all = DockerfileParser.parse(readFileSync(join(PROJECT, "Dockerfile"), "utf8")).getInstructions();
  const last = all.slice(all.findLastIndex((instruction) => instruction.getKeyword() === "FROM"));
  const said = (keyword: string) => last.findLast((one) => one.getKeyword() === keyword)?.getArgumentsContent();
  const environment = Object.fromEntries(
    last
      .filter((one) => one.getKeyword() === "ENV")
      .flatMap((one) => (one as Env).getProperties().map((each) => [each.getName(), each.getValue()])),
  );

  it("runs as a user who is not root, by number, so that a cluster can check it", () => {
    expect(said("USER")).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  it("starts Node without a shell, which would keep signals, and with npm start's flags", () => {
    const [, flags] = /exec node (.*)dist\/cli\/main\.js serve/.exec(scripts.start) ?? [];
    expect(JSON.parse(said("ENTRYPOINT") ?? "")).toEqual(["node", flags?.trim(), "/app/dist/cli/main.js"]);
    expect(JSON.parse(said("CMD") ?? "")).toEqual(["serve"]);
  });

  it("sets what there is to set, no secrets, and files on its volume alone", () => {
    const variables = new Set(SETTING_NAMES.map(variableOf));
    const named = Object.keys(environment).filter((name) => name.startsWith("MEMPREFIX_"));
    expect(named.filter((name) => !variables.has(name))).toEqual([]);
    expect(Object.keys(environment).filter((name) => /KEY|TOKEN|SECRET/.test(name))).toEqual([]);
    expect(said("VOLUME")).toBe("/data");
    expect(environment).toMatchObject({ MEMPREFIX_DATA_DIR: "/data", SQLITE_TMPDIR: "/data" });
    expect(said("EXPOSE")).toBe(environment["MEMPREFIX_PORT"]);
  });

  it("takes optional packages, which docs/container.md names at the versions that memprefix is tested with", () => {
    const [, named = ""] = /--build-arg PACKAGES="([^"]+)"/.exec(PAGE) ?? [];
    const packages = named.split(" ").map((each) => [each.replace(/@[^@]+$/, ""), each.replace(/^.+@/, "")]);
    expect(packages.length).toBeGreaterThan(1);
    const tested = { ...devDependencies, ...dependencies };
    expect(packages.filter(([name = "", version]) => tested[name] !== version)).toEqual([]);
  });
});

it("docs/internals/dependencies.md has a reason for every package that users install, and names no other", () => {
  // Peers that a clone installs; the others are the frameworks of adapters.
  const optional = Object.keys(peerDependencies).filter((name) => name in devDependencies);
  const page = readFileSync(join(PROJECT, "docs/internals/dependencies.md"), "utf8");
  const rows = [...page.matchAll(/^\| `([^`]+)` \| (\S.*) \|$/gm)].map(([, name]) => name);
  expect(rows.toSorted()).toEqual([...Object.keys(dependencies), ...optional].toSorted());
});
