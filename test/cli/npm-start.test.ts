import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { childOutput } from "../child-output.js";
import { endingWithUs } from "../ending-children.js";

const ROOT = resolve(import.meta.dirname, "../..");

describe("npm start", () => {
  const directory = mkdtempSync(join(tmpdir(), "memprefix-start-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it("hands a signal on to the service: npm's own shell would take it, and leave the service running", async () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      scripts: { start: string };
    };
    // As npm runs it, but that a shell which does more than one thing never gives its place to the last.
    const child = spawn("sh", ["-c", `true\n${scripts.start.replace("npm run --silent build && ", "")}\n`], {
      cwd: ROOT,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: directory,
        MEMPREFIX_DATA_DIR: join(directory, "data"),
        MEMPREFIX_PORT: "0",
        MEMPREFIX_SOURCE: "none",
      },
    });
    endingWithUs(child);
    const output = childOutput(child);
    const ended = new Promise((done) => child.once("exit", (code, signal) => done({ code, signal })));
    const address = await vi.waitFor(() => {
      const [, found] = /listens on (\S+)\n/.exec(output.stdout) ?? [];
      if (found === undefined) throw new Error(`it does not listen: ${output.stderr}`);
      return found;
    });
    child.kill("SIGTERM");
    expect(await ended).toEqual({ code: 0, signal: null });
    await expect(fetch(`${address}/healthz`)).rejects.toThrow("fetch failed");
  });
});
