import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentEngine, agentEngine, ENGINE_REPORTS } from "../clients/agent-engine.js";
import { MEM0_KEY, platformWith } from "../memory/mem0-platform.js";
import type { WireServer } from "../memory/mem0-wire-server.js";
import { runPageProgram } from "./page-program.js";

describe("the program of docs/mem0.md", () => {
  let engine: AgentEngine;
  let server: WireServer;
  beforeEach(async () => {
    engine = await agentEngine();
    ({ server } = await platformWith("Ana is vegetarian."));
  });
  afterEach(async () => {
    await server.close();
    await engine.close();
  });

  it.each(ENGINE_REPORTS)(
    "answers from memories, and adds what was said, of an engine that reports %s",
    async (reports) => {
      await engine.close();
      engine = await agentEngine(reports);
      const { code, stdout } = await runPageProgram("docs/mem0.md", {
        OPENAI_BASE_URL: engine.url,
        OPENAI_API_KEY: "the engine's",
        MEM0_HOST: server.url,
        MEM0_API_KEY: MEM0_KEY,
        MEM0_TELEMETRY: "false",
      });
      expect(code).toBe(0);
      expect(stdout.trim().split("\n")).toEqual(["Noted: Where should we eat tonight?", "Noted: And tomorrow?"]);
      const [first, second] = engine.served.map(({ asked }) => asked.prompt);
      expect(first?.every((part, at) => second?.[at] === part)).toBe(true);
      // As an item of the list; a line of the second turn may quote it again.
      expect(second?.join("\n").split("- Ana is vegetarian.")).toHaveLength(2);
      const added = server.requests.filter(({ path }) => path === "/v3/memories/add/").slice(1);
      expect(added).toHaveLength(2);
      expect(JSON.stringify(added)).not.toContain("memories>");
    },
  );
});
