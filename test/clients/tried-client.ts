/*
 * Tries a client's program: a process of its own, a real service on a socket, and behind it engines with a prefix cache that is exact to the
 * token. Whether a prompt begins with the one before is judged by what the engine was sent, and whether usage is fed back by what is stored.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readSettings } from "../../src/cli/settings.js";
import type { MemorySource } from "../../src/memory/memory-source.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { storedRows } from "../http/routes/stored-rows.js";
import { startApp } from "../http/server/started-app.js";
import { type AgentEngine, agentEngine, type EngineApi, type ServedPrompt } from "./agent-engine.js";
import { answerTo, lookUp, TRIP } from "./agent-model.js";
import { type ClientProgram, FACTS, type Introduction, type Order, type Outcome, type Use } from "./client-program.js";
import { type ProgramPlace, startProgram } from "./running-program.js";

/** What was found wrong in one conversation; empty where it went as it should. */
export interface TriedUse {
  readonly use: Use;
  readonly engine: EngineApi;
  readonly wrong: readonly string[];
}

/** A client and what was tried with it. */
export interface TriedClient extends Introduction {
  /** Of its packages, in their order. */
  readonly versions: readonly string[];
  readonly tried: readonly TriedUse[];
}

/** Engines that a client is tried with: the one that speaks its API first. */
const ENGINES: Readonly<Record<ClientProgram["api"], readonly EngineApi[]>> = {
  "chat completions": ["openai", "anthropic"],
  Responses: ["openai", "chats", "anthropic"],
  Messages: ["anthropic", "openai"],
};

export const QUESTIONS: Readonly<Record<Use, readonly string[]>> = {
  json: ["Where should we eat tonight?", "And what can we do tomorrow?", "And after that?"],
  stream: ["Where should we eat tonight?", "And what can we do tomorrow?", "And after that?"],
  tools: [lookUp(1), "And now?"],
  steps: [lookUp(3), "And now?"],
  structured: ["Plan a trip.", "Plan another one."],
};
/** Requests that each conversation takes. */
export const REQUESTS: Readonly<Record<Use, number>> = { json: 3, stream: 3, tools: 3, steps: 5, structured: 2 };

/** The engine that a client of each API is made for. */
const OWN_ENGINE: Readonly<Record<ClientProgram["api"], EngineApi>> = {
  "chat completions": "chats",
  Responses: "openai",
  Messages: "anthropic",
};

/** Has a program hold all conversations that it can, with all engines that memstem puts behind its API. */
export function tryClient(place: ProgramPlace): Promise<TriedClient> {
  return tryWith(place, (api) => ENGINES[api]);
}

/** Has a program that asks the engine itself hold all conversations that it can. */
export function tryAdapter(place: ProgramPlace): Promise<TriedClient> {
  return tryWith(place, (api) => [OWN_ENGINE[api]]);
}

async function tryWith(
  place: ProgramPlace,
  enginesOf: (api: ClientProgram["api"]) => readonly EngineApi[],
): Promise<TriedClient> {
  const program = await startProgram<Introduction, Order, Outcome>(place);
  const tried: TriedUse[] = [];
  try {
    const { introduction } = program;
    for (const api of enginesOf(introduction.api)) {
      const engine = await agentEngine(api);
      try {
        for (const use of introduction.uses) {
          const wrong = await tryUse(engine, api, use, program.ask);
          tried.push({ use, engine: api, wrong });
        }
      } finally {
        await engine.close();
      }
    }
    const versions = introduction.packages.map((name) => versionOf(place.folder, name));
    return { ...introduction, versions, tried };
  } finally {
    await program.stop();
  }
}

/** All that was found wrong with a client. */
export function wrongIn({ tried }: TriedClient): readonly string[] {
  return tried.flatMap(({ use, engine, wrong }) => wrong.map((what) => `${use}, ${engine}: ${what}`));
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
  api: EngineApi,
  use: Use,
  hold: (order: Order) => Promise<Outcome>,
): Promise<readonly string[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "memstem-clients-"));
  const environment = { MEMSTEM_UPSTREAM_API: api === "anthropic" ? api : "openai", MEMSTEM_UPSTREAM_URL: engine.url };
  const settings = readSettings({ MEMSTEM_DATA_DIR: dataDir, MEMSTEM_SOURCE: "none", ...environment });
  const faults: unknown[] = [];
  const app = await startApp(settings, growingSource(), { log: [], faults });
  const from = { served: engine.served.length, refused: engine.refused.length };
  try {
    const headers = { "x-memstem-user": "ana", "x-memstem-conversation": "trip" };
    const questions = QUESTIONS[use];
    const outcome = await hold({ use, session: { base: app.base, engine: engine.url, headers, questions } });
    const served = engine.served.slice(from.served);
    const refused = engine.refused.slice(from.refused);
    const recorded = await recordedBy(() => wrongRecords(join(dataDir, "memstem.db"), served));
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

export function wrongAnswers(
  use: Use,
  outcome: Outcome,
  questions: readonly string[] = QUESTIONS[use],
): readonly string[] {
  if ("error" in outcome) return [outcome.error];
  const wanted = questions.map((question) => (use === "structured" ? TRIP : answerTo(question)));
  return isDeepStrictEqual(outcome.answers, wanted) ? [] : [`answers ${JSON.stringify(outcome.answers)}`];
}

/** Prompts that do not begin with the one before, and memories that are not there, or there twice. */
export function brokenPrefixes(
  served: readonly ServedPrompt[],
  facts: readonly string[] = FACTS.slice(0, served.length),
): readonly string[] {
  const broken = served.flatMap(({ asked, counted }, at) => {
    const before = served[at - 1];
    if (before === undefined) return [];
    const from = before.asked.prompt.findIndex((part, n) => asked.prompt[n] !== part);
    if (from !== -1) return [`prompt ${at} differs from ${before.asked.prompt[from]}: ${asked.prompt[from]}`];
    // What ends the prompt before is computed anew.
    return counted.cached >= before.counted.prompt - 1 ? [] : [`of prompt ${at}, ${counted.cached} tokens were cached`];
  });
  const last = JSON.stringify(served.at(-1)?.asked.prompt ?? "");
  const told = facts.map((fact) => last.split(fact).length - 1);
  return [...broken, ...(told.every((times) => times === 1) ? [] : [`memories stand ${told.join(", ")} times`])];
}

const RECORD_MS = 5_000;

/** What is wrong with what was stored, once nothing is, or it is late. */
export async function recordedBy(wrongNow: () => readonly string[]): Promise<readonly string[]> {
  const deadline = performance.now() + RECORD_MS;
  for (;;) {
    const wrong = wrongNow();
    if (wrong.length === 0 || performance.now() > deadline) return wrong;
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** What is wrong with what was stored: prompts without the engine's counts, or of another user or conversation. */
function wrongRecords(database: string, served: readonly ServedPrompt[]): readonly string[] {
  const rows = storedRows(database);
  const names = (table: string, column: string) => (rows.get(table) ?? []).map((row) => row[column]);
  const identity = [names("users", "user_id"), names("conversations", "id")];
  const isNamed = isDeepStrictEqual(identity, [["ana"], ["trip"]]);
  const requests = rows.get("requests") ?? [];
  const unread = served.flatMap(({ headers, counted }, at) => {
    const row = requests.find(({ request_id }) => request_id === headers["x-request-id"]);
    const observed = JSON.parse(String(row?.["observed"] ?? "{}")) as Readonly<Record<string, number>>;
    const isRead = observed["promptTokens"] === counted.prompt && observed["cachedTokens"] === counted.cached;
    return isRead ? [] : [`of request ${at}, ${JSON.stringify(counted)} is recorded as ${JSON.stringify(observed)}`];
  });
  return [...(isNamed ? [] : [`named as ${JSON.stringify(identity)}`]), ...unread];
}

function versionOf(folder: string, name: string): string {
  const manifest = readFileSync(join(folder, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(manifest) as { readonly version: string }).version;
}
