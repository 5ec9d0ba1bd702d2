import { once } from "node:events";
import { type IncomingMessage, request as send } from "node:http";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ApiName } from "../../../src/apis/api/api.js";
import { APIS } from "../../../src/apis/apis.js";
import { receivedOf } from "../server/received.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine, sendJson } from "./openai-engine.js";

/*
 * What goes through the proxy: a body reaches the engine as its client wrote it, but for what memprefix adds, and an answer reaches the client
 * as the engine wrote it.
 */

const MEMORY = "Likes tea.";
const SECTION = `<memories>\n- ${MEMORY}\n</memories>`;
const LONG = "12345678901234567890";
const TEXT = fc.constantFrom("Which?", "caf\\u00e9 \\/ \\ud83c\\udf75", "日本語", 'a \\"b\\"', "</memories>\\n", "1.0");
/** Values in spellings that no JSON library would choose. */
const VALUE = fc.constantFrom(
  ...[LONG, "-0", "1.0", "1e400", "0.10", "null", "true", '"\\u0041"', "[1.0 ,2]", '{ "b":1,  "a":1.50 }', '""', "[]"],
);
const SPACE = fc.constantFrom("", " ", "\n  ", "\t");

/** A request in text, and the text that the engine is to get. */
interface Sample {
  readonly sent: string;
  readonly forwarded: string;
}

const quoted = (text: string) => JSON.stringify(text).slice(1, -1);

/** The newest question in one API's forms, with the section and without. */
const QUESTIONS: Readonly<Record<ApiName, (text: string) => readonly (readonly [own: string, with_: string])[]>> = {
  chat: (text) => [
    [`{"role":"user","content":"${text}"}`, `{"role":"user","content":"${quoted(`${SECTION}\n\n`)}${text}"}`],
    [
      `{"content": [{"type":"text","text":"${text}"},{"type":"image_url","image_url":{"url":"data:,"}}],"role":"user"}`,
      `{"content": [{"type":"text","text":"${quoted(SECTION)}"},{"type":"text","text":"${text}"},{"type":"image_url","image_url":{"url":"data:,"}}],"role":"user"}`,
    ],
  ],
  messages: (text) => [
    [`{"role":"user", "content":"${text}"}`, `{"role":"user", "content":"${quoted(`${SECTION}\n\n`)}${text}"}`],
    [
      `{"role":"user","content":[ {"type":"text","text":"${text}"}]}`,
      `{"role":"user","content":[ {"type":"text","text":"${quoted(SECTION)}"},{"type":"text","text":"${text}"}]}`,
    ],
  ],
  responses: (text) => [
    [`{"role":"user","content":"${text}" }`, `{"role":"user","content":"${quoted(`${SECTION}\n\n`)}${text}" }`],
    [
      `{"type":"message","role":"user","content":[{"type":"input_text","text":"${text}"}]}`,
      `{"type":"message","role":"user","content":[{"type":"input_text","text":"${quoted(SECTION)}"},{"type":"input_text","text":"${text}"}]}`,
    ],
  ],
};

/** What stands before it: an answer, a call of a tool and its result, with numbers and escapes of their own. */
const BEFORE: Readonly<Record<ApiName, readonly string[]>> = {
  chat: [
    '{"role":"user","content":"T\\u0065a?"}',
    `{"role":"assistant","content":null, "tool_calls":[{"id":"c","type":"function","function":{"name":"brew","arguments":"{\\"n\\":${LONG}}"}}],"x":${LONG}}`,
    '{"role":"tool","tool_call_id":"c","content":"hot\\u2028"}',
    '{ "role":"assistant","content":"Done." }',
  ],
  messages: [
    '{"role":"user","content":"T\\u0065a?"}',
    `{"role":"assistant","content":[{"type":"thinking","thinking":"\\u0068m","signature":"s=="},{"type":"tool_use","id":"c","name":"brew","input":{"n":${LONG},"f":1.0}}]}`,
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"hot","is_error":false}]}',
    '{"content":[{"type":"text","text":"Done."}],"role":"assistant"}',
  ],
  responses: [
    '{"role":"user","content":"T\\u0065a?"}',
    `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x","n":${LONG}}`,
    `{"type":"function_call","call_id":"c","name":"brew","arguments":"{\\"n\\":${LONG}}","n":1.0}`,
    '{"type":"function_call_output","call_id":"c","output":"hot"}',
    '{"type":"message","role":"assistant","id":"m_1","content":[{"type":"output_text","text":"Done.","annotations":[]}]}',
  ],
};

/** Fields beside the history, in the order in which they are sent. */
const sampleOf = (api: ApiName) =>
  fc
    .record({
      text: TEXT,
      form: fc.nat(1),
      isFirst: fc.boolean(),
      more: fc.uniqueArray(
        fc.tuple(fc.constantFrom("seed", "x", "thinking", "tool_choice", "metadata2", "\\u006b"), VALUE),
        {
          selector: ([name]) => name,
          maxLength: 4,
        },
      ),
      space: SPACE,
      at: fc.nat(4),
    })
    .map(({ text, form, isFirst, more, space, at }): Sample => {
      const [own = "", composed = ""] = QUESTIONS[api](text)[form] ?? [];
      const before = isFirst ? [] : BEFORE[api];
      const tools = `"tools"${space}: [{"name" :"brew", "seed":${LONG}}]`;
      const written = (newest: string) => {
        const fields = more.map(([name, value]) => `"${name}"${space}:${space}${value}`);
        const list = `[${space}${[...before, newest].join(`${space},`)}${space}]`;
        fields.splice(Math.min(at, fields.length), 0, `"${APIS[api].historyField}":${space}${list}`, tools);
        return `{${space}${fields.join(`,${space}`)}${space}}`;
      };
      return { sent: written(own), forwarded: written(composed) };
    });

describe.each(Object.values(APIS))("a request to $path", ({ name, path, historyField }) => {
  const engine = openAiEngine();
  const source = answeringSource([MEMORY]);
  const app = servedApp({ upstream: engine, source: () => source });
  let users = 0;
  const post = async (body: string | Buffer, of = `u${++users}`) => {
    const outgoing = send(`${app.base}/users/${of}/v1/${path}`, { method: "POST", agent: false });
    outgoing.end(body);
    const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
    return { status: answer.statusCode, headers: answer.headers, ...(await receivedOf(answer)) };
  };
  const answer = (body: string, headers: Record<string, string> = { "content-type": "application/json" }) =>
    engine.behave((_request, response) => void response.writeHead(200, headers).end(body));

  it("reaches the engine as its client wrote it, but for the section", async () => {
    answer("{}");
    await fc.assert(
      fc.asyncProperty(sampleOf(name), async ({ sent, forwarded }) => {
        engine.requests.length = 0;
        expect((await post(sent)).status).toBe(200);
        expect(engine.requests.map(({ raw }) => raw)).toEqual([forwarded]);
      }),
      { numRuns: 100 },
    );
    expect(app.faults).toEqual([]);
  });

  it("loses memprefix's own field, wherever that stands, and nothing else", async () => {
    answer("{}");
    const field = '"memprefix" : {"top_k":5}';
    const rest = `"a":${LONG},"${historyField}":[{"role":"user","content":"Tea?"}],"b":1.0`;
    const composed = rest.replace("Tea?", `${quoted(`${SECTION}\n\n`)}Tea?`);
    for (const sent of [
      `{${field},${rest}}`,
      `{${rest},${field}}`,
      `{"a":${LONG},${field}${rest.slice(rest.indexOf(","))}}`,
    ])
      await post(sent);
    expect(engine.requests.map(({ raw }) => raw)).toEqual([`{${composed}}`, `{${composed}}`, `{${composed}}`]);
  });

  it("is forwarded uncomposed where it has a field twice that decides what the prompt is", async () => {
    answer("{}");
    for (const field of ["messages", "input", "system", "tools"]) {
      const sent = `{"${historyField}":[{"role":"user","content":"Tea?"}],"${field}":[],"${field}":[{"role":"user","content":"Tea?"}]}`;
      const { headers } = await post(sent);
      expect([engine.requests.at(-1)?.raw, headers["x-memprefix-not-composed"]]).toEqual([sent, "messages"]);
    }
  });

  // One API is enough: all are edited and streamed by the same code.
  it.runIf(name === "chat")("may have 8 MB", async () => {
    answer("{}");
    const long = "é\\u00e9".repeat(1_000_000);
    const body = (question: string) =>
      `{"${historyField}":[{"role":"user","content":"${long}"},{"role":"assistant","content":"Yes."},{"role":"user","content":"${question}"}]}`;
    await post(body("Tea?"));
    expect(engine.requests.at(-1)?.raw === body(`${quoted(`${SECTION}\n\n`)}Tea?`)).toBe(true);
  });

  const body = (more: object = {}) => JSON.stringify({ [historyField]: [{ role: "user", content: "Tea?" }], ...more });

  it("is answered with the engine's bytes, errors and unknown types too", async () => {
    const error = '{"error": {"message":"The temperature is too high.","code":"invalid"}}';
    const answer = '{"choices":[{"message":{"content":"\\u00e9"}}]}';
    const texts = [`{"n":${LONG},"f":1.0}`, "{", "", "<html>no</html>", answer, error];
    for (const text of texts)
      for (const status of [200, 404, 422, 500]) {
        engine.behave((_request, response) => void response.writeHead(status, { "x-own": "1" }).end(text));
        const { bytes, headers, status: got } = await post(body());
        expect([got, bytes.toString(), headers["x-own"]]).toEqual([status, text, "1"]);
      }
  });

  it("is streamed with the engine's bytes, however they are cut and whatever they are", async () => {
    const event = fc.constantFrom(
      ...[
        'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}',
        ": comment",
        "event: ping\ndata: {}",
        "data: [DONE]",
      ],
      ...[
        'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"a"}}',
        "retry: 5",
        "data: {",
        "é",
      ],
      ...[
        'data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}',
        'data: {"error":1}',
      ],
    );
    const stream = fc.record({
      events: fc.array(event, { maxLength: 6 }),
      line: fc.constantFrom("\n", "\r\n", "\r"),
      isEnded: fc.boolean(),
      cut: fc.integer({ min: 1, max: 40 }),
    });
    await fc.assert(
      fc.asyncProperty(stream, async ({ events, line, isEnded, cut }) => {
        const text = events.map((one) => one.replaceAll("\n", line)).join(line + line) + (isEnded ? line + line : "");
        const bytes = Buffer.from(text);
        engine.behave(async (_request, response) => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          for (let at = 0; at < bytes.length; at += cut) response.write(bytes.subarray(at, at + cut));
          response.end();
        });
        const got = await post(body({ stream: true, stream_options: { include_usage: true } }));
        expect(got.bytes.toString()).toBe(text);
        expect(got.isWhole).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it.runIf(name === "chat")("is streamed a line of 40 MB, and breaks off where the engine does", async () => {
    const long = Buffer.concat([Buffer.from("data: "), Buffer.alloc(40 * 1024 * 1024, "x"), Buffer.from("\n\n")]);
    engine.behave((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(long, () => response.destroy());
    });
    const { bytes, isWhole } = await post(body({ stream: true, stream_options: {} }));
    expect(bytes.equals(long)).toBe(true);
    expect(isWhole).toBe(false);
  });
});

describe("a chat, or a route that the engine lacks", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });

  it("has its usage requested where the client did not, and that event alone is left out", async () => {
    const events = [
      'data: {"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}\n\n',
      'data: {"choices":[],"usage":{"prompt_tokens":9,"n":1.0}}\n\n',
      "data: [DONE]\n\n",
    ];
    engine.behave(
      (_request, response) =>
        void response.writeHead(200, { "content-type": "text/event-stream" }).end(events.join("")),
    );
    const chat = '{"stream":true ,"user":"u","messages":[{"role":"user","content":"Tea?"}]}';
    const { text } = await app.send("POST", "/v1/chat/completions", chat);
    expect(text).toBe(`${events[0]}${events[2]}`);
    expect(engine.requests[0]?.raw).toBe(`${chat.slice(0, -1)},"stream_options":{"include_usage":true}}`);
    const own = chat.replace('"stream":true', '"stream":true,"stream_options": {"include_usage" :true}');
    expect((await app.send("POST", "/v1/chat/completions", own)).text).toBe(events.join(""));
    expect(engine.requests[1]?.raw).toBe(own);
  });

  it("is answered by the engine where that lacks the route", async () => {
    engine.behave((_request, response) => sendJson(response, 404, { detail: "Not Found" }));
    for (const path of ["messages", "responses", "messages/count_tokens"]) {
      const body = {
        user: "u",
        metadata: { user_id: "u" },
        messages: [{ role: "user", content: "Tea?" }],
        input: "Tea?",
      };
      expect(await app.send("POST", `/v1/${path}`, body)).toMatchObject({
        status: 404,
        text: '{"detail":"Not Found"}',
      });
    }
    expect(engine.requests.map(({ url }) => url)).toEqual([
      "/v1/messages",
      "/v1/responses",
      "/v1/messages/count_tokens",
    ]);
  });
});
