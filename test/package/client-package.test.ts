import { execFile } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { servedApp } from "../http/server/served-app.js";
import { onDemand } from "../on-demand.js";
import { installedPackage } from "./installed-package.js";

const PROJECT = resolve(import.meta.dirname, "../..");

const target = z.union([z.string(), z.object({ types: z.string(), default: z.string() })]);
const manifest = z.looseObject({
  version: z.string(),
  exports: z.record(z.string(), target),
  dependencies: z.record(z.string(), z.string()).default({}),
  peerDependencies: z.record(z.string(), z.string()).default({}),
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean() })).default({}),
});
const manifestOf = (folder: string) => manifest.parse(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));

const USES = `
import { type ComposeOptions, createMemprefixClient, MemprefixError, type RemoteMemprefix, type UsageSummary } from "memprefix-client";
import { digestOf, type Label } from "memprefix-client/core";

const memprefix: RemoteMemprefix = createMemprefixClient({ url: "http://127.0.0.1:4600" });
const request: ComposeOptions = { userId: "ada", query: "Where?", policy: "carry-over", engine: "vllm" };
const { messages, blocks } = await memprefix.compose(request);
const label: Label | undefined = blocks[0]?.label;
// @ts-expect-error there is no such policy
await memprefix.compose({ userId: "ada", query: "Where?", policy: "none" });
// @ts-expect-error a message has a role
await memprefix.compose({ userId: "ada", messages: [{ content: "Where?" }] });
const summary: UsageSummary = await memprefix.usageSummary({ window: "day", model: null });
const share: number | null = summary.total.cachedShare;
// @ts-expect-error there is no such window
await memprefix.usageSummary({ window: "year" });
// @ts-expect-error a summary has no such figure
summary.total.nothing;
export default [messages, label, share, digestOf("x"), MemprefixError];
`;

describe("the package of the client alone", () => {
  const client = installedPackage("memprefix-client", (folder) =>
    promisify(execFile)(process.execPath, ["--import", "tsx", ".ci/client-package.ts", folder], { cwd: PROJECT }),
  );
  const app = servedApp();

  it("has the client, the core and every adapter that the project exports, and no other door", () => {
    const [own, project] = [manifestOf(client.root), manifestOf(PROJECT)];
    const doors = Object.entries(project.exports).filter(
      ([, to]) => typeof to === "object" && /^\.\/dist\/(client|core|integrations)\//.test(to.default),
    );
    const renamed = doors.map(([name, to]) => [name === "./client" ? "." : name, to]);
    expect(own.exports).toEqual({ ...Object.fromEntries(renamed), "./package.json": "./package.json" });
    expect(Object.keys(own.exports)).toEqual(expect.arrayContaining([".", "./core"]));
    expect(own.version).toBe(project.version);
  });

  it("depends on a hash alone, runs nothing when it is installed, and leaves frameworks to who has them", () => {
    const [own, project] = [manifestOf(client.root), manifestOf(PROJECT)];
    expect(own.dependencies).toEqual({ "@noble/hashes": project.dependencies["@noble/hashes"] });
    expect(own["scripts"]).toBeUndefined();
    for (const [name, range] of Object.entries(own.peerDependencies)) {
      const wanted = project.peerDependencies[name] ?? `^${project.dependencies[name]}`;
      expect(`${name} ${range}`).toBe(`${name} ${wanted}`);
      expect(own.peerDependenciesMeta[name]).toEqual({ optional: true });
    }
  });

  it("has nothing of the service, and is small", () => {
    const expected = /^(dist\/.+\.(js|d\.ts)|LICENSE|README\.md|package\.json)$/;
    expect(client.files.filter((name) => !expected.test(name))).toEqual([]);
    const code = client.files.filter((name) => name.endsWith(".js"));
    expect(code.filter((name) => !/^dist\/(client|core|integrations)\//.test(name))).toEqual([
      "dist/http/contracts/wire-names.js",
    ]);
    expect(statSync(client.archive).size).toBeLessThan(500_000);
  });

  it("is what publint wants of a package", async () => {
    const publint = join(await onDemand("publint", "0.3.25"), "src/cli.js");
    const said = await client.node([publint, "run", client.root, "--strict", "--pack", "false"]);
    expect(said).toMatchObject({ code: 0, stdout: expect.stringContaining("All good!") });
  });

  it("has whole types, without zod, Node's or any other package's", async () => {
    const ran = await client.typeCheck(USES, { lib: ["es2023", "dom"], skipLibCheck: false });
    expect(ran).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  it("talks to a service", async () => {
    client.write(
      "program.js",
      `
      import { createMemprefixClient } from "memprefix-client";
      import { digestOf } from "memprefix-client/core";
      const memprefix = createMemprefixClient({ url: process.argv[2] });
      const { messages } = await memprefix.compose({ userId: "ada", query: "Where?", memories: [{ id: "m", memory: "in Paris" }] });
      console.log(messages[0].content, digestOf("abc"));
      `,
    );
    expect(await client.node(["program.js", app.base])).toEqual({
      code: 0,
      stdout: "<memories>\n- in Paris\n</memories>\n\nWhere? ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0\n",
      stderr: "",
    });
  });
});
