/*
 * Tries a client's program: a process of its own, a real service on a socket, and behind it an engine with a prefix cache that is exact to the
 * token. Whether a prompt begins with the one before is judged by what the engine was sent, and whether usage is fed back by what is stored.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings } from "../../src/cli/settings.js";
import type { MemorySource } from "../../src/memory/memory-source.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { startApp } from "../http/server/started-app.js";
import { type AgentEngine, agentEngine } from "./agent-engine.js";
import { brokenPrefixes, QUESTIONS, REQUESTS, recordedBy, wrongAnswers } from "./checked-prompts.js";
import { FACTS, type Introduction, type Order, type Outcome, type Use } from "./client-program.js";
import { type ProgramPlace, startProgram } from "./running-program.js";

/** A client, and what was found wrong in its conversations. */
export interface TriedClient extends Introduction {
  readonly wrong: readonly string[];
}

/** Has a program hold all conversations that it can, with memprefix or by itself. */
export async function tryClient(place: ProgramPlace): Promise<TriedClient> {
  const program = await startProgram<Introduction, Order, Outcome>(place);
  const engine = await agentEngine();
  try {
    const { introduction } = program;
    const wrong: string[] = [];
    for (const use of introduction.uses)
      for (const what of await tryUse(engine, introduction.api, use, program.ask)) wrong.push(`${use}: ${what}`);
    return { ...introduction, wrong };
  } finally {
    await engine.close();
    await program.stop();
  }
}

/** A search that finds one fact more each time, the newest first. */
export function growingSource(): MemorySource {
  const source = answeringSource([]);
  let searches = 0;
  return {
    ...source,
    search: (query, signal) => {
      source.found = FACTS.slice(0, 1 + (searches++ % FACTS.length)).toReversed();
      return source.search(query, signal);
    },
  };
}

async function tryUse(
  engine: AgentEngine,
  api: Introduction["api"],
  use: Use,
  hold: (order: Order) => Promise<Outcome>,
): Promise<readonly string[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "memprefix-clients-"));
  const environment = {
    MEMPREFIX_UPSTREAM_URL: engine.url,
    MEMPREFIX_ENGINE_FAMILY: api === "Messages" ? "anthropic" : "generic",
  };
  // Prompts as short as these are not cached where they are billed, and `auto` then drops what it need not keep.
  const given = { MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_SOURCE: "none", MEMPREFIX_RETENTION: "keep" };
  const settings = readSettings({ ...given, ...environment });
  const faults: unknown[] = [];
  const app = await startApp(settings, growingSource(), { log: [], faults });
  const from = { served: engine.served.length, refused: engine.refused.length };
  try {
    const headers = { "x-memprefix-user": "ana", "x-memprefix-conversation": "trip" };
    const questions = QUESTIONS[use];
    const outcome = await hold({ use, session: { base: app.base, engine: engine.url, headers, questions } });
    const served = engine.served.slice(from.served);
    const refused = engine.refused.slice(from.refused);
    const recorded = await recordedBy(join(dataDir, "memprefix.db"), served);
    return [
      ...wrongAnswers(use, outcome),
      ...refused.map((request) => `the engine could not read ${request.slice(0, 2_000)}`),
      ...(served.length === REQUESTS[use] ? [] : [`${served.length} requests instead of ${REQUESTS[use]}`]),
      ...brokenPrefixes(served),
      ...recorded,
      ...faults.map(String),
    ];
  } finally {
    await app.close();
    rmSync(dataDir, { recursive: true });
  }
}
