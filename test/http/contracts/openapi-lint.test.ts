import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { servedApp } from "../server/served-app.js";

const require = createRequire(import.meta.url);

/** The executable behind `npx redocly`. */
const REDOCLY = join(dirname(require.resolve("@redocly/cli/package.json")), "bin/cli.js");

const report = z.object({ problems: z.array(z.object({ ruleId: z.string(), message: z.string() })) });

/** What `redocly lint` has to say of a document, by its recommended rules. */
function problemsOf(folder: string, document: string): Promise<readonly string[]> {
  const path = join(folder, "openapi.json");
  writeFileSync(path, document);
  const env = {
    PATH: process.env["PATH"],
    HOME: folder,
    REDOCLY_TELEMETRY: "off",
    REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
  };
  const args = [REDOCLY, "lint", path, "--extends=recommended", "--format=json", "--max-problems=1000"];
  const options = { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((ended) => {
    execFile(process.execPath, args, options, (_error, stdout) =>
      ended(report.parse(JSON.parse(stdout)).problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)),
    );
  });
}

describe.each([
  ["without a webhook", {}],
  ["with one", { MEMSTEM_WEBHOOK_TOKEN: "a-webhook-token-of-32-characters" }],
])("the OpenAPI document %s", (_what, environment) => {
  const app = servedApp({ environment });

  it("keeps redocly's recommended rules, warnings included", async () => {
    const { text } = await app.send("GET", "/openapi.json");
    expect(await problemsOf(app.dataDir, text)).toEqual([]);
  });
});
