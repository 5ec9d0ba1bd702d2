import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { OPTIONAL_PACKAGES } from "../../src/cli/package.js";
import { installedPackage } from "./installed-package.js";

const versions = z.record(z.string(), z.string());
const manifest = z
  .object({ dependencies: versions, peerDependencies: versions, devDependencies: versions })
  .parse(JSON.parse(readFileSync(resolve(import.meta.dirname, "../../package.json"), "utf8")));

const INSTALL = `npm install ${OPTIONAL_PACKAGES.embedded.map((name) => `${name}@${manifest.devDependencies[name]}`).join(" ")}`;

describe("the optional parts", () => {
  it("are no dependencies, and are tested at the lowest version of their ranges, which the command names", () => {
    for (const name of OPTIONAL_PACKAGES.embedded) {
      expect(manifest.dependencies[name]).toBeUndefined();
      expect(manifest.peerDependencies[name]).toBe(`^${manifest.devDependencies[name]}`);
    }
  });
});

describe("an installed memprefix without its optional parts", () => {
  const memprefix = installedPackage();
  const run = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
    memprefix.command(args, environment);
  afterEach(() => rmSync(join(memprefix.folder, "memprefix-data"), { recursive: true, force: true }));

  /** What a service says until it listens, how it is, and what it says of a tool that is called. */
  async function served(environment: Readonly<Record<string, string>> = {}) {
    const { address, output, stop } = await memprefix.serve(environment);
    const health: unknown = await (await fetch(`${address}/healthz`, { headers: { connection: "close" } })).json();
    const headers = { "content-type": "application/json", connection: "close" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const tools: unknown = await (await fetch(`${address}/mcp`, { method: "POST", headers, body })).json();
    expect(await stop()).toBe(0);
    return { ...output, health, tools };
  }

  it("serves without a memory source, and says how to get the embedded Mem0", async () => {
    const { stdout, stderr, health, tools } = await served();
    expect(health).toEqual({ status: "ok", version: memprefix.version, source: null });
    const sdk = `npm install @modelcontextprotocol/sdk@${manifest.devDependencies["@modelcontextprotocol/sdk"]}`;
    const detail = `the Model Context Protocol needs packages that are not installed: ${sdk}`;
    expect(tools).toMatchObject({ status: 501, detail });
    expect(stdout).toContain(`for the embedded Mem0: ${INSTALL}\n`);
    expect(stderr).toContain(INSTALL);
    expect((await served({ MEMPREFIX_SOURCE: "none" })).stdout).not.toContain("npm install");
  });

  const NEEDS = "needs packages that are not installed";
  const hosted = { MEMPREFIX_MEM0_API_KEY: "key", MEMPREFIX_SOURCE: "hosted" };
  const mem0 = `npm install mem0ai@${manifest.devDependencies["mem0ai"]}`;
  const noSource = "MEMPREFIX_WRITE_BACK: needs a memory source; MEMPREFIX_SOURCE is none";
  it.each([
    ["serve", { MEMPREFIX_SOURCE: "embedded" }, `MEMPREFIX_SOURCE: embedded ${NEEDS}: ${INSTALL}`],
    ["serve", hosted, `MEMPREFIX_SOURCE: hosted ${NEEDS}: ${mem0}`],
    ["serve", { MEMPREFIX_WRITE_BACK: "on" }, `${noSource}: ${INSTALL}`],
    ["demo", {}, `demo: ${NEEDS}: ${INSTALL}`],
    ["eval locomo --data locomo.json --out run", {}, `eval: ${NEEDS}: ${INSTALL}`],
  ])("says in one line what %s with %j needs", async (command, environment, says) => {
    const code = command === "serve" ? 2 : 1;
    expect(await run(command.split(" "), environment)).toEqual({ code, stdout: "", stderr: `memprefix: ${says}\n` });
  });

  it("does not leave memories unread that an embedded Mem0 kept", async () => {
    mkdirSync(join(memprefix.folder, "memprefix-data/mem0"), { recursive: true });
    const { code, stderr } = await run(["serve"]);
    expect(code).toBe(2);
    expect(stderr).toContain("MEMPREFIX_SOURCE: must be said: memprefix-data has memories of the embedded Mem0");
    expect(stderr).toContain(INSTALL);
    expect((await served({ MEMPREFIX_SOURCE: "none" })).health).toMatchObject({ source: null });
  });

  it("has a library that needs none of them, for a source of the caller's own either", async () => {
    memprefix.write(
      "own.js",
      `
      import { createMemprefix } from "memprefix";
      const source = { search: async (query) => [{ id: "m-1", memory: "in Paris" }] };
      for (const options of [{ source }, {}]) {
        const memprefix = createMemprefix({ dataDir: "own-data", ...options });
        const { blocks } = await memprefix.compose({ userId: "ada", query: "Where?" });
        console.log(blocks.length);
        await memprefix.close();
      }
      try {
        createMemprefix({ dataDir: "own-data", source: { kind: "embedded" } });
      } catch (error) {
        console.log(error.name, JSON.stringify(error.issues));
      }
      `,
    );
    const { code, stdout, stderr } = await memprefix.node(["own.js"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const message = `embedded needs packages that are not installed: ${INSTALL}`;
    expect(stdout).toBe(`1\n0\nInvalidRequestError ${JSON.stringify([{ field: "source.kind", message }])}\n`);
  });

  it("has all of it once they are installed", async () => {
    memprefix.install(OPTIONAL_PACKAGES.embedded);
    expect((await served()).health).toMatchObject({ source: "embedded" });
    const demo = await run(["demo", "--limit", "1"]);
    expect(demo.code).toBe(0);
    expect(demo.stdout).toMatch(/memprefix .*fewer/);
  });
});
