import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentEngine, agentEngine } from "../../clients/agent-engine.js";
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
