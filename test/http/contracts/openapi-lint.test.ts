import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { servedApp } from "../server/served-app.js";

const require = createRequire(import.meta.url);

/** The executable behind `npx redocly`. */
const REDOCLY = join(dirname(require.resolve("@redocly/cli/package.json")), "bin/cli.js");

const report = z.object({ problems: z.array(z.object({ ruleId: z.string(), message: z.string() })) });

const WEBHOOK = { MEMPREFIX_WEBHOOK_TOKEN: "a-webhook-token-of-32-characters" };

describe("the OpenAPI document", () => {
  const apps = { without: servedApp(), with: servedApp({ environment: WEBHOOK }) };

  it("keeps redocly's recommended rules, warnings included, without a webhook and with one", async () => {
    const folder = apps.with.dataDir;
    const files = Object.keys(apps).map((webhook) => join(folder, `${webhook}.json`));
    for (const [at, app] of Object.values(apps).entries())
      writeFileSync(files[at] ?? "", (await app.send("GET", "/openapi.json")).text);
    const env = {
      PATH: process.env["PATH"],
      HOME: folder,
      REDOCLY_TELEMETRY: "off",
      REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
    };
    const args = [REDOCLY, "lint", ...files, "--extends=recommended", "--format=json", "--max-problems=1000"];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, env, maxBuffer: 2 ** 26 });
    // A report for each, one behind the other.
    const reports = stdout.split(/(?<=\})\s*(?=\{)/);
    expect(reports).toHaveLength(files.length);
    for (const each of reports) expect(report.parse(JSON.parse(each)).problems).toEqual([]);
  });
});
