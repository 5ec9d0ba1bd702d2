/*
 * Attacked: a conversation, and single chats, whose memories do not fit into the engine's context.
 * Broke: `context_length_exceeded` at the turn where what was injected so far came to the limit, and at every turn after it.
 * Held: an error that only quotes such a one is the client's; what one user provokes takes no other user's memories.
 */
import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../src/core/index.js";
import { sendWith } from "../http/guards/callers.js";
import { answeringSource } from "../http/routes/answering-source.js";
import {
  type Behaviour,
  eventOf,
  openAiEngine,
  openEvents,
  sendEvents,
  sendJson,
  streamedAnswer,
  wholeAnswer,
} from "../http/routes/openai-engine.js";
import { storedExchanges } from "../http/routes/stored-rows.js";
import { servedApp } from "../http/server/served-app.js";
import { says, user } from "../messages.js";
import { IS_WHOLE } from "../run-length.js";

const LIMIT = 6_000;
const TURNS = IS_WHOLE ? 100 : 40;

/** How engines say with status 400 that a prompt is too long; `test/engines/upstream/prompt-refusal.test.ts` has more of them. */
const ERRORS: Record<string, (tokens: number) => object> = {
  "llama.cpp": (tokens) => ({ error: llamaCpp(tokens) }),
  "an engine that gives no numbers": () => ({ message: "Input is too long for requested model." }),
};
const llamaCpp = (tokens: number) => ({
  code: 400,
  message: `request (${tokens} tokens) exceeds the available context size (${LIMIT} tokens), try increasing it`,
  type: "exceed_context_size_error",
  n_prompt_tokens: tokens,
  n_ctx: LIMIT,
});

const ANSWER = "That is so.";

/** An engine with a context of so many tokens; llama.cpp and others know no `stream_options`. */
function bounded(error: (tokens: number) => object): Behaviour {
  return (request, response, usage) => {
    if (usage.prompt_tokens > LIMIT) return sendJson(response, 400, error(usage.prompt_tokens));
    if (request.body.stream) return sendEvents(response, streamedAnswer(ANSWER, usage));
    return sendJson(response, 200, wholeAnswer(ANSWER, usage));
  };
}

const fact = (turn: number, n: number) => `Ada's fact ${turn}.${n}: house ${turn * 31 + n} on street ${n * 7}.`;

describe.each(Object.entries(ERRORS))("a conversation that outgrows the context of %s", (_who, error) => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({ source: () => source, upstream: engine, environment: { MEMPREFIX_RETENTION: "keep" } });

  const ask = async (messages: readonly ChatMessage[], more: object = {}, name = "ada") => {
    const before = engine.requests.length;
    const whose = { "x-memprefix-user": name, "x-memprefix-conversation": "c" };
    const body = { model: "stub-1", messages, ...more };
    const answer = await sendWith(app, whose, "POST", "/v1/chat/completions", body);
    return { ...answer, sends: engine.requests.length - before };
  };

  it("goes on: the client always has its answer, and the engine is hardly ever asked twice", async () => {
    engine.behave(bounded(error));
    const history: ChatMessage[] = [{ role: "system", content: "Be kind." }];
    const sends: number[] = [];
    const withMemories: boolean[] = [];
    let repeats = 0;
    for (let turn = 0; turn < TURNS; turn++) {
      // The best is one of the turn before.
      source.found = [...(turn > 0 ? [fact(turn - 1, 9)] : []), ...Array.from({ length: 10 }, (_, n) => fact(turn, n))];
      history.push(user(`Question ${turn}?`));
      const answer = await ask(history, { stream: turn % 2 === 1 });
      expect(answer.status).toBe(200);
      expect(answer.text).toContain("so.");
      sends.push(answer.sends);
      const sent = JSON.stringify(engine.requests.at(-1)?.body.messages);
      withMemories.push(sent.includes(fact(turn, 0)));
      // What a line repeats is there.
      for (const [, repeated = ""] of sent.matchAll(/Most relevant: (.*?)\\n/g)) {
        expect(sent).toContain(`\\n- ${repeated}\\n`);
        repeats++;
      }
      history.push(says(ANSWER));
    }
    expect(repeats).toBeGreaterThan(0);
    expect(Math.max(...sends)).toBeLessThanOrEqual(3);
    expect(Math.max(...sends)).toBeGreaterThan(1);
    expect(sends.filter((count) => count > 1).length).toBeLessThanOrEqual(3);
    expect(withMemories.filter((has) => !has).length).toBeLessThanOrEqual(1);
    expect(app.faults).toEqual([]);
  }, 60_000);

  it("keeps the other memories of a prompt in which one has 90 KB", async () => {
    engine.behave(bounded(error));
    source.found = ["Ada rows.", "word ".repeat(18_000), "Ada sings."];
    const question = user("What does she do?");
    const first = await ask([question]);
    expect(first).toMatchObject({ status: 200, sends: 2 });
    expect(first.headers.get("x-memprefix-warnings")).toBe("memory_left_out");
    const messages = engine.requests.at(-1)?.body.messages;
    expect(messages).toHaveLength(1);
    expect(messages?.[0]?.content).toMatch(/^<memories>\n- Ada rows\.\n- Ada sings\.\n/);
    const next = await ask([question, says(ANSWER), user("And then?")]);
    expect(next).toMatchObject({ status: 200, sends: 1 });
    expect(JSON.stringify(engine.requests.at(-1)?.body.messages)).toContain("- Ada rows.");
    // The refused prompt is nobody's: nothing was edited, and there are as many requests as were answered.
    expect(next.headers.get("x-memprefix-warnings")).toBe("memory_left_out");
    expect(storedExchanges(app.database).requests).toHaveLength(2);
    const { turns } = storedExchanges(app.database);
    expect(turns).toHaveLength(2);
    expect(new Set(turns.map(({ turn }) => turn.conversationId)).size).toBe(1);
  });

  it("answers a repeated request id with the prompt that the engine took", async () => {
    engine.behave(bounded(error));
    source.found = ["Ada rows.", "word ".repeat(18_000)];
    const asked = [user("What does she do?")];
    const memprefix = { request_id: "r-1" };
    expect(await ask(asked, { memprefix })).toMatchObject({ status: 200, sends: 2 });
    const taken = engine.requests.at(-1)?.body.messages;
    expect(await ask(asked, { memprefix })).toMatchObject({ status: 200, sends: 1 });
    expect(engine.requests.at(-1)?.body.messages).toEqual(taken);
  });

  it("gets the client's own messages, where it refuses any memory, and the reason is told", async () => {
    const plain = [user("Where?")];
    engine.behave((request, response, usage) => {
      const isPlain = !JSON.stringify(request.body.messages).includes("<memories>");
      return bounded(error)(request, response, isPlain ? usage : { ...usage, prompt_tokens: LIMIT + 1 });
    });
    source.found = ["Ada rows."];
    const answer = await ask(plain);
    expect(answer.status).toBe(200);
    expect(answer.sends).toBeLessThanOrEqual(3);
    expect(engine.requests.at(-1)?.body.messages).toEqual(plain);
    if (answer.sends === 3) {
      expect(answer.headers.get("x-memprefix-not-composed")).toBe("context_length");
      expect(answer.headers.get("x-memprefix-warnings")).toBe("not_composed");
      const metrics = await app.send("GET", "/metrics");
      expect(metrics.text).toContain('memprefix_not_composed_chats_total{reason="context_length"} 1');
    }
    expect((await ask(plain)).status).toBe(200);
  });

  it("has the engine's own error for messages of its own that are too long, and is not asked again and again", async () => {
    engine.behave(bounded(error));
    source.found = [];
    const long = [user("word ".repeat(7_000))];
    const answer = await ask(long);
    expect(answer).toMatchObject({ status: 400, sends: 1 });
    expect(answer.headers.get("x-memprefix-error-origin")).toBe("upstream");
    expect(JSON.parse(answer.text)).toEqual(error(tokensOf(answer.text)));
    source.found = ["Ada rows."];
    const counts: number[] = [];
    for (let again = 0; again < 3; again++) counts.push((await ask(long)).sends);
    expect(counts).toEqual([2, 1, 1]);
  });

  it("is understood where it begins a stream and says it there, and that stream is let go", async () => {
    engine.behave((request, response, usage) => {
      if (!request.body.stream || usage.prompt_tokens <= LIMIT) return bounded(error)(request, response, usage);
      openEvents(response);
      const body = error(usage.prompt_tokens);
      response.write(`\r\n:\r\n\r\n: still\r\n\r\nid: 1\r\n${eventOf("error" in body ? body : { error: body })}`);
    });
    source.found = ["Ada rows.", "word ".repeat(18_000)];
    const answer = await ask([user("Where?")], { stream: true });
    expect(answer).toMatchObject({ status: 200, sends: 2 });
    expect(answer.text).not.toContain("rror");
    expect(answer.text).toContain("so.");
    // The stream that was refused never ended by itself.
    await engine.requests[0]?.abandoned;
  });

  it("costs no other user a memory, and neither does an error that quotes one", async () => {
    engine.behave(bounded(error));
    source.found = ["Ada rows.", "word ".repeat(18_000)];
    await ask([user("Where?")]);
    source.found = Array.from({ length: 100 }, (_, n) => fact(0, n));
    const other = await ask([user("Where?")], {}, "bob");
    expect(other).toMatchObject({ status: 200, sends: 1 });
    expect(other.headers.get("x-memprefix-warnings")).toBeNull();
    engine.behave((_request, response) =>
      sendJson(response, 400, {
        error: { message: `Invalid value: ${JSON.stringify(error(9_999))}`, code: "invalid" },
      }),
    );
    const quoting = await ask([user("Where?")], {}, "eve");
    expect(quoting).toMatchObject({ status: 400, sends: 1 });
  });
});

/** The tokens that an error names first that are over the limit. */
function tokensOf(text: string): number {
  return Number([...text.matchAll(/\d{4,}/g)].map(([digits]) => digits).find((digits) => Number(digits) > LIMIT) ?? 0);
}

/** The same refusal inside an answer with status 200, as engines and gateways send it. */
const FIELDS = llamaCpp(9_000);
const { message } = FIELDS;
const OPENAI = JSON.stringify({ error: { message, type: "invalid_request_error", code: "context_length_exceeded" } });
const EVENTS = "text/event-stream";
const ofResponse = (type: string, status: string, error: object | null) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, response: { status, error } })}\n\n`;
const IN_ANSWERS: readonly (readonly [name: string, type: string, text: string])[] = [
  ["llama.cpp's line", EVENTS, `error: ${JSON.stringify(FIELDS)}\n\n`],
  ["llama.cpp's line with an envelope", EVENTS, `error: ${JSON.stringify({ error: FIELDS })}\n\n`],
  ["an event named error", EVENTS, `event: error\r\ndata: ${JSON.stringify(FIELDS)}\r\n\r\n`],
  ["OpenAI's event, after comments", EVENTS, `: PROCESSING\n\n: PROCESSING\n\ndata: ${OPENAI}\n\ndata: [DONE]\n\n`],
  ["vLLM's event", EVENTS, `data: ${JSON.stringify({ object: "error", ...FIELDS })}\n\ndata: [DONE]\n\n`],
  [
    "the Responses API's, after events of progress",
    EVENTS,
    ofResponse("response.created", "in_progress", null) +
      ofResponse("response.in_progress", "in_progress", null) +
      ofResponse("response.failed", "failed", { code: "context_length_exceeded", message }),
  ],
  ["JSON in an event stream", EVENTS, JSON.stringify(JSON.parse(OPENAI), null, 2)],
  ["JSON as it is", "application/json", OPENAI],
  ["JSON of no type", "text/plain", `${OPENAI}\n`],
];

describe.each(IN_ANSWERS)("a refusal inside an answer: %s", (_name, type, text) => {
  const engine = openAiEngine();
  const source = answeringSource(Array.from({ length: 10 }, (_, n) => fact(0, n)));
  const app = servedApp({ source: () => source, upstream: engine });

  it.each([1, 7, 4_096])("is followed by a prompt with fewer memories, in chunks of %d bytes", async (size) => {
    engine.behave(async (request, response, usage) => {
      const isFirst = engine.requests.length % 2 === 1;
      if (!isFirst) return bounded(() => ({}))(request, response, { ...usage, prompt_tokens: 1 });
      response.writeHead(200, { "content-type": type });
      for (let at = 0; at < text.length; at += size) {
        response.write(text.slice(at, at + size));
        if (at < 20 * size) await new Promise(setImmediate);
      }
      return void response.end();
    });
    for (const stream of [true, false]) {
      const body = { model: "stub-1", user: `${stream}`, stream, messages: [user("Where is Ada?")] };
      const { status, text: answer, headers } = await sendWith(app, {}, "POST", "/v1/chat/completions", body);
      expect([status, headers.get("x-memprefix-not-composed")]).toEqual([200, null]);
      expect(answer).toContain("so.");
      expect(answer).not.toContain("exceeds");
      const [first = 0, second = 0] = engine.requests.splice(0).map(({ raw }) => raw.split("Ada's fact").length);
      expect([first, second < first]).toEqual([11, true]);
    }
    expect(app.faults).toEqual([]);
  });
});
