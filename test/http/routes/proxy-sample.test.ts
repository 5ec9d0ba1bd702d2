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
const PAGE = readFileSync(join(ROOT, "docs/proxy.md"), "utf8");
const [, SAMPLE = ""] = /```ts\n(.*?)```/s.exec(PAGE) ?? [];
const [, SHOWN = ""] = /```json\n(.*?)```/s.exec(PAGE) ?? [];

/** Its types are checked with those of every sample, in `test/docs/samples.test.ts`. */
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
  const app = servedApp({
    source: () => answeringSource(["Ana is vegetarian and eats no fish.", "Ana is in Lisbon this week."]),
    upstream: engine,
  });

  it("has two prompts sent, of which the second begins with the first and is the one that is shown", async () => {
    engine.answers.push("Try Jardim das Cerejas.", "See the museum.");
    writeFileSync(join(directory, "client.ts"), SAMPLE.replace("http://127.0.0.1:4600", app.base));
    const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), "client.ts"], { cwd: directory });
    const output = childOutput(child);
    const [code] = (await once(child, "close")) as [number];
    expect({ code, ...output }).toEqual({ code: 0, stdout: "", stderr: "" });
    const [first, second] = engine.requests.map(({ body }) => body.messages);
    expect(second?.slice(0, 1)).toEqual(first);
    expect(second?.map(({ role, content }) => ({ role, content }))).toEqual(JSON.parse(SHOWN));
  });
});
