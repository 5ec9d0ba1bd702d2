import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { childOutput } from "../../child-output.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine } from "./openai-engine.js";

const ROOT = resolve(import.meta.dirname, "../../..");
const [, SAMPLE = ""] = /```ts\n(.*?)```/s.exec(readFileSync(join(ROOT, "docs/proxy.md"), "utf8")) ?? [];

const OPTIONS = {
  module: "nodenext",
  target: "es2023",
  types: ["node"],
  strict: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  noEmit: true,
};

describe("the client in docs/proxy.md", () => {
  let directory = "";
  beforeAll(() => {
    // Beside node_modules, where the real client is found.
    mkdirSync(join(ROOT, ".tmp"), { recursive: true });
    directory = mkdtempSync(join(ROOT, ".tmp", "sample-"));
    writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource(["Ana is vegetarian."]), upstream: engine });

  async function run(program: string, ...args: readonly string[]) {
    const child = spawn(process.execPath, [join(ROOT, "node_modules", program), ...args], { cwd: directory });
    const output = childOutput(child);
    const [code] = (await once(child, "close")) as [number];
    return { code, ...output };
  }

  it("is right by OpenAI's own types", async () => {
    writeFileSync(join(directory, "sample.ts"), SAMPLE);
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions: OPTIONS, files: ["sample.ts"] }));
    expect(await run("typescript/bin/tsc", "-p", "tsconfig.json")).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  it("has two prompts sent, of which the second begins with the first", async () => {
    writeFileSync(join(directory, "client.ts"), SAMPLE.replace("http://127.0.0.1:4600", app.base));
    expect(await run("tsx/dist/cli.mjs", "client.ts")).toEqual({ code: 0, stdout: "", stderr: "" });
    const [first, second] = engine.requests.map(({ body }) => body.messages);
    expect(JSON.stringify(first)).toContain("Ana is vegetarian.");
    expect(second?.slice(0, 1)).toEqual(first);
    expect(second).toHaveLength(3);
  });
});
