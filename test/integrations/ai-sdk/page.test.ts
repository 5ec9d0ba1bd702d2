import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentEngine, agentEngine } from "../../clients/agent-engine.js";
import { brokenPrefixes } from "../../clients/checked-prompts.js";
import { runPageProgram } from "../page-program.js";

describe("the program of docs/ai-sdk.md", () => {
  let engine: AgentEngine;
  beforeAll(async () => {
    engine = await agentEngine();
  });
  afterAll(() => engine.close());

  it("runs as it stands, and its prompts are cached from step to step", async () => {
    const { code, stdout, stderr } = await runPageProgram("docs/ai-sdk.md", { OPENAI_BASE_URL: engine.url });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(engine.served).toHaveLength(4);
    const [first, second, third, fourth] = engine.served.map(({ counted }) => counted.prompt);
    expect(stdout.split("\n")).toEqual([
      `0 of ${first} tokens cached`,
      `${first} of ${second} tokens cached`,
      `${second} of ${third} tokens cached`,
      "Noted: Look up the weather of 2 cities.",
      `${third} of ${fourth} tokens cached`,
      "Noted: Where should we eat tonight?",
      "",
    ]);
    expect(brokenPrefixes(engine.served, ["Ana is vegetarian."])).toEqual([]);
  });
});
