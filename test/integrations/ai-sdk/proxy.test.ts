import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, type ModelMessage, wrapLanguageModel } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSettings } from "../../../src/cli/settings.js";
import { memprefixMiddleware } from "../../../src/integrations/ai-sdk.js";
import { type AgentEngine, agentEngine } from "../../clients/agent-engine.js";
import { brokenPrefixes } from "../../clients/checked-prompts.js";
import { FACTS } from "../../clients/client-program.js";
import { answeringSource } from "../../http/routes/answering-source.js";
import { type StartedApp, startApp } from "../../http/server/started-app.js";
import { type FactsMemprefix, factsMemprefix } from "../own-facts.js";

describe("the AI SDK's middleware in front of memprefix's proxy", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "memprefix-proxied-"));
  const faults: unknown[] = [];
  let engine: AgentEngine;
  let facts: FactsMemprefix;
  let app: StartedApp;
  beforeAll(async () => {
    engine = await agentEngine();
    facts = factsMemprefix();
    const settings = readSettings({
      MEMPREFIX_DATA_DIR: dataDir,
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_UPSTREAM_URL: engine.url,
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
    const headers = { "x-memprefix-user": "ana", "x-memprefix-conversation": "trip" };
    const provider = createOpenAI({ baseURL: `${app.base}/v1`, apiKey: "the engine's", headers });
    const middleware = memprefixMiddleware({ memprefix: facts.memprefix, userId: "ana", conversationId: "trip" });
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
