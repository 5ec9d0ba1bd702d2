import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, type ModelMessage, wrapLanguageModel } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSettings } from "../../src/cli/settings.js";
import { memstemMiddleware } from "../../src/integrations/ai-sdk.js";
import { type AgentEngine, agentEngine } from "../clients/agent-engine.js";
import { FACTS } from "../clients/client-program.js";
import { brokenPrefixes } from "../clients/tried-client.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { type StartedApp, startApp } from "../http/server/started-app.js";
import { type FactsMemstem, factsMemstem } from "./own-facts.js";

describe("the AI SDK's middleware in front of memstem's proxy", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "memstem-proxied-"));
  const faults: unknown[] = [];
  let engine: AgentEngine;
  let facts: FactsMemstem;
  let app: StartedApp;
  beforeAll(async () => {
    engine = await agentEngine("openai");
    facts = factsMemstem();
    const settings = readSettings({
      MEMSTEM_DATA_DIR: dataDir,
      MEMSTEM_SOURCE: "none",
      MEMSTEM_UPSTREAM_URL: engine.url,
    });
    app = await startApp(settings, answeringSource(FACTS), { log: [], faults });
  });
  afterAll(async () => {
    await app.close();
    await facts.close();
    await engine.close();
    rmSync(dataDir, { recursive: true });
  });

  it("has its memories once, from the middleware alone", async () => {
    const headers = { "x-memstem-user": "ana", "x-memstem-conversation": "trip" };
    const provider = createOpenAI({ baseURL: `${app.base}/v1`, apiKey: "the engine's", headers });
    const middleware = memstemMiddleware({ memstem: facts.memstem, userId: "ana", conversationId: "trip" });
    const messages: ModelMessage[] = [];
    for (const content of ["Tea?", "And cake?"]) {
      messages.push({ role: "user", content });
      const model = wrapLanguageModel({ model: provider("gpt-5-mini"), middleware });
      const { response } = await generateText({ model, messages });
      messages.push(...response.messages);
    }
    expect(brokenPrefixes(engine.served)).toEqual([]);
    expect(JSON.stringify(engine.served)).not.toContain(FACTS.at(-1));
    expect(facts.reports).toHaveLength(2);
    expect(faults).toEqual([]);
  });
});
