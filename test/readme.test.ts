import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const memstem = `node ${join(root, "dist/cli/main.js")}`;
const readme = readFileSync(join(root, "README.md"), "utf8");

/** Shell blocks that are followed by what they print, in the README's order. */
function printedCommands(): { command: string; printed: string }[] {
  const blocks = [...readme.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, text]) => ({
    language,
    text: text ?? "",
  }));
  return blocks.flatMap(({ language, text }, at) => {
    const next = blocks[at + 1];
    const prints =
      language === "sh" &&
      !text.includes("npm ci") &&
      next !== undefined &&
      next.language !== "sh" &&
      next.language !== "ts";
    return prints ? [{ command: text, printed: next.text }] : [];
  });
}

describe("the README", () => {
  const directory = mkdtempSync(join(tmpdir(), "memstem-readme-"));
  let service: ChildProcess | undefined;
  let port = "";

  beforeAll(async () => {
    service = spawn("node", [join(root, "dist/cli/main.js"), "serve"], {
      cwd: directory,
      env: { ...process.env, MEMSTEM_PORT: "0", MEMSTEM_LOG_LEVEL: "silent" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(service.stdout ?? service, "data");
    port = /:(\d+)\s*$/.exec(String(line))?.[1] ?? "";
  });
  afterAll(async () => {
    service?.kill();
    if (service?.exitCode === null) await once(service, "exit");
    rmSync(directory, { recursive: true, force: true });
  });

  it("has the examples that this test is about", () => {
    expect(printedCommands().length).toBeGreaterThanOrEqual(4);
  });

  it.each(printedCommands())("prints what it says: $command", ({ command, printed }) => {
    const runnable = command.replaceAll("localhost:4600", `127.0.0.1:${port}`).replaceAll("npx memstem", memstem);
    const output = execFileSync("bash", ["-c", runnable], { cwd: directory, encoding: "utf8" });
    expect(output.trimEnd()).toBe(printed.trimEnd());
  });

  it("lists the settings as --help does", () => {
    const help = execFileSync("bash", ["-c", `${memstem} serve --help`], { encoding: "utf8" });
    const listed = help.slice(help.indexOf("  MEMSTEM_HOST")).trimEnd();
    expect(readme).toContain(`\n${listed}\n`);
  });
});
