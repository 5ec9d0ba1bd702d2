import { spawnSync } from "node:child_process";
import { z } from "zod";
import { shippedPackages } from "./shipped-packages.js";

/*
 * Asks the registry which of the packages that memprefix runs with are known to be vulnerable. Ends with 1 where one is, at severity high
 * or critical, and with 2 where the registry could not be asked: then nothing is known. The registry is asked of all locked packages: the
 * optional parts, which count, are development dependencies.
 */

const FAILING = ["high", "critical"];

const answer = z.union([
  z.object({ vulnerabilities: z.record(z.string(), z.object({ severity: z.string(), nodes: z.array(z.string()) })) }),
  z.object({ message: z.string() }),
]);

function audit(): number {
  const args = ["audit", "--json", "--package-lock-only", "--fetch-retries=0"];
  const { stdout } = spawnSync("npm", args, { encoding: "utf8" });
  const read = answer.safeParse(jsonIn(stdout));
  if (!read.success || "message" in read.data) {
    const why = read.success && "message" in read.data ? read.data.message : "npm gave no answer";
    process.stderr.write(`audit: the registry could not be asked, so nothing is known: ${why}\n`);
    return 2;
  }
  const shipped = shippedPackages();
  const all = Object.entries(read.data.vulnerabilities);
  const found = all.filter(([, { nodes }]) => nodes.some((path) => shipped.has(path)));
  for (const [name, { severity }] of found) process.stdout.write(`${severity}: ${name}\n`);
  process.stdout.write(`${found.length} vulnerable packages\n`);
  return found.some(([, { severity }]) => FAILING.includes(severity)) ? 1 : 0;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

process.exitCode = audit();
