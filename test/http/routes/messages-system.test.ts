import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer } from "./anthropic-server.js";
import { messagesClientOf } from "./messages-client.js";

describe("a system message in the middle of a conversation, by Anthropic's API", () => {
  const server = anthropicServer();
  const app = servedApp({
    source: () => answeringSource(["Ada drinks green tea"]),
    upstream: server,
    environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic", MEMPREFIX_RETENTION: "keep" },
  });

  it("may be the last, behind the user's question or a tool's result, whose memories stand before it", async () => {
    const system = {
      role: "system",
      content: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    };
    const client = messagesClientOf(app, { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" });
    const create = (messages: readonly object[]) =>
      client.messages.create({ model: "claude-opus-4-8", max_tokens: 9, messages } as never).withResponse();
    const question = { role: "user", content: "Which tea?" };
    const { response } = await create([question, system]);
    expect(response.headers.get("x-memprefix-not-composed")).toBeNull();
    const [first] = server.calls.map(({ body }) => body.messages as readonly object[]);
    expect(textsIn(first).join("")).toContain("green tea");
    expect(first?.at(-1)).toEqual(system);
    const call = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "brew", input: {} }] };
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "Done." }] };
    await create([question, system, call, result, system]);
    const second = server.calls[1]?.body.messages as readonly { readonly role: string }[];
    expect(second.map(({ role }) => role)).toEqual(["user", "system", "assistant", "user", "system"]);
    expect(textsIn(second).slice(0, textsIn(first).length)).toEqual(textsIn(first));
    expect(JSON.stringify(second).match(/cache_control/g)?.length).toBeLessThanOrEqual(4);
    expect([second[1], second[4]]).toEqual([system, system]);
  });

  it("is sent where it stood, and later turns go on from it", async () => {
    const create = (messages: readonly object[]) =>
      messagesClientOf(app, { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" }).messages.create({
        model: "claude-opus-4-8",
        max_tokens: 9,
        messages,
      } as never);
    const first = { role: "user", content: "Which tea?" };
    const system = { role: "system", content: [{ type: "text", text: "Be brief from now on." }] };
    const answer = { role: "assistant", content: [{ type: "text", text: "Green." }] };
    const second = [first, system, answer, { role: "user", content: "And with it?" }];
    await create([first]);
    await create(second);
    await create([...second, answer, { role: "user", content: "And then?" }]);
    const [, two, three] = server.calls.map(({ body }) => body.messages as readonly object[]);
    expect(two?.[1]).toEqual(system);
    expect(three?.map((message) => (message as { role: string }).role)).toEqual([
      ...["user", "system", "assistant", "user", "assistant", "user"],
    ]);
    expect(textsIn(three).slice(0, textsIn(two).length)).toEqual(textsIn(two));
  });
});

/** The texts of messages, whatever their cache marks are. */
function textsIn(messages: readonly object[] | undefined): string[] {
  return (messages ?? []).flatMap((message) => {
    const { content } = message as { readonly content: string | readonly { readonly text?: string }[] };
    return typeof content === "string" ? [content] : content.map(({ text = "" }) => text);
  });
}
