import type OpenAI from "openai";
import { describe, expect, it, vi } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { clientOf } from "./chat-client.js";
import { openAiEngine, sendEvents, streamedAnswer } from "./openai-engine.js";
import { storedExchanges } from "./stored-rows.js";

const TURNS = 20;

/** Milliseconds before each answer: of a stub, of a gateway with a queue that others fill, and of one whose queue grows with the turns. */
const WAITS: readonly (readonly [string, (turn: number) => number])[] = [
  ["answers at once", () => 0],
  ["has a queue", (turn) => (turn * 2_654_435_761) % 97],
  ["has a queue that grows", (turn) => 4 * turn + ((turn * 40_503) % 29)],
];

describe.each(WAITS)("an engine that %s, whatever it is sent", (_name, waitOf) => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const told = servedApp({ source: () => source, upstream: engine, environment: { MEMPREFIX_ENGINE_COST: "cpu" } });
  const untold = servedApp({ source: () => source, environment: { MEMPREFIX_ENGINE_COST: "cpu" } });

  it("moves no decision: turns are planned as by the configured model", async () => {
    const client = clientOf(told, { "x-memprefix-user": "ada", "x-memprefix-conversation": "c-1" });
    const history: OpenAI.ChatCompletionMessageParam[] = [];
    const planned = [];
    let newest = 0;
    engine.behave(async (_request, response, usage) => {
      await new Promise((later) => setTimeout(later, waitOf(newest)));
      sendEvents(response, streamedAnswer(`Answer number ${newest}.`, usage));
    });
    for (let turn = 0; turn < TURNS; turn++) {
      newest = turn;
      source.found = Array.from({ length: 12 }, (_, n) => `Ada's fact ${7 * turn + n} is about house ${n * 7 + turn}.`);
      history.push({ role: "user", content: `Question number ${turn}?` });
      for await (const _ of await client.chat.completions.create({ model: "stub", messages: history, stream: true }));
      const body = { user_id: "bo", conversation_id: "c-1", messages: history, retention: "auto" };
      const { plan } = await untold.compose(body);
      planned.push([plan.retention, plan.fresh_start]);
      history.push({ role: "assistant", content: `Answer number ${turn}.` });
    }
    const requests = await vi.waitFor(() => {
      const stored = storedExchanges(told.database).requests;
      expect(
        stored.filter(({ observed }) => (observed as { ttftMs?: number } | null)?.ttftMs !== undefined),
      ).toHaveLength(TURNS);
      return stored;
    }, 10_000);
    expect(await told.memprefix.timeLaw()).toBeNull();
    expect(requests.map(({ answer: { plan } }) => [plan.retention, plan.freshStart])).toEqual(planned);
  });
});
