import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, it } from "vitest";

/** What npm remembers of advisories must not be another test's. */
const caches: string[] = [];
afterAll(() => {
  for (const cache of caches) rmSync(cache, { recursive: true, force: true });
});

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Runs one of the package's scripts. */
function script(name: string, environment: Readonly<Record<string, string>> = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const cache = mkdtempSync(join(tmpdir(), "memprefix-npm-"));
    caches.push(cache);
    const env = { ...process.env, npm_config_cache: cache, ...environment };
    const options = { cwd: root, env, maxBuffer: 16 * 1024 * 1024 };
    execFile("npm", ["run", "--silent", name], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describe("npm run audit", () => {
  let registry: Server | undefined;
  afterEach(() => {
    registry?.closeAllConnections();
    registry?.close();
  });

  /** A registry that knows these advisories and no packages. */
  async function registryWith(advisories: object): Promise<string> {
    registry = createServer((request, response) => {
      request.resume();
      const asksAdvisories = request.url?.endsWith("/advisories/bulk") === true;
      response.writeHead(asksAdvisories ? 200 : 404, { "content-type": "application/json" });
      response.end(asksAdvisories ? JSON.stringify(advisories) : "{}");
    }).listen(0, "127.0.0.1");
    await once(registry, "listening");
    return `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
  }

  const advisory = (severity: string, name = "hono") => ({
    [name]: [
      {
        id: 1,
        url: "https://example.org/1",
        title: "Bad",
        severity,
        vulnerable_versions: "*",
        cwe: [],
        cvss: { score: 9 },
      },
    ],
  });

  it.each([
    ["nothing known", {}, 0, /^0 vulnerable packages\n$/],
    ["something moderate", advisory("moderate"), 0, /^moderate: hono/m],
    ["something critical", advisory("critical"), 1, /^critical: hono/m],
    ["something critical in an optional part", advisory("critical", "mem0ai"), 1, /^critical: mem0ai/m],
    ["something critical that only builds it", advisory("critical", "drizzle-kit"), 0, /^0 vulnerable packages\n$/],
  ])("with %s ends as it should", async (_what, advisories, code, says) => {
    const url = await registryWith(advisories);
    const ended = await script("audit", { npm_config_registry: url });
    expect(ended.stdout).toMatch(says);
    expect(ended.code).toBe(code);
  });

  it("says that nothing is known where no registry answers", async () => {
    const url = await registryWith({});
    registry?.close();
    const ended = await script("audit", { npm_config_registry: url });
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toContain("audit: the registry could not be asked, so nothing is known");
  });
});
