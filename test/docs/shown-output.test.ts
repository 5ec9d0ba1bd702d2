import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endingWithUs } from "../ending-children.js";
import { ROOT, readPages, samplesOf } from "./pages.js";

const MEMSTEM = `node ${join(ROOT, "dist/cli/main.js")}`;

/** Times and how long something took, which are others on every machine. */
const inAnyTime = (text: string) => text.replaceAll(/\d+(\.\d+)? (ms|s|min)\b/g, "some time");

const pages = readPages()
  .map((page) => ({ path: page.path, samples: samplesOf(page).filter(({ language }) => language === "sh") }))
  .filter(({ samples }) => samples.some(({ shown }) => shown !== null));

/** The commands of a page that are followed by what they print, in the page's order, against a fresh service. */
describe.each(pages)("$path", ({ samples }) => {
  const directory = mkdtempSync(join(tmpdir(), "memstem-docs-"));
  let service: ChildProcess | undefined;
  let port = "";

  beforeAll(async () => {
    service = spawn("node", [join(ROOT, "dist/cli/main.js"), "serve"], {
      cwd: directory,
      env: { ...process.env, MEMSTEM_PORT: "0", MEMSTEM_LOG_LEVEL: "silent" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    endingWithUs(service);
    const [line] = await once(service.stdout ?? service, "data");
    port = /:(\d+)\s*$/.exec(String(line))?.[1] ?? "";
  });
  afterAll(async () => {
    service?.kill();
    if (service?.exitCode === null) await once(service, "exit");
    rmSync(directory, { recursive: true, force: true });
  });

  it.each(samples.filter(({ shown }) => shown !== null))("line $line prints what it says", ({ text, shown }) => {
    const runnable = text
      .replaceAll("localhost:4600", `127.0.0.1:${port}`)
      .replaceAll("127.0.0.1:4600", `127.0.0.1:${port}`)
      .replaceAll("npx memstem", MEMSTEM);
    const output = execFileSync("bash", ["-c", runnable], { cwd: directory, encoding: "utf8" });
    expect(inAnyTime(output.trimEnd())).toBe(inAnyTime(shown?.trimEnd() ?? ""));
  });
});

it("the README shows what two calls answer", () => {
  expect(pages.find(({ path }) => path === "README.md")?.samples.filter(({ shown }) => shown !== null)).toHaveLength(2);
});
