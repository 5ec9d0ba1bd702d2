import { MemoryClient } from "mem0ai";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type AgentEngine, agentEngine, ENGINE_REPORTS } from "../clients/agent-engine.js";
import { startPlatformServer, type WireServer } from "../memory/mem0-wire-server.js";
import { runPageProgram } from "./page-program.js";

const KEY = "m0-key";

describe("the program of docs/mem0.md", () => {
  let engine: AgentEngine;
  let server: WireServer;
  beforeEach(async () => {
    vi.stubEnv("MEM0_TELEMETRY", "false");
    // A platform that does not answer its ping is told of with every call.
    vi.spyOn(console, "error").mockImplementation(() => {});
    vi.spyOn(console, "warn").mockImplementation(() => {});
    engine = await agentEngine();
    server = await startPlatformServer(KEY);
    const memory = new MemoryClient({ apiKey: KEY, host: server.url });
    await memory.add([{ role: "user", content: "Ana is vegetarian." }], { userId: "ana", infer: false });
  });
  afterEach(async () => {
    await server.close();
    await engine.close();
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
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
        MEM0_API_KEY: KEY,
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
