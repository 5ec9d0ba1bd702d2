import { beforeEach, describe, expect, it, vi } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine, sendJson, wholeAnswer } from "./openai-engine.js";

const TEA = "Ada drinks green tea";

describe("writing an exchange back", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: {
      MEMPREFIX_WRITE_BACK: "on",
      MEMPREFIX_SOURCE: "rest",
      MEMPREFIX_MEM0_URL: "http://127.0.0.1:1",
    },
  });
  beforeEach(() => {
    source.added.length = 0;
    source.failure = null;
  });
  const chat = (messages: readonly object[], more: object = {}) =>
    app.send("POST", "/v1/chat/completions", { messages, user: "ada", ...more });
  const question = { role: "user", content: "Which tea?" };

  it.each([true, false])("keeps the question and the answer, plain (streamed: %s)", async (stream) => {
    engine.answers.push("Green, I think.");
    await chat([{ role: "system", content: "Be brief." }, question], { stream });
    await vi.waitFor(() => expect(source.added).toHaveLength(1));
    expect(source.added).toEqual([
      { text: "User: Which tea?\nAssistant: Green, I think.", metadata: { written_back: true } },
    ]);
    expect(engine.requests[0]?.raw).toContain(TEA);
  });

  it("keeps nothing of what was injected, though client and engine send it back", async () => {
    await chat([question]);
    const composed = engine.requests[0]?.body.messages[0]?.content;
    expect(composed).toContain(TEA);
    engine.answers.push(`You said: ${String(composed)} – green.`, `I was told <memories>\n- ${TEA}`);
    await chat([{ role: "user", content: composed }]);
    await chat([question]);
    await vi.waitFor(() => expect(source.added).toHaveLength(2));
    expect(source.added.map(({ text }) => text)).toEqual([
      "User: Which tea?\nAssistant: Indeed.",
      "User: Which tea?\nAssistant: You said: \n\nWhich tea? – green.",
    ]);
  });

  it("keeps the question that a tool's result was for, once its answer is there", async () => {
    const call = { id: "c", type: "function", function: { name: "brew", arguments: "{}" } };
    engine.behave((_request, response, usage) =>
      sendJson(
        response,
        200,
        wholeAnswer("", usage, { content: null, tool_calls: [call] }, { finish_reason: "tool_calls" }),
      ),
    );
    await chat([question]);
    engine.behave((_request, response, usage) => sendJson(response, 200, wholeAnswer("Green.", usage)));
    await chat([
      question,
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "green" },
    ]);
    await vi.waitFor(() => expect(source.added).toHaveLength(1));
    expect(source.added[0]?.text).toBe("User: Which tea?\nAssistant: Green.");
  });

  it("keeps no text that stands beside a call, though the engine says that it stopped", async () => {
    const call = { id: "c", type: "function", function: { name: "brew", arguments: "{}" } };
    engine.behave((_request, response, usage) =>
      sendJson(response, 200, wholeAnswer("I brew.", usage, { tool_calls: [call] })),
    );
    await chat([question]);
    await app.send("POST", "/v1/messages", { max_tokens: 9, messages: [question], metadata: { user_id: "ada" } });
    engine.behave((_request, response, usage) => sendJson(response, 200, wholeAnswer("Hot.", usage)));
    await chat([question]);
    await vi.waitFor(() => expect(source.added).toHaveLength(1));
    expect(source.added).toMatchObject([{ text: "User: Which tea?\nAssistant: Hot." }]);
  });

  it("keeps what the engine says whole, by whatever reason it ended, and nothing that it withheld or broke off", async () => {
    const reasons = {
      whole: ["stop", "length", "STOP", "eos_token", "stop_sequence", "end_turn", "COMPLETE", "model_length", "Stop"],
      not: ["error", "abort", "SAFETY", "content_filter", "content_filter: RECITATION", "", null],
    };
    const answer = (finish_reason: string | null) =>
      engine.behave((_request, response, usage) =>
        sendJson(response, 200, wholeAnswer(`It ended by ${finish_reason}.`, usage, {}, { finish_reason })),
      );
    for (const reason of [...reasons.not, ...reasons.whole]) {
      answer(reason);
      await chat([question]);
    }
    await vi.waitFor(() => expect(source.added).toHaveLength(reasons.whole.length));
    expect(source.added.map(({ text }) => text)).toEqual(
      reasons.whole.map((reason) => `User: Which tea?\nAssistant: It ended by ${reason}.`),
    );
  });

  it("does not where the request says so, nor where the engine fails", async () => {
    await chat([question], { memprefix: { write_back: false } });
    engine.behave((_request, response) => sendJson(response, 500, { error: { message: "No." } }));
    await chat([question]);
    await app.memprefix.addMemories("ada" as never, null, []);
    expect(source.added).toEqual([]);
  });
});
