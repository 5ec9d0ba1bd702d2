/**
 * `npm test`: builds, then runs the tests beside the checks of types, style and dependencies, and says how long each part took.
 * `-- all` (`npm run test:all`): all tests, also with the newer versions of Node, real clients and frameworks. Ends with 1 where a part
 * failed; the other parts are run all the same.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Versions of Node, besides the one that runs this, on which what is pure has to be the same. */
const OTHER_NODES = ["22", "24"];
/** Suites without native packages, which are compiled for one version of Node. */
const PORTABLE = ["test/core"];
/** Where other versions of Node are installed: a folder of its own, kept between runs. */
const NODES = join(".tmp", "nodes");

interface Part {
  readonly name: string;
  readonly minutes: string;
  readonly passed: boolean;
}

const isAll = process.argv.includes("all");
const parts: Part[] = [];
if (await part("build", "npm", ["run", "--silent", "build"])) {
  const tests = part("tests", "npx", ["vitest", "run", ...(isAll ? ["--mode", "all"] : [])]);
  await Promise.all([tests, part("types, style, dependencies", "npm", ["run", "--silent", "check"], "pipe")]);
  // Side by side: they install packages for half of their time.
  if (isAll)
    await Promise.all([
      part("clients", "npm", ["run", "--silent", "clients"], "pipe"),
      part("adapters", "npm", ["run", "--silent", "adapters"], "pipe"),
      onOtherNodes(),
    ]);
}
console.log("\nMinutes, by part:");
for (const { name, minutes, passed } of parts) console.log(`  ${minutes}  ${name}${passed ? "" : ": FAILED"}`);
process.exitCode = parts.every(({ passed }) => passed) ? 0 : 1;

/** Runs one part; its output is shown at once, or through a `pipe`: in one piece when it ends, so that it does not break into another part's. */
async function part(
  name: string,
  command: string,
  args: readonly string[],
  output: "inherit" | "pipe" = "inherit",
): Promise<boolean> {
  const since = performance.now();
  const child = spawn(command, args, { stdio: ["ignore", output, output] });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => said.push(piece));
  const passed = await new Promise<boolean>((resolve) => {
    child.once("error", () => resolve(false));
    child.once("close", (code) => resolve(code === 0));
  });
  process.stdout.write(Buffer.concat(said));
  parts.push({ name, minutes: ((performance.now() - since) / 60_000).toFixed(1).padStart(5), passed });
  return passed;
}

async function onOtherNodes(): Promise<void> {
  for (const version of OTHER_NODES) await onNode(version);
}

/** The portable suites on a version of Node, as the registry's package `node` brings it; properties as often as in `npm test`. */
async function onNode(version: string): Promise<void> {
  const folder = join(NODES, version);
  const binary = join(folder, "node_modules/node/bin/node");
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
    const quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
    if (
      !(await part(`Node ${version}, installed`, "npm", ["install", ...quiet, "--prefix", folder, `node@${version}`]))
    )
      return;
  }
  await part(`core suites on Node ${version}`, binary, ["node_modules/vitest/vitest.mjs", "run", ...PORTABLE]);
}
