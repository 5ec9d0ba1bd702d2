import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf } from "./chat-client.js";
import { messagesClientOf } from "./messages-client.js";
import { openAiEngine } from "./openai-engine.js";
import { storedExchanges, storedRows } from "./stored-rows.js";

/** A chat with fields that OpenAI's client does not know. */
const askWith = (fields: object) => ({ ...ask("Which tea?"), ...fields });

describe("a request that names its user in a place of the operator's choice", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: {
      MEMPREFIX_IDENTITY:
        "user=header:x-forwarded-user, user=header:x-openwebui-user-id, user=body:safety_identifier, user=body:metadata.user_id.account_uuid, agent=header:x-agent, conversation=header:x-opencode-session, conversation=body:metadata.user_id.session_id",
    },
  });
  const named = () => {
    const row = storedRows(app.database).get("scopes")?.at(-1);
    const [said] = storedExchanges(app.database).turns;
    return [row?.["user_id"], row?.["agent_id"], said?.turn.conversationId];
  };

  it("is known by the first that has a name; an empty header has none", async () => {
    const headers = {
      "x-forwarded-user": "",
      "x-openwebui-user-id": "ada",
      "x-agent": "cook",
      "x-opencode-session": "s-1",
    };
    await clientOf(app, headers).chat.completions.create(askWith({ safety_identifier: "other" }));
    expect(named()).toEqual(["ada", "cook", "s-1"]);
    expect(engine.requests[0]?.headers).toMatchObject({ "x-openwebui-user-id": "ada", "x-opencode-session": "s-1" });
  });

  it("may name it in the body, with letters of any script", async () => {
    await clientOf(app, {}).chat.completions.create(askWith({ safety_identifier: "Åda", user: "other" }));
    expect(named()).toEqual(["Åda", "", expect.stringMatching(/^unnamed:/)]);
  });

  it("may name it in JSON within a text, as coding agents do", async () => {
    const user_id = JSON.stringify({ device_id: "d", account_uuid: "a-1", session_id: "s-2" });
    const messages = [{ role: "user" as const, content: "Which tea?" }];
    await messagesClientOf(app, {}).messages.create({ model: "m", max_tokens: 9, messages, metadata: { user_id } });
    expect(named()).toEqual(["a-1", "", "s-2"]);
  });

  it.each([
    [
      { "x-openwebui-user-id": "ada", "x-memprefix-user": "bob" },
      {},
      "x-memprefix-user: differs from the header x-openwebui-user-id",
    ],
    [
      { "x-openwebui-user-id": "ada" },
      { memprefix: { user_id: "bob" } },
      "memprefix.user_id: differs from the header x-openwebui-user-id",
    ],
    [
      {},
      { safety_identifier: "ada", memprefix: { user_id: "bob" } },
      "memprefix.user_id: differs from the field safety_identifier",
    ],
    [{ "x-openwebui-user-id": "Åda" }, {}, "x-openwebui-user-id: must be printable ASCII"],
    [{}, { safety_identifier: 7 }, "safety_identifier: Invalid input: expected string"],
  ])("is rejected with the headers %o and the body's %o", async (headers, fields, message) => {
    const answer = await fetch(`${app.base}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify(askWith(fields)),
      headers: Object.entries(headers).map(([name, value]) => [name, Buffer.from(value, "utf8").toString("latin1")]),
    });
    expect([answer.status, ((await answer.json()) as { error: { message: string } }).error.message]).toEqual([
      422,
      expect.stringContaining(message),
    ]);
    expect(engine.requests).toHaveLength(0);
  });

  it("is rejected where its header comes twice: the gateway's name and the client's would be one", async () => {
    // In two lines, which `fetch` would join.
    const headers = { connection: "close", "x-openwebui-user-id": ["bob", "ada"] };
    const sent = request(`${app.base}/v1/chat/completions`, { method: "POST", headers });
    sent.end(JSON.stringify(ask("Which tea?")));
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(422);
    expect(await text(answer)).toContain("x-openwebui-user-id: must be given once");
    expect(engine.requests).toHaveLength(0);
  });
});

describe("a request whose operator lists no place", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });

  it("is of nobody, whatever other tools' headers and fields say", async () => {
    const headers = { "x-openwebui-user-id": "ada", "x-litellm-session-id": "s-1", "x-dynamo-session-id": "s-1" };
    const asked = clientOf(app, headers).chat.completions.create(askWith({ safety_identifier: "ada" }));
    const { response } = await asked.withResponse();
    expect(response.headers.get("x-memprefix-not-composed")).toBe("no_user");
  });

  it("is a single prompt", async () => {
    const headers = { "x-memprefix-user": "ada", "x-litellm-session-id": "s-1", "x-opencode-session": "s-1" };
    await clientOf(app, headers).chat.completions.create(ask("Which tea?"));
    expect(
      storedRows(app.database)
        .get("prompts")
        ?.map((row) => row["layout"]),
    ).toEqual(["single"]);
  });
});
