import { describe, expect, it } from "vitest";
import { anthropicUpstream } from "../../../src/engines/anthropic/anthropic-upstream.js";
import { messagesUpstream } from "../../../src/engines/anthropic/messages-upstream.js";
import { responsesUpstream } from "../../../src/engines/responses/responses-upstream.js";
import type { Upstream } from "../../../src/engines/upstream/upstream.js";
import { chatChunks } from "../../clients/chat-wire.js";
import { allCuts, chunksAt, everyEvent } from "../../http/routes/every-event.js";

const COUNTED = { prompt: 40, cached: 16 };
const CALL = { kind: "call", id: "call_1", name: "brew", json: '{"tea":"龍井"}' } as const;
const chunk = (delta: object) => ({ id: "c", choices: [{ index: 0, delta, finish_reason: null }] });
const chunks = [
  chunk({ role: "assistant", reasoning_content: "Tea, " }),
  chunk({ reasoning_content: "not coffee." }),
  chunk({ content: "Thé vert 🍵." }),
  ...chatChunks(CALL, 1, COUNTED),
];
const CHAT = `: a comment\n\n${[...chunks.map((one) => JSON.stringify(one)), "no JSON", '{"of":"tomorrow"}', "[DONE]"]
  .map((data) => `data: ${data}\r\n\r\n`)
  .join("")}`;
const MESSAGE = everyEvent("anthropic")
  .events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join("");

const NOW = { now: () => 1_700_000_000_000 };
const PLAIN = { ...NOW, dialect: { keepsMarks: false, isOpenAi: false } };
const CONVERSIONS = [
  { what: "a chat as a message", sent: CHAT, path: "messages", over: (of: Upstream) => messagesUpstream(of, PLAIN) },
  { what: "a chat as a response", sent: CHAT, path: "responses", over: (of: Upstream) => responsesUpstream(of, NOW) },
  {
    what: "a message as a chat",
    sent: MESSAGE,
    path: "chat/completions",
    over: (of: Upstream) => anthropicUpstream(of, NOW),
  },
];

describe.each(CONVERSIONS)("a stream that is converted, $what,", ({ sent, path, over }) => {
  const wire = Buffer.from(sent);
  const convertedFrom = async (cuts: readonly number[]) => {
    const engine: Upstream = {
      name: "engine",
      send: async (call) => ({
        status: call.path === "responses" ? 404 : 200,
        headers: [["content-type", "text/event-stream"]],
        body: chunksAt(wire, cuts),
      }),
    };
    const messages = [{ role: "user", content: "Tea?" }];
    const body = JSON.stringify({ model: "m", stream: true, messages, input: "Tea?", max_tokens: 9 });
    const call = { method: "POST", path, query: "", headers: [], body } as const;
    const answer = await over(engine).send(call, new AbortController().signal);
    const parts: Uint8Array[] = [];
    for await (const part of answer.body) parts.push(part);
    // Ids of responses are made anew.
    return Buffer.concat(parts)
      .toString("utf8")
      .replaceAll(/_[0-9a-f]{32}/g, "_id");
  };

  it("is the same wherever the engine's is cut", async () => {
    const whole = await convertedFrom([]);
    expect(whole).toContain("brew");
    for (const cuts of allCuts(wire.length)) expect(await convertedFrom(cuts)).toBe(whole);
  });
});
