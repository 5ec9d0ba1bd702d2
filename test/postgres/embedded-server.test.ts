import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { testServer } from "./test-server.js";

const server = await testServer();

describe.skipIf(server.url === null)("a process that may have a PostgreSQL server of its own", () => {
  it("ends with its own exit code: a run of tests that failed does not pass", () => {
    const file = JSON.stringify(new URL("embedded-server.ts", import.meta.url).href);
    const program = `const { installedPostgres } = await import(${file});
      await installedPostgres();
      process.exitCode = 3;`;
    const { status, stderr } = spawnSync(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      encoding: "utf8",
    });
    expect(stderr).not.toContain("Error");
    expect(status).toBe(3);
  });
});
