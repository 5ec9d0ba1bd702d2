import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readDotEnv } from "../../src/cli/dot-env.js";
import { commands } from "./memprefix-command.js";

describe("memprefix serve", () => {
  const memprefix = commands();
  let directory = "";
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "memprefix-env-"));
    vi.spyOn(process, "cwd").mockReturnValue(directory);
  });
  afterEach(() => rmSync(directory, { recursive: true }));
  const put = (...lines: readonly string[]) => writeFileSync(join(directory, ".env"), lines.join("\n"));

  it("reads .env in the working directory; the environment comes before it, a flag before both", async () => {
    put("# Mine", "MEMPREFIX_TOP_K=many", 'MEMPREFIX_UPSTREAM_URL="nowhere"', "MEMPREFIX_PROT=1");
    const refused = await memprefix.run(["serve", "--port", "x"], { environment: { MEMPREFIX_SOURCE: "none" } });
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("MEMPREFIX_PROT is not a setting and is ignored; the nearest is MEMPREFIX_PORT");
    expect(refused.stderr).toContain("--port: must be a whole number");
    expect(refused.stderr).toContain("MEMPREFIX_TOP_K: must be a whole number");
    expect(refused.stderr).toContain("MEMPREFIX_UPSTREAM_URL: must be an http or https address");
    const environment = { MEMPREFIX_TOP_K: "3", MEMPREFIX_SOURCE: "none", MEMPREFIX_PORT: "x" };
    const flags = [
      ...["--upstream", "http://127.0.0.1:1/v1", "--port", "0", "--host", "127.0.0.2", "--data-dir"],
      memprefix.dataDir,
    ];
    const begun = memprefix.begin(["serve", ...flags], environment);
    expect(await begun.printed(/listens on (\S+)/)).toMatch(/^http:\/\/127\.0\.0\.2:/);
    begun.kill("SIGTERM");
    expect(await begun.ended).toMatchObject({ code: 0 });
  });

  it("is the only command that does, and needs none", async () => {
    expect(readDotEnv(directory)).toEqual({});
    put("MEMPREFIX_TOP_K=many");
    expect(await memprefix.run(["keys", "add"])).toMatchObject({ code: 0 });
  });
});
