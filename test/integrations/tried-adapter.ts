/*
 * Tries a framework's adapter: a program in a process of its own, with the framework's real agents, and behind it an engine with a prefix
 * cache that is exact to the token. What is right is judged by what the engine was sent, what memprefix has stored, and what the framework
 * has stored.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readSettings } from "../../src/cli/settings.js";
import { type AgentEngine, agentEngine, type ServedPrompt } from "../clients/agent-engine.js";
import { brokenPrefixes, QUESTIONS, REQUESTS, settled, wrongAnswers } from "../clients/checked-prompts.js";
import { FACTS } from "../clients/client-program.js";
import { type ProgramPlace, type RunningProgram, startProgram } from "../clients/running-program.js";
import { growingSource } from "../clients/tried-client.js";
import { storedExchanges, storedRows } from "../http/routes/stored-rows.js";
import { startApp } from "../http/server/started-app.js";
import type { AdapterIntroduction, AdapterOrder, AdapterUse, Held } from "./adapter-program.js";

type Program = RunningProgram<AdapterIntroduction, AdapterOrder, Held>;
type Way = AdapterIntroduction["ways"][number];

/** Where memprefix is: in the program's process, or a service of its own, which the same code calls. */
const PLACES = ["in-process", "remote"] as const;
type Place = (typeof PLACES)[number];
const REMOTE_USES: ReadonlySet<AdapterUse> = new Set(["stream", "tools"]);

/** What is said, how many requests that takes, and whether each prompt begins with the one before. */
interface Talk {
  readonly questions: readonly string[];
  readonly requests: number;
  readonly isPrefixed: boolean;
}

const WINDOWED = [...QUESTIONS.json, "And in the evening?", "And the day after?"];
const TALKS: Readonly<Record<AdapterUse, Talk>> = {
  json: { questions: QUESTIONS.json, requests: REQUESTS.json, isPrefixed: true },
  stream: { questions: QUESTIONS.stream, requests: REQUESTS.stream, isPrefixed: true },
  tools: { questions: QUESTIONS.tools, requests: REQUESTS.tools, isPrefixed: true },
  steps: { questions: QUESTIONS.steps, requests: REQUESTS.steps, isPrefixed: true },
  structured: { questions: QUESTIONS.structured, requests: REQUESTS.structured, isPrefixed: true },
  window: { questions: WINDOWED, requests: WINDOWED.length, isPrefixed: true },
  together: { questions: QUESTIONS.json, requests: 2 * REQUESTS.json, isPrefixed: false },
  // The agents differ in their tools, with which prompts begin.
  handover: { questions: QUESTIONS.structured, requests: 4, isPrefixed: false },
};

/** What was tried, and what was wrong: empty where it went as it should. */
export interface TriedAdapter {
  readonly what: string;
  readonly wrong: readonly string[];
}

/** Has a program hold its conversations in all ways, with memprefix in both places. */
export async function tryAdapter(place: ProgramPlace): Promise<readonly TriedAdapter[]> {
  const program = await startProgram<AdapterIntroduction, AdapterOrder, Held>(place);
  const tried: TriedAdapter[] = [];
  try {
    for (const way of program.introduction.ways) {
      for (const where of PLACES) {
        const uses = where === "remote" ? way.uses.filter((use) => REMOTE_USES.has(use)) : way.uses;
        for (const use of uses) {
          const wrong = await tryUse(program, way, where, use);
          tried.push({ what: `${way.name}, ${where}, ${use}`, wrong });
        }
      }
    }
    return tried;
  } finally {
    await program.stop();
  }
}

async function tryUse(program: Program, way: Way, where: Place, use: AdapterUse): Promise<readonly string[]> {
  const engine = await agentEngine();
  const dataDir = mkdtempSync(join(tmpdir(), "memprefix-adapters-"));
  const faults: unknown[] = [];
  const settings = readSettings({ MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_SOURCE: "none" });
  const app = where === "remote" ? await startApp(settings, growingSource(), { log: [], faults }) : null;
  try {
    const { questions, requests, isPrefixed } = TALKS[use];
    const memprefix = app === null ? { dataDir } : { url: app.base };
    const session = { engine: engine.url, memprefix, questions, facts: FACTS };
    const outcome = await program.ask({ way: way.name, use, session });
    const recorded = await settled(() => wrongRecords(join(dataDir, "memprefix.db"), engine, use));
    return [
      ...wrongAnswers(use === "structured" ? use : "json", outcome, questions),
      ...engine.refused.map((request) => `the engine could not read ${request.slice(0, 2_000)}`),
      ...(engine.served.length === requests ? [] : [`${engine.served.length} requests instead of ${requests}`]),
      ...(isPrefixed ? brokenPrefixes(engine.served) : repeatedFacts(engine.served)),
      ...("error" in outcome ? [] : wrongStored(outcome)),
      ...recorded,
      ...faults.map(String),
    ];
  } finally {
    await app?.close();
    await engine.close();
    rmSync(dataDir, { recursive: true });
  }
}

/** Memories that a window's prompt has twice, or none at all. */
function repeatedFacts(served: readonly ServedPrompt[]): readonly string[] {
  return served.flatMap(({ asked }, at) => {
    const text = JSON.stringify(asked.prompt);
    const told = FACTS.map((fact) => text.split(`- ${fact}`).length - 1);
    const isRight = told.every((times) => times <= 1) && told.some((times) => times === 1);
    return isRight ? [] : [`in prompt ${at}, memories stand ${told.join(", ")} times`];
  });
}

function wrongStored({ stored }: Held): readonly string[] {
  const questions = Object.values(TALKS).flatMap((talk) => talk.questions);
  if (!questions.some((question) => stored.includes(question))) return [`the framework stored no question: ${stored}`];
  const has = FACTS.some((fact) => stored.includes(fact)) || stored.includes("<memories>");
  return !has ? [] : [`the framework stored ${stored.slice(0, 2_000)}`];
}

/** What is wrong with what memprefix stored: prompts without the engine's counts, or of another user or conversation. */
function wrongRecords(database: string, { served }: AgentEngine, use: AdapterUse): readonly string[] {
  const { requests, turns } = storedExchanges(database);
  const users = (storedRows(database).get("scopes") ?? []).map((row) => row["user_id"]);
  const identity = [users, [...new Set(turns.flatMap(({ turn }) => turn.conversationId ?? []))].toSorted()];
  const isNamed = isDeepStrictEqual(identity, [["ana"], use === "together" ? ["trip", "walk"] : ["trip"]]);
  const counts = requests.map(({ observed }) => [observed?.promptTokens, observed?.cachedTokens]);
  const wanted = served.map(({ counted }) => [counted.prompt, counted.cached]);
  return [
    ...(isNamed ? [] : [`named as ${JSON.stringify(identity)}`]),
    ...(isDeepStrictEqual(counts.toSorted(), wanted.toSorted())
      ? []
      : [`${JSON.stringify(wanted)} is recorded as ${JSON.stringify(counts)}`]),
  ];
}
