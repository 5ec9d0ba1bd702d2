import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { ROOT, readPages, samplesOf } from "./pages.js";
import { runningService } from "./running-service.js";

const MEMPREFIX = `node ${join(ROOT, "dist/cli/main.js")}`;

/** Times and how long something took, which are others on every machine. */
const inAnyTime = (text: string) => text.replaceAll(/\d+(\.\d+)? (ms|s|min)\b/g, "some time");

const pages = readPages()
  .map((page) => ({ path: page.path, samples: samplesOf(page).filter(({ language }) => language === "sh") }))
  .filter(({ samples }) => samples.some(({ shown }) => shown !== null));

const HAS_JQ = spawnSync("jq", ["--version"]).status === 0;

/** What the machine has, without settings of memprefix's that somebody works with. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("MEMPREFIX_")));

/** The commands of a page that are followed by what they print, in the page's order, against a fresh service. */
describe.each(pages)("$path", ({ samples }) => {
  const service = runningService();

  it.for(samples.filter(({ shown }) => shown !== null))(
    "line $line prints what it says",
    async ({ text, shown }, { skip }) => {
      skip(!HAS_JQ && text.includes("| jq"), "there is no jq");
      const runnable = text
        .replaceAll(/(?:localhost|127\.0\.0\.1):4600\b/g, `127.0.0.1:${service.port}`)
        .replaceAll("npx memprefix", MEMPREFIX);
      const { stdout: output } = await promisify(execFile)("bash", ["-c", runnable], { cwd: service.directory, env });
      expect(inAnyTime(output.trimEnd())).toBe(inAnyTime(shown?.trimEnd() ?? ""));
    },
  );
});

it("the README shows what two calls answer", () => {
  expect(pages.find(({ path }) => path === "README.md")?.samples.filter(({ shown }) => shown !== null)).toHaveLength(2);
});
