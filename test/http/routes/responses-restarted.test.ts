import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readSettings } from "../../../src/cli/settings.js";
import { sendWith } from "../guards/callers.js";
import { type StartedApp, servedApp, startApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine } from "./openai-engine.js";
import { answersResponses, type ReceivedResponses, told } from "./responses-engine.js";
import { columnsHolding, filesHolding } from "./stored-rows.js";

const FACTS = ["Ada drinks green tea", "Ada lives in Paris"];

describe("a client that continues a response after a restart", () => {
  const engine = openAiEngine();
  const source = answeringSource(FACTS);
  const app = servedApp({ source: () => source, upstream: engine });
  const received = () => engine.requests.map(({ raw }) => JSON.parse(raw) as ReceivedResponses);
  let again: StartedApp | undefined;
  beforeEach(() => engine.behave(answersResponses((turn) => `Answer ${turn}.`)));
  afterEach(async () => {
    await again?.close();
    again = undefined;
  });

  /** The service as another process, on the same files. */
  const restarted = async (): Promise<string> => {
    const { url } = engine;
    const settings = readSettings({
      MEMPREFIX_DATA_DIR: app.dataDir,
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_UPSTREAM_URL: url,
    });
    again = await startApp(settings, source, { log: [], faults: app.faults });
    return again.base;
  };
  const ask = async (base: string, input: string, found: number, more: object = {}, user = "ada") => {
    source.found = FACTS.slice(0, found);
    const client = new OpenAI({
      baseURL: `${base}/v1`,
      apiKey: "sk",
      maxRetries: 0,
      defaultHeaders: { connection: "close", "x-memprefix-user": user },
    });
    return (await client.responses.create({ model: "stub-1", input, instructions: "Be kind.", ...more })).id;
  };
  const continuing = (previous_response_id: string) => ({ previous_response_id });
  const factsIn = (sent: unknown) => FACTS.filter((fact) => JSON.stringify(sent).includes(`- ${fact}`));

  it("sends what is new, with the memories that the conversation lacks, from any of its responses", async () => {
    const first = await ask(app.base, "Which tea?", 1);
    const second = await ask(app.base, "Which city?", 2, continuing(first));
    const base = await restarted();
    const third = await ask(base, "And then?", 2, continuing(second));
    await ask(base, "Or rather?", 2, continuing(first));
    const [, , newest, branch] = received();
    expect([newest?.previous_response_id, branch?.previous_response_id]).toEqual([second, first]);
    expect(newest?.input).toBe("And then?");
    expect(told(branch?.input)).toEqual([["user", expect.stringMatching(/Or rather\?$/)]]);
    expect(factsIn(branch)).toEqual([FACTS[1]]);
    await ask(base, "What was said?", 2, continuing(second), "eve");
    expect(factsIn(received().at(-1))).toEqual(FACTS);
    const holding = `/users/ada/memories/${encodeURIComponent(`m-${FACTS[1]}`)}`;
    const { text } = await sendWith({ base }, {}, "DELETE", holding);
    expect(JSON.parse(text)).toMatchObject({ responses: expect.arrayContaining([second, third]) });
    expect(columnsHolding(app.database, second)).toEqual([]);
    expect(app.faults).toEqual([]);
  });

  it("has no answer in the files, and no id of a response once the user is forgotten", async () => {
    const first = await ask(app.base, "Which tea?", 1);
    await expect.poll(() => columnsHolding(app.database, first)).toEqual(["turns.response_id"]);
    expect(filesHolding(app.database, "Answer 0.")).toEqual([]);
    await app.send("DELETE", "/users/ada");
    expect(columnsHolding(app.database, first)).toEqual([]);
  });
});
