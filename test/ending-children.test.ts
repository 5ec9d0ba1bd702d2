import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { childOutput } from "./child-output.js";
import { endingWithUs } from "./ending-children.js";

/** A program that starts a child which would run for ever and holds its output open, and goes on as told. */
const programThen = (rest: string) => `
  import { spawn } from "node:child_process";
  import { endingWithUs, endOnSignals } from ${JSON.stringify(fileURLToPath(new URL("./ending-children.ts", import.meta.url)))};
  endOnSignals();
  const forever = "process.stdout.write('runs'); setInterval(() => {}, 1_000)";
  endingWithUs(spawn(process.execPath, ["-e", forever], { stdio: ["ignore", "inherit", "ignore"] }));
  process.stdin.once("data", () => { ${rest} });
`;

describe("a child process of a benchmark", () => {
  it.each([
    ["fails", `throw new Error("something else went wrong");`, 1],
    ["is told to end", `process.kill(process.pid, "SIGTERM");`, 143],
    ["ends by itself", "process.exit(0);", 0],
  ])("is gone when the benchmark %s", async (_how, rest, expected) => {
    const args = ["--import", "tsx", "--input-type=module", "--eval", programThen(rest)];
    const program = endingWithUs(spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"] }));
    const output = childOutput(program);
    await once(program.stdout, "data");
    program.stdin.write("go on");
    // Comes when nobody holds the output any more, the child neither.
    const [code] = await once(program, "close");
    expect([code, output.stdout]).toEqual([expected, "runs"]);
  });
});
