import type OpenAI from "openai";
import { beforeEach, describe, expect, it } from "vitest";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";
import { storedExchanges } from "./stored-rows.js";

const TITLE = "### Task:\nGenerate a title.\n### Chat History:\n<chat_history>\nUSER: Which tea?\n</chat_history>";
type Said = OpenAI.ChatCompletionMessageParam[];

describe("a request that is not to be composed", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: {
      MEMPREFIX_SOURCE: "embedded",
      MEMPREFIX_WRITE_BACK: "on",
      MEMPREFIX_ENGINE_FAMILY: "vllm",
      MEMPREFIX_IDENTITY: "side_call=header:x-task, side_call=body:metadata.task",
    },
  });
  beforeEach(() => {
    source.queries.length = 0;
    source.added.length = 0;
  });
  const inTrip = { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" };
  const raw = (headers: Record<string, string>, fields: object = {}) =>
    sendWith(app, { ...inTrip, ...headers }, "POST", "/v1/chat/completions", { ...ask(TITLE), ...fields });
  const say = async (history: Said, content: string): Promise<Said> => {
    const messages: Said = [...history, { role: "user", content }];
    const { choices } = await clientOf(app, inTrip).chat.completions.create({ model: "stub-1", messages });
    return [...messages, choices[0]?.message ?? { role: "assistant", content: "" }];
  };
  const turns = () => storedExchanges(app.database).turns;

  it.each([
    ["bypass", { "x-memprefix-bypass": "true" }, {}],
    ["bypass", {}, { memprefix: { bypass: true } }],
    ["side_call", { "x-openwebui-task": "title_generation" }, {}],
    ["side_call", { "x-task": "tags" }, {}],
    ["side_call", {}, { metadata: { task: "follow_up" } }],
  ])("passes unmodified: %s, by %o and %o", async (reason, headers, fields) => {
    const answer = await raw(headers, fields);
    expect(answer.headers.get("x-memprefix-not-composed")).toBe(reason);
    expect(answer.headers.get("x-memprefix-warnings")).toBeNull();
    const { memprefix: _memprefix, ...own } = fields as { memprefix?: object };
    // The salt keeps tenants' caches apart, also of prompts that nobody composed.
    const {
      cache_salt,
      request_id: _id,
      ...sent
    } = JSON.parse(engine.requests[0]?.raw ?? "{}") as Record<string, unknown>;
    expect([sent, typeof cache_salt]).toEqual([{ ...ask(TITLE), ...own }, "string"]);
    expect(source.queries).toEqual([]);
    expect(app.log.at(-1)).toMatchObject({ notComposed: reason, warnings: [] });
  });

  it("is no turn of its conversation, whose next prompt goes on from the one before; and nothing of it is written back", async () => {
    const history = await say([], "Which tea?");
    await raw({ "x-openwebui-task": "title_generation" });
    await raw({ "x-memprefix-bypass": "true" });
    await say(history, "And with it?");
    expect(turns()).toHaveLength(2);
    const [first, , , second] = engine.requests.map(({ body }) => body.messages);
    expect(second?.slice(0, first?.length)).toEqual(first);
    await app.memprefix.close();
    expect(source.added.map(({ text }) => text.includes("### Task"))).toEqual([false, false]);
  });

  it("is composed where nothing says so, also then without harm to its conversation's prefix", async () => {
    const history = await say([], "Which tea?");
    expect((await raw({ "x-openwebui-task": "" })).headers.get("x-memprefix-not-composed")).toBeNull();
    expect((await raw({ "x-task": "false" })).headers.get("x-memprefix-not-composed")).toBeNull();
    await say(history, "And with it?");
    const [first, title, , second] = engine.requests.map(({ body }) => body.messages);
    expect(title).toHaveLength(1);
    expect(second?.slice(0, first?.length)).toEqual(first);
  });
});
