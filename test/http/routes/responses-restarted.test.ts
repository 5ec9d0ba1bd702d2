import OpenAI from "openai";
import { afterEach, describe, expect, it, vi } from "vitest";
import { readSettings } from "../../../src/cli/settings.js";
import { type ChatMessage, messageText } from "../../../src/core/index.js";
import { messagesOf } from "../../../src/engines/responses/responses-request.js";
import { type StartedApp, servedApp, startApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine, sendJson, wholeAnswer } from "./openai-engine.js";
import { answersResponses, type ReceivedResponses } from "./responses-engine.js";
import { columnsHolding, filesHolding, rowCounts } from "./stored-rows.js";

const FACTS = ["Ada drinks green tea", "Ada lives in Paris"];
const told = (items: unknown) => (messagesOf(items) ?? []).map((message) => [message.role, messageText(message)]);

describe("a client that continues a response after a restart", () => {
  const engine = openAiEngine();
  const source = answeringSource(FACTS.slice(0, 1));
  const app = servedApp({ source: () => source, upstream: engine });
  const received = () => engine.requests.map(({ raw }) => JSON.parse(raw) as ReceivedResponses);
  let again: StartedApp | undefined;
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
  const ask = async (base: string, input: string, previous: string | null, user = "ada", more: object = {}) => {
    const client = new OpenAI({
      baseURL: `${base}/v1`,
      apiKey: "sk",
      maxRetries: 0,
      defaultHeaders: { connection: "close", "x-memprefix-user": user },
    });
    const before = previous === null ? {} : { previous_response_id: previous };
    const asked = { model: "stub-1", input, instructions: "Be kind.", ...before, ...more };
    return (await client.responses.create(asked)).id;
  };
  /** An engine that keeps responses, or none. */
  const answers = (keeps: boolean) => {
    const answer = answersResponses((turn) => `Answer ${turn}.`);
    engine.behave((request, response, usage) => {
      const asked = { ...(JSON.parse(request.raw) as object), ...(keeps ? {} : { store: false }) };
      return answer({ ...request, raw: JSON.stringify(asked) }, response, usage);
    });
  };
  const askTwice = async () => {
    source.found = FACTS.slice(0, 1);
    const first = await ask(app.base, "Which tea?", null);
    source.found = FACTS;
    const second = await ask(app.base, "Which city?", first);
    // Stored behind the answer.
    await vi.waitFor(() => expect(rowCounts(app.database)["responses"]).toBe(2));
    return [first, second] as const;
  };

  it("has its history from memprefix where the engine keeps none, byte for byte as it was sent", async () => {
    answers(false);
    const [, second] = await askTwice();
    const base = await restarted();
    const third = await ask(base, "And then?", second);
    await ask(base, "And now?", third);
    const [, before, after, last] = received().map(({ input }) => told(input));
    expect(after?.slice(0, before?.length)).toEqual(before);
    expect(after?.slice(before?.length)).toEqual([
      ["assistant", "Answer 1."],
      ["user", expect.stringContaining("And then?")],
    ]);
    expect(last?.slice(0, after?.length)).toEqual(after);
    for (const fact of FACTS) expect(JSON.stringify(last).split(`- ${fact}`)).toHaveLength(2);
    expect(received().map(({ previous_response_id: id }) => id)).toEqual(Array(4).fill(undefined));
    expect(app.faults).toEqual([]);
  });

  it.each(["responses", "chats alone"])("has its conversation too, over an engine of %s", async (api) => {
    const answer = answersResponses((turn) => `Answer ${turn}.`);
    let turn = 0;
    engine.behave((request, response, usage) => {
      if (api === "responses") {
        const asked = { ...(JSON.parse(request.raw) as object), store: false };
        return answer({ ...request, raw: JSON.stringify(asked) }, response, usage);
      }
      if (request.url === "/v1/responses") return sendJson(response, 404, { detail: "Not Found" });
      return sendJson(response, 200, wholeAnswer(`Answer ${turn++}.`, usage));
    });
    const askIn = (base: string, input: string) => ask(base, input, null, "ada", { conversation: "c1" });
    await askIn(app.base, "Which tea?");
    await askIn(app.base, "Which city?");
    await vi.waitFor(() => expect(rowCounts(app.database)["responses"]).toBe(3));
    const base = await restarted();
    await askIn(base, "And then?");
    await askIn(base, "And now?");
    const { raw } = engine.requests.at(-1) ?? expect.fail();
    const { input, messages = messagesOf(input) } = JSON.parse(raw) as { input?: unknown; messages?: ChatMessage[] };
    const said = (messages ?? []).filter(({ role }) => role !== "system").map(messageText);
    expect(said.map((text) => text.split("\n").at(-1))).toEqual([
      ...["Which tea?", "Answer 0.", "Which city?", "Answer 1.", "And then?", "Answer 2.", "And now?"],
    ]);
    expect(app.faults).toEqual([]);
  });

  it("sends what is new where the engine keeps responses, from any of them", async () => {
    answers(true);
    const [first, second] = await askTwice();
    const base = await restarted();
    await ask(base, "And then?", second);
    await ask(base, "Or rather?", first);
    const [, , newest, branch] = received();
    expect([newest?.previous_response_id, branch?.previous_response_id]).toEqual([second, first]);
    expect(told(newest?.input)).toEqual([["user", expect.stringMatching(/And then\?$/)]]);
    expect(JSON.stringify(newest)).not.toContain("- Ada drinks green tea");
    // The branch has not been given what the second response was.
    expect(JSON.stringify(branch)).toContain("lives in Paris");
    expect(app.faults).toEqual([]);
  });

  it("is the engine's to judge for another user, and once the user forgot a memory", async () => {
    answers(true);
    const [, second] = await askTwice();
    const base = await restarted();
    await ask(base, "What was said?", second, "eve");
    expect(told(received().at(-1)?.input)).toHaveLength(1);
    await app.send("DELETE", "/users/ada/memories/m-unknown");
    expect(rowCounts(app.database)["responses"]).toBe(0);
    await ask(base, "And then?", second);
    expect(received().at(-1)).toMatchObject({ previous_response_id: second });
  });

  it("leaves no id of a response in the files, and no answer once the user is forgotten", async () => {
    answers(true);
    const [first] = await askTwice();
    expect(columnsHolding(app.database, first)).toEqual([]);
    expect(columnsHolding(app.database, "Answer 1.")).toEqual(["responses.output"]);
    await app.send("DELETE", "/users/ada");
    expect(rowCounts(app.database)["responses"]).toBe(0);
    expect(filesHolding(app.database, "Answer 1.")).toEqual([]);
  });
});
