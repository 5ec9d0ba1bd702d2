/*
 * Attacked: that a conversation goes on when its client does not send messages back byte for byte (SDKs parse and write them again).
 * Broke: text as one part, `refusal: null`, trimmed white space, arguments written again: every turn started from nothing.
 * Held: what the client sent now is what the engine gets. `test/core/text/message-meaning.test.ts` has messages that mean something else.
 */
import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../src/core/index.js";
import { sendWith } from "../http/guards/callers.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { storedExchanges } from "../http/routes/stored-rows.js";
import { servedApp } from "../http/server/served-app.js";
import { calls, part, result, says, user } from "../messages.js";
import { IS_WHOLE } from "../run-length.js";
import { bare } from "./section-pattern.js";

const FACTS = Array.from({ length: 60 }, (_, n) => `Ada's fact number ${n} is about house ${n * 7} on the street.`);
const TURNS = IS_WHOLE ? 8 : 4;
const FOUND = FACTS.slice(0, 3).map((memory, n) => ({ id: `m${n}`, memory }));

/** What the conversation says: questions and answers, one of them with a tool call between. */
const spoken = (turn: number): [ChatMessage, ChatMessage, ChatMessage, ChatMessage] => [
  user(`Question ${turn}:\nwhere is it? `),
  calls("look_up", '{"house": 7, "by": "é"}', `call_${turn}`, { refusal: null }),
  result(`Result ${turn}`, `call_${turn}`),
  says(`  Answer ${turn}. `, { reasoning_content: `Thinking of ${turn}.` }),
];

type Client = (message: ChatMessage) => ChatMessage;

/** Writes a text in another way. */
const writing =
  (write: (text: string) => ChatMessage["content"]): Client =>
  (message) =>
    typeof message.content === "string" ? { ...message, content: write(message.content) } : message;
const trimmed = writing((text) => text.trim());
const inParts = writing((text) => [part(text, { cache_control: { type: "ephemeral" } })]);
const crlf = writing((text) => text.replaceAll("\n", "\r\n"));
const withNulls: Client = (message) => ({ ...message, refusal: null, annotations: [], audio: null, name: null });
const withoutThoughts: Client = ({ reasoning_content: _thought, refusal: _refusal, ...message }) =>
  message as ChatMessage;
const argumentsAgain: Client = (message) => {
  const calls = message["tool_calls"] as { function: { name: string; arguments: string } }[] | undefined;
  if (!Array.isArray(calls)) return message;
  const again = calls.map((call, index) => {
    const { by, house } = JSON.parse(call.function.arguments) as { by: string; house: number };
    return { ...call, index, function: { ...call.function, arguments: JSON.stringify({ by, house }, null, 1) } };
  });
  return { ...message, tool_calls: again };
};

const CLIENTS: Record<string, (turn: number) => Client> = {
  "trims white space": () => trimmed,
  "writes texts as parts, with marks": () => inParts,
  "adds what is null": () => withNulls,
  "drops what is null and what was thought": () => withoutThoughts,
  "sends CRLF": () => crlf,
  "writes arguments again": () => argumentsAgain,
  "does another of these every turn": (turn) =>
    [trimmed, inParts, withNulls, withoutThoughts, crlf, argumentsAgain][turn % 6] as Client,
};

describe.each(Object.entries(CLIENTS))("a client that %s", (_what, clientAt) => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({ source: () => source, upstream: engine, environment: { MEMPREFIX_RETENTION: "keep" } });

  const ask = async (messages: readonly ChatMessage[], more: object = {}) => {
    const whose = { "x-memprefix-user": "ada", "x-memprefix-conversation": "c" };
    const body = { model: "stub-1", messages, ...more };
    const { status, headers } = await sendWith(app, whose, "POST", "/v1/chat/completions", body);
    expect(status).toBe(200);
    return headers;
  };

  it("goes on with its conversation, and the engine gets what it sent now", async () => {
    const history: ChatMessage[] = [{ role: "system", content: "Be kind." }];
    for (let turn = 0; turn < TURNS; turn++) {
      const client = clientAt(turn);
      const [question, called, result, answer] = spoken(turn);
      for (const step of [[question], [called, result]]) {
        source.found = FACTS.slice(turn * 5, turn * 5 + 8);
        // What is new is as it was said first; what is sent back is as the client writes it.
        const [system, ...before] = history;
        const sent = [system as ChatMessage, ...before.map(client), ...step];
        history.push(...step);
        const headers = await ask(sent);
        expect(headers.get("x-memprefix-warnings") ?? "").not.toContain("history_diverged");
        const { body } = engine.requests.at(-1) as (typeof engine.requests)[number];
        expect(bare(body.messages)).toEqual(sent);
        const text = JSON.stringify(body.messages);
        const known = FACTS.slice(0, turn * 5 + 8);
        // Every fact that was ever given is still there, once.
        for (const fact of known) expect(text.split(`- ${fact}`)).toHaveLength(2);
      }
      history.push(answer);
    }
    // Each turn is said again at most once more, however long the history is.
    expect(storedExchanges(app.database).turns.length).toBeLessThanOrEqual(TURNS * 2 * 10);
    expect(app.faults).toEqual([]);
  });

  it("is told the same again under the same request id, after all that it wrote differently", async () => {
    const compose = (messages: readonly ChatMessage[], request_id: string) =>
      app.compose({ user_id: "ada", conversation_id: "c", messages, request_id, memories: FOUND });
    const [question, , , answer] = spoken(0);
    const next = user("And then?");
    const first = await compose([question], "r-1");
    const second = await compose([question, answer, next].map(clientAt(0)), "r-2");
    await compose([question, answer, next, answer, next].map(clientAt(1)), "r-3");
    expect((await compose([question], "r-1")).messages).toEqual(first.messages);
    expect((await compose([question, answer, next].map(clientAt(0)), "r-2")).messages).toEqual(second.messages);
    expect(second.blocks.every(({ placement }) => placement === "earlier_turn")).toBe(true);
  });
});
