import { beforeEach, describe, expect, it, vi } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { clientOf, errorOf } from "./chat-client.js";
import { openAiEngine, sendJson } from "./openai-engine.js";
import {
  answersResponses,
  outputMessage,
  type ReceivedResponses,
  responseObject,
  told,
  usageOf,
} from "./responses-engine.js";
import { columnsHolding, filesHolding, storedRows } from "./stored-rows.js";

const FACTS = ["Ada drinks green tea", "Ada lives in Paris", "Ada sings"];
const QUESTIONS = ["Which tea?", "Which city?", "And tonight?", "And then?"];

describe("a client that continues a response by its id", () => {
  const engine = openAiEngine();
  const source = answeringSource(FACTS);
  const app = servedApp({ source: () => source, upstream: engine });
  const received = () => engine.requests.map(({ raw }) => JSON.parse(raw) as ReceivedResponses);
  const newest = () => received().at(-1) ?? expect.fail();
  const factsIn = (sent: unknown) => FACTS.filter((fact) => JSON.stringify(sent).includes(`- ${fact}`));
  /** Asks with so many facts found; gives the response's id. */
  const ask = async (input: string, found: number, more: object = {}, user = "ada"): Promise<string> => {
    source.found = FACTS.slice(0, found);
    const { id } = await clientOf(app, { "x-memprefix-user": user }).responses.create({
      model: "stub-1",
      input,
      ...more,
    });
    return id;
  };
  const continuing = (previous_response_id: string) => ({ previous_response_id });

  beforeEach(() => engine.behave(answersResponses((turn) => `Answer ${turn}.`)));

  it.each([true, false])(
    "sends what is new, with the memories that the conversation lacks (streamed: %s)",
    async (stream) => {
      const client = clientOf(app);
      const ids: string[] = [];
      for (const [turn, input] of QUESTIONS.entries()) {
        source.found = FACTS.slice(0, 1 + turn);
        const previous = turn === 0 ? {} : continuing(ids.at(-1) ?? "");
        const asked = { model: "stub-1", instructions: "Be kind.", input, ...previous };
        if (stream) {
          for await (const event of await client.responses.create({ ...asked, stream }))
            if (event.type === "response.completed") ids.push(event.response.id);
        } else ids.push((await client.responses.create(asked)).id);
      }
      const sent = received();
      expect(sent.map(({ previous_response_id: id }) => id)).toEqual([undefined, ...ids.slice(0, -1)]);
      expect(sent.map(({ instructions }) => instructions)).toEqual(QUESTIONS.map(() => "Be kind."));
      expect(sent.map(({ input }) => told(input))).toEqual(
        QUESTIONS.map((question) => [["user", expect.stringMatching(`${question.slice(0, -1)}.$`)]]),
      );
      expect(sent.map(factsIn)).toEqual([[FACTS[0]], [FACTS[1]], [FACTS[2]], []]);
      // It had nothing to add.
      expect(sent.at(-1)?.input).toBe(QUESTIONS.at(-1));
      expect(app.faults).toEqual([]);
    },
  );

  it("is promised nothing of the engine's cache, which says itself what it had", async () => {
    const first = await ask("Which tea?", 1);
    const asked = { model: "stub-1", input: "And then?", previous_response_id: first };
    const { response } = await clientOf(app).responses.create(asked).withResponse();
    expect(response.headers.get("x-memprefix-expected-cached-tokens")).toBeNull();
    expect(Number(response.headers.get("x-memprefix-cached-tokens"))).toBeGreaterThan(0);
    expect(app.log.at(-1)).toMatchObject({ status: 200, warnings: [] });
  });

  it("may continue one twice: each branch has what was said, and given, up to that response", async () => {
    const first = await ask("Which tea?", 1);
    const second = await ask("Which city?", 2, continuing(first));
    await ask("Or which other?", 2, continuing(first));
    expect(factsIn(newest())).toEqual([FACTS[1]]);
    await ask("And tonight?", 3, continuing(second));
    expect(factsIn(newest())).toEqual([FACTS[2]]);
    expect(received().map(({ input }) => told(input).length)).toEqual([1, 1, 1, 1]);
  });

  it("gets all memories after a response that is unknown, another user's, or deleted", async () => {
    engine.behave((_request, response) =>
      sendJson(response, 200, responseObject("resp_x", [outputMessage("msg", "Indeed.")], usageOf(9, 0))),
    );
    const first = await ask("Which tea?", 2);
    await ask("And now?", 2, { ...continuing("resp_unknown"), instructions: "Be kind." });
    expect(newest()).toMatchObject({ previous_response_id: "resp_unknown", instructions: "Be kind." });
    expect(factsIn(newest())).toEqual(FACTS.slice(0, 2));
    await ask("And now?", 2, continuing(first), "eve");
    expect(factsIn(newest())).toEqual(FACTS.slice(0, 2));
    await app.send("DELETE", "/users/ada");
    await ask("And now?", 2, continuing(first));
    expect(factsIn(newest())).toEqual(FACTS.slice(0, 2));
    expect(told(newest().input)).toEqual([["user", expect.stringMatching(/And now\?$/)]]);
    expect(app.faults).toEqual([]);
  });

  it("continues with a tool's output, after which new memories stand", async () => {
    const call = { type: "function_call", id: "fc", call_id: "c", name: "where", arguments: "{}", status: "completed" };
    let turn = 0;
    engine.behave((_request, response) => {
      const output = turn === 0 ? call : outputMessage(`msg_${turn}`, "Done.");
      sendJson(response, 200, responseObject(`resp_${turn++}`, [output], usageOf(9, 0)));
    });
    const first = await ask("Where?", 1);
    source.found = FACTS.slice(0, 2);
    const output = { type: "function_call_output" as const, call_id: "c", output: "Paris" };
    const asked = { model: "stub-1", input: [output], previous_response_id: first };
    const second = await clientOf(app).responses.create(asked);
    expect(newest()).toEqual({
      ...asked,
      input: [output, { role: "user", content: expect.stringContaining(FACTS[1] ?? "") }],
    });
    expect(factsIn(newest())).toEqual([FACTS[1]]);
    await ask("And then?", 2, continuing(second.id));
    expect(newest().input).toBe("And then?");
  });

  it("is the engine's to judge where the response was not to be stored", async () => {
    const first = await ask("Which tea?", 1, { store: false });
    expect(storedRows(app.database).get("turns")).toMatchObject([{ response_id: null }]);
    const asked = { model: "stub-1", input: "Which city?", previous_response_id: first };
    const refused = await errorOf(clientOf(app).responses.create(asked));
    expect([refused.status, refused.code]).toEqual([400, "previous_response_not_found"]);
    expect(factsIn(newest())).toEqual([FACTS[0]]);
  });

  it.each([["conv_1"], [{ id: "conv_1" }]])(
    "keeps its memories in one conversation of the engine's: %j",
    async (conversation) => {
      let last = "";
      for (const [turn, question] of QUESTIONS.entries()) last = await ask(question, 1 + turn, { conversation });
      const sent = received();
      expect(sent.map((one) => one.conversation)).toEqual(QUESTIONS.map(() => conversation));
      expect(sent.map(({ input }) => told(input).length)).toEqual([1, 1, 1, 1]);
      expect(sent.map(factsIn)).toEqual([[FACTS[0]], [FACTS[1]], [FACTS[2]], []]);
      await ask("By its response?", 3, continuing(last));
      expect(factsIn(newest())).toEqual([]);
      await ask("Another?", 3, { conversation: "conv_2" });
      expect(factsIn(newest())).toEqual(FACTS);
      expect(app.log.flatMap(({ warnings }) => warnings ?? [])).toEqual([]);
    },
  );

  describe("once a memory is forgotten", () => {
    const forget = async (fact: string) => {
      const { text } = await app.send("DELETE", `/users/ada/memories/${encodeURIComponent(`m-${fact}`)}`);
      return JSON.parse(text) as { readonly responses: string[] };
    };

    it("is told which responses and conversations may hold it, and starts anew after these", async () => {
      const tea = await ask("Which tea?", 1);
      const both = await ask("Which city?", 2, continuing(tea));
      const fork = await ask("Or then?", 1, continuing(tea));
      const inConversation = await ask("Where?", 2, { conversation: "conv_1" });
      expect(await forget(FACTS[1] ?? "")).toMatchObject({ responses: [both, fork, inConversation, "conv_1"] });
      // The source still finds it.
      await ask("And now?", 3, continuing(both));
      expect(factsIn(newest())).toEqual([FACTS[0], FACTS[2]]);
      await ask("And now?", 3, { conversation: "conv_1" });
      expect(factsIn(newest())).toEqual([FACTS[0], FACTS[2]]);
      await ask("And now?", 3, continuing(tea));
      expect(factsIn(newest())).toEqual([FACTS[2]]);
      expect(await forget(FACTS[1] ?? "")).toMatchObject({ responses: [] });
      expect(app.faults).toEqual([]);
    });

    it("starts anew, too, after a response that the engine was making meanwhile", async () => {
      const answers = answersResponses();
      engine.behave(async (...of) => {
        await forget(FACTS[0] ?? "");
        await answers(...of);
      });
      const first = await ask("Which tea?", 2);
      engine.behave(answers);
      await ask("And now?", 2, continuing(first));
      expect(factsIn(newest())).toEqual([FACTS[1]]);
    });
  });

  it("has no answer in the files, and no id of a response once the user is forgotten", async () => {
    const first = await ask("Which tea?", 1);
    await expect.poll(() => columnsHolding(app.database, first)).toEqual(["turns.response_id"]);
    expect(filesHolding(app.database, "Answer 0.")).toEqual([]);
    await app.send("DELETE", "/users/ada");
    expect(columnsHolding(app.database, first)).toEqual([]);
  });

  it("goes on where its responses cannot be stored", async () => {
    const { responses } = app.memprefix.chats;
    const keep = vi.spyOn(responses, "keep").mockRejectedValue(new Error("disk full"));
    const first = await ask("Which tea?", 1);
    keep.mockRestore();
    await ask("Which city?", 2, continuing(first));
    expect(factsIn(newest())).toEqual(FACTS.slice(0, 2));
    expect(app.faults.splice(0)).toEqual([expect.objectContaining({ message: "disk full" })]);
  });
});
