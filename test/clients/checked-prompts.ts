/*
 * What every conversation with the agent engine is checked for, however its prompts were composed: by what the engine was sent, and by what is
 * stored.
 */
import { isDeepStrictEqual } from "node:util";
import { storedExchanges, storedRows } from "../http/routes/stored-rows.js";
import type { ServedPrompt } from "./agent-engine.js";
import { answerTo, lookUp, TRIP } from "./agent-model.js";
import { FACTS, type Outcome, type Use } from "./client-program.js";

/** What the user says. */
export const QUESTIONS: Readonly<Record<Use, readonly string[]>> = {
  json: ["Where should we eat tonight?", "And what can we do tomorrow?", "And after that?"],
  stream: ["Where should we eat tonight?", "And what can we do tomorrow?", "And after that?"],
  tools: [lookUp(1), "And now?"],
  steps: [lookUp(3), "And now?"],
  structured: ["Plan a trip.", "Plan another one."],
};
/** Requests that each conversation takes. */
export const REQUESTS: Readonly<Record<Use, number>> = { json: 3, stream: 3, tools: 3, steps: 5, structured: 2 };

/** Answers that are not the model's. */
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
  // As items of a list; a line may quote the best one again.
  const told = facts.map((fact) => last.split(`- ${fact}`).length - 1);
  return [...broken, ...(told.every((times) => times === 1) ? [] : [`memories stand ${told.join(", ")} times`])];
}

const RECORD_MS = 5_000;

/** What is wrong with what was stored, once nothing is, or it is late. */
export async function settled(wrongNow: () => readonly string[]): Promise<readonly string[]> {
  const deadline = performance.now() + RECORD_MS;
  for (;;) {
    const wrong = wrongNow();
    if (wrong.length === 0 || performance.now() > deadline) return wrong;
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** What is wrong with what was stored: prompts without the engine's counts, or of another user or conversation. */
export function recordedBy(database: string, served: readonly ServedPrompt[]): Promise<readonly string[]> {
  return settled(() => wrongRecords(database, served));
}

function wrongRecords(database: string, served: readonly ServedPrompt[]): readonly string[] {
  const { requests, turns } = storedExchanges(database);
  const users = (storedRows(database).get("scopes") ?? []).map((row) => row["user_id"]);
  const identity = [users, [...new Set(turns.flatMap(({ turn }) => turn.conversationId ?? []))]];
  const isNamed = isDeepStrictEqual(identity, [["ana"], ["trip"]]);
  const unread = served.flatMap(({ headers, counted, isContinued }, at) => {
    // What the engine has before it is not known here, so its count says nothing.
    if (isContinued) return [];
    const observed = requests.find(({ id }) => id === headers["x-request-id"])?.observed ?? {};
    const isRead = observed.promptTokens === counted.prompt && observed.cachedTokens === counted.cached;
    return isRead ? [] : [`of request ${at}, ${JSON.stringify(counted)} is recorded as ${JSON.stringify(observed)}`];
  });
  return [...(isNamed ? [] : [`named as ${JSON.stringify(identity)}`]), ...unread];
}
