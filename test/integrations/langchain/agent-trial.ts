import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { afterEach, beforeEach } from "vitest";
import { z } from "zod";
import { createMemprefix } from "../../../src/index.js";
import type { Composing } from "../../../src/integrations/composing.js";
import { type AgentEngine, agentEngine } from "../../clients/agent-engine.js";
import { recordedBy } from "../../clients/checked-prompts.js";
import { FACTS, weatherIn } from "../../clients/client-program.js";
import { remoteMemprefix } from "../remote-memprefix.js";

/** How an adapter reaches memprefix. */
export type Place = "in-process" | "remote";

/** An engine, and memprefix with a search that finds one fact more each time, the newest first. */
export interface Trial {
  readonly engine: AgentEngine;
  readonly memprefix: Composing;
  /** What the adapter is to be given beside it. */
  readonly options: { readonly onError: (error: unknown) => void; readonly memories?: () => unknown };
  /** What the adapter told `onError`. */
  readonly errors: readonly unknown[];
  /** How many searches there were. */
  readonly searches: number;
  /** LangChain's model of OpenAI's at the engine's address. */
  model(name: string): ChatOpenAI;
  recorded(): Promise<readonly string[]>;
}

/** Sets up a trial before each test of a suite, and takes it away after. */
export function agentTrial(place: Place = "in-process"): Trial {
  let dataDir = "";
  let engine: AgentEngine;
  let memprefix: Composing;
  let close: () => Promise<void>;
  let searches = 0;
  const errors: unknown[] = [];
  const search = async () => {
    const found = FACTS.slice(0, 1 + (searches++ % FACTS.length)).toReversed();
    return { results: found.map((memory) => ({ id: `m-${memory}`, memory })) };
  };

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "memprefix-langchain-"));
    engine = await agentEngine();
    searches = 0;
    errors.length = 0;
    const opened =
      place === "remote" ? await remoteMemprefix(dataDir) : opens(createMemprefix({ dataDir, source: { search } }));
    ({ memprefix, close } = opened);
  });
  afterEach(async () => {
    await close();
    await engine.close();
    rmSync(dataDir, { recursive: true });
  });

  return {
    get engine() {
      return engine;
    },
    get memprefix() {
      return memprefix;
    },
    get searches() {
      return searches;
    },
    errors,
    options: { onError: (error) => errors.push(error), ...(place === "remote" ? { memories: search } : {}) },
    model: (name) => new ChatOpenAI({ model: name, apiKey: "the engine's", configuration: { baseURL: engine.url } }),
    recorded: () => recordedBy(join(dataDir, "memprefix.db"), engine.served),
  };
}

function opens(memprefix: ReturnType<typeof createMemprefix>) {
  return { memprefix, close: () => memprefix.close() };
}

/** The tool that the engine's model calls. */
export const weather = tool(({ city }: { city: string }) => weatherIn(city), {
  name: "weather",
  description: "The weather in a city.",
  schema: z.object({ city: z.string() }),
});

export const trip = z.object({ city: z.string(), days: z.number() });
