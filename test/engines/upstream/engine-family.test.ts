import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { familyOfMetrics, familyOfModels, RecognisedFamily } from "../../../src/engines/upstream/engine-family.js";
import { openUpstream } from "../../../src/engines/upstream/upstream.js";
import { freePort } from "../../local-server.js";
import { standIn } from "../../stand-in.js";

const models = (...owners: readonly string[]) => ({ data: owners.map((owned_by, at) => ({ id: `m${at}`, owned_by })) });

describe("an engine's family", () => {
  it.each([
    [models("vllm"), "vllm"],
    [models("vllm", "vllm"), "vllm"],
    [models("sglang"), "sglang"],
    [models("llamacpp"), "llamacpp"],
    // A gateway in front of several engines, Ollama, LiteLLM.
    [models("vllm", "sglang"), null],
    [models("library"), null],
    [models("openai"), null],
    [models("toString"), null],
    [{ data: [] }, null],
    [null, null],
  ])("is that of its list of models: %j", (json, family) => {
    expect(familyOfModels(json)).toBe(family);
  });

  it.each([
    ['# HELP vllm:x y\nvllm:num_requests_running{engine="0"} 1.0\n', "vllm"],
    ["sglang:num_running_reqs 0\n", "sglang"],
    ["llamacpp:prompt_tokens_total 5\n", "llamacpp"],
    ["process_cpu_seconds_total 1\n# vllm: none\n", null],
    ["", null],
  ])("is that of its metrics: %j", (exposition, family) => {
    expect(familyOfMetrics(exposition)).toBe(family);
  });

  const upstreamAt = (url: string) => openUpstream({ url, timeoutMs: 5_000 });

  it("is asked for in both places, the metrics beside the API", async () => {
    const paths: string[] = [];
    const url = await standIn(({ url: path = "" }, response) => {
      paths.push(path);
      if (path === "/v1/models") return response.writeHead(401).end("{}");
      return response.end("vllm:num_requests_running 1\n");
    });
    const recognised = new RecognisedFamily();
    await recognised.ask(upstreamAt(`${url}/v1`), () => {});
    expect(recognised.name).toBe("vllm");
    expect(paths).toEqual(["/v1/models", "/metrics"]);
  });

  it("becomes known when an engine that started later answers", async () => {
    const port = await freePort();
    const recognised = new RecognisedFamily();
    onTestFinished(() => recognised.stop());
    const found = new Promise((resolve) => {
      void recognised.ask(upstreamAt(`http://127.0.0.1:${port}/v1`), resolve, 20).then(() => {
        expect(recognised.name).toBeNull();
        const engine = createServer((_request, response) => response.end(JSON.stringify(models("sglang"))));
        engine.listen(port, "127.0.0.1");
        onTestFinished(() => void engine.close());
      });
    });
    expect(await found).toBe("sglang");
    expect(recognised.name).toBe("sglang");
  });
});
