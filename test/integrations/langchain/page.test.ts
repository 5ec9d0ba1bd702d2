import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentEngine, agentEngine } from "../../clients/agent-engine.js";
import { ROOT, samplesOf } from "../../docs/pages.js";
import { standIn } from "../../stand-in.js";
import { runPageProgram } from "../page-program.js";

describe("the program of docs/langchain.md", () => {
  let engine: AgentEngine;
  beforeEach(async () => {
    engine = await agentEngine();
  });
  afterEach(() => engine.close());

  it("answers, and its second prompt begins with the first", async () => {
    const environment = { OPENAI_BASE_URL: engine.url, OPENAI_API_KEY: "the engine's" };
    const { code, stdout, stderr } = await runPageProgram("docs/langchain.md", environment);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trim().split("\n")).toEqual([
      expect.stringMatching(/^0 of \d+ tokens cached$/),
      "Noted: Where should we eat tonight?",
      expect.stringMatching(/^[1-9]\d* of \d+ tokens cached$/),
      "Noted: And tomorrow?",
    ]);
    const prompts = engine.served.map(({ asked }) => asked.prompt);
    expect(prompts[0]?.every((part, at) => prompts[1]?.[at] === part)).toBe(true);
    expect(prompts.join("\n").split("Ana is vegetarian.")).toHaveLength(3);
  });
});

describe("the program of docs/langchain.md, with LangGraph's store", () => {
  it("prints what the page says", async () => {
    /** Stands in for OpenAI's embeddings, which are paid for: texts are near that are of the same place. */
    const server = await standIn(async (incoming, response) => {
      const { input } = JSON.parse(Buffer.concat(await incoming.toArray()).toString()) as { input: string | string[] };
      const data = [input].flat().map((text, index) => {
        const vector = new Float32Array(1_536);
        vector[text.includes("Lisbon") ? 0 : 1] = 1;
        // OpenAI's client asks for this form.
        return { object: "embedding", index, embedding: Buffer.from(vector.buffer).toString("base64") };
      });
      const usage = { prompt_tokens: 1, total_tokens: 1 };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ object: "list", model: "text-embedding-3-small", data, usage }));
    });
    const environment = { OPENAI_BASE_URL: `${server}/v1`, OPENAI_API_KEY: "the engine's" };
    const { code, stdout, stderr } = await runPageProgram("docs/langchain.md", environment, undefined, 2);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const page = readFileSync(join(ROOT, "docs/langchain.md"), "utf8");
    expect(samplesOf({ path: "docs/langchain.md", text: page }).at(-1)?.text).toBe(stdout);
  });
});
