/**
 * `npm test`: builds, then runs the tests beside the checks of types, style and dependencies, and says how long each part took.
 * `-- all` (`npm run test:all`): all tests, also with the newer versions of Node, real clients and frameworks. Ends with 1 where a part
 * failed; the other parts are run all the same.
 */
import { spawn } from "node:child_process";

/** Versions of Node, besides the one that runs this, on which what is pure has to be the same. */
const OTHER_NODES = ["22", "24"];
/** Suites without native packages, which are compiled for one version of Node. */
const PORTABLE = ["test/core"];

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

/** The portable suites on versions of Node, as the registry's package `node` brings them; properties as often as in `npm test`. */
async function onOtherNodes(): Promise<void> {
  for (const version of OTHER_NODES) {
    const vitest = ["node", "node_modules/vitest/vitest.mjs", "run", ...PORTABLE];
    await part(`core suites on Node ${version}`, "npx", ["--yes", "--package", `node@${version}`, ...vitest]);
  }
}
