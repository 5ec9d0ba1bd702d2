import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it, type TestContext } from "vitest";
import { answeringSource } from "../http/routes/answering-source.js";
import { openAiEngine, sendEvents, sendJson, streamedAnswer, wholeAnswer } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";

const run = promisify(execFile);
const PACKAGES = ["litellm==1.110.2", "mem0ai==2.2.1"];
const INSTALL_MS = 600_000;
const FACT = "Caroline drinks green tea";
const COUNTS = { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42 };
const USAGE = { ...COUNTS, prompt_tokens_details: { cached_tokens: 0 } };
/** What Mem0's extraction is answered with, in the form of any of its versions. */
const FOUND = { id: "0", text: "Likes trains", event: "ADD" };
const EXTRACTED = JSON.stringify({ facts: [FOUND.text], memory: [FOUND] });

const LITELLM = `import os, litellm
litellm.telemetry = False
for model in ["openai/m", "hosted_vllm/m"]:
    for stream in [False, True]:
        answer = litellm.completion(
            model=model, api_base=os.environ["BASE"], api_key="sk-of-the-client", user="caroline", stream=stream,
            messages=[{"role": "user", "content": "Which tea?"}])
        if stream:
            print("".join(chunk.choices[0].delta.content or "" for chunk in answer))
        else:
            print(answer.choices[0].message.content)
`;

const MEM0 = `import os
from mem0 import Memory
key = {"api_key": "sk-of-the-client", "openai_base_url": os.environ["BASE"]}
memory = Memory.from_config({
    "llm": {"provider": "openai", "config": {"model": "m", **key}},
    "embedder": {"provider": "openai", "config": {"model": "e", "embedding_dims": 8, **key}},
    "vector_store": {"provider": "qdrant", "config": {"path": os.environ["HOME"] + "/qdrant", "embedding_model_dims": 8}},
    "history_db_path": os.environ["HOME"] + "/history.db",
})
memory.add([{"role": "user", "content": "I like trains."}], user_id="caroline")
print(len(memory.search("trains", filters={"user_id": "caroline"})["results"]))
`;

describe("clients in Python that can be given nothing but a base URL", () => {
  let folder = "";
  let python = "";
  let missing = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "memprefix-python-clients-"));
    if (spawnSync("python3.11", ["--version"]).status !== 0) {
      missing = "there is no python3.11";
      return;
    }
    try {
      await run("python3.11", ["-m", "venv", join(folder, "venv")]);
      python = join(folder, "venv/bin/python");
      await run(python, ["-m", "pip", "install", "--quiet", "--no-compile", ...PACKAGES], { timeout: INSTALL_MS });
    } catch {
      missing = `pip could not install ${PACKAGES.join(" and ")}`;
    }
  }, INSTALL_MS + 60_000);
  afterAll(() => rm(folder, { recursive: true }));

  const engine = openAiEngine();
  const source = answeringSource([FACT]);
  const app = servedApp({ source: () => source, upstream: engine });
  beforeEach(() => {
    source.queries.length = 0;
    engine.behave(({ url, body, raw }, response) => {
      if (url === "/v1/embeddings") {
        const { input } = JSON.parse(raw) as { input: string | readonly string[] };
        const data = [input].flat().map((_, index) => ({ object: "embedding", index, embedding: Array(8).fill(0.3) }));
        return sendJson(response, 200, { object: "list", model: "e", data, usage: COUNTS });
      }
      const isExtraction = !raw.includes("Which tea?");
      if (body.stream) return sendEvents(response, streamedAnswer("Green tea.", USAGE));
      return sendJson(response, 200, wholeAnswer(isExtraction ? EXTRACTED : "Green tea.", USAGE));
    });
  });

  /** Runs a program with the packages, against a base URL of the service's. */
  async function program(context: TestContext, text: string, base: string): Promise<string> {
    if (missing !== "") context.skip(missing);
    const path = join(folder, "program.py");
    await writeFile(path, text);
    const quiet = { MEM0_TELEMETRY: "False", MEM0_DIR: folder };
    const env = { PATH: process.env["PATH"], HOME: folder, BASE: app.base + base, ...quiet };
    const { stdout } = await run(python, [path], { cwd: folder, env, timeout: 120_000 });
    return stdout;
  }

  it("LiteLLM, which drops the user, gets answers with the user's memories", async (context) => {
    expect(await program(context, LITELLM, "/users/caroline/v1")).toBe("Green tea.\n".repeat(4));
    expect(engine.requests).toHaveLength(4);
    for (const { raw } of engine.requests) expect(raw).toContain(FACT);
    expect(source.queries.map(({ scope }) => scope.userId)).toEqual(Array(4).fill("caroline"));
  }, 180_000);

  it("Mem0's own Memory gets its prompts to the engine as they are", async (context) => {
    expect(Number(await program(context, MEM0, "/plain/v1"))).toBeGreaterThan(0);
    const paths = new Set(engine.requests.map(({ url }) => url));
    expect(paths).toEqual(new Set(["/v1/chat/completions", "/v1/embeddings"]));
    for (const { raw } of engine.requests) expect(raw).not.toContain(FACT);
    expect(source.queries).toEqual([]);
    expect(app.faults).toEqual([]);
  }, 180_000);
});
