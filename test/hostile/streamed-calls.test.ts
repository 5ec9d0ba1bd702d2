/*
 * Attacked: clients of Messages and Responses, over engines that stream parallel tool calls in forms of their own (Ollama: all with index 0; Gemini:
 * without index; LocalAI: one call under two; others: no ids, ids in every fragment, arguments as an object). Broke: calls ran together, came without
 * an id, or in pieces. Held: where neither ids, indexes nor whole arguments tell two calls apart, nobody can.
 */
import { describe, expect, it } from "vitest";
import { answeringSource } from "../http/routes/answering-source.js";
import { anthropicServer, sendAnthropic, streamAnthropic } from "../http/routes/anthropic-server.js";
import { openAiEngine, sendEvents, sendJson } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";
import { turnAt } from "./doors.js";

const call = (fields: object, name?: unknown, json?: unknown) => ({
  ...fields,
  type: "function",
  function: { ...(name === undefined ? {} : { name }), ...(json === undefined ? {} : { arguments: json }) },
});
/** One chunk for each fragment. */
const apart = (...fragments: readonly object[]) => fragments.map((fragment) => ({ tool_calls: [fragment] }));
const A = { id: "a" };
const B = { id: "b" };
const TWO = [
  ["a", "one", '{"t":"one"}'],
  ["b", "two", '{"t":"two"}'],
];
const MADE = expect.stringMatching(/^call_[\w-]{24}$/);
const UNNAMED = TWO.map(([, ...others]) => [MADE, ...others]);

/** The deltas of a stream, and the calls in it: id, name, arguments. */
const STREAMS: Readonly<Record<string, readonly [deltas: readonly object[], calls: readonly unknown[]]>> = {
  "one index for all, calls whole": [
    apart(call({ ...A, index: 0 }, "one", '{"t":"one"}'), call({ ...B, index: 0 }, "two", '{"t":"two"}')),
    TWO,
  ],
  "one index for all, calls in fragments": [
    apart(
      call({ ...A, index: 0 }, "one", ""),
      call({ index: 0 }, undefined, '{"t":'),
      call({ index: 0 }, undefined, '"one"}'),
      call({ ...B, index: 0 }, "two", ""),
      call({ index: 0 }, undefined, '{"t":"two"}'),
    ),
    TWO,
  ],
  "no index, in one chunk": [[{ tool_calls: [call(A, "one", '{"t":"one"}'), call(B, "two", '{"t":"two"}')] }], TWO],
  "no index, in fragments": [
    apart(call(A, "one", '{"t":'), call({}, undefined, '"one"}'), call(B, "two", '{"t":'), call({}, null, '"two"}')),
    TWO,
  ],
  "no index, in turns, an id in every fragment": [
    apart(call(A, "one", '{"t":'), call(B, "two", '{"t":'), call(B, "", '"two"}'), call(A, "", '"one"}')),
    TWO,
  ],
  "in turns, by index": [
    apart(
      call({ ...A, index: 0 }, "one", '{"t":'),
      call({ ...B, index: 1 }, "two", '{"t":'),
      call({ index: 0 }, undefined, '"one"}'),
      call({ index: 1 }, undefined, '"two"}'),
    ),
    TWO,
  ],
  "the second first": [
    apart(call({ ...B, index: 1 }, "two", '{"t":"two"}'), call({ ...A, index: 0 }, "one", '{"t":"one"}')),
    TWO.toReversed(),
  ],
  "indexes as texts, empty ids behind": [
    apart(
      call({ ...A, index: "0" }, "one", ""),
      call({ ...B, index: "1" }, "two", ""),
      call({ id: "", index: "1" }, null, '{"t":"two"}'),
      call({ id: null, index: "0" }, "", '{"t":"one"}'),
    ),
    TWO,
  ],
  "ids behind the arguments": [
    apart(
      call({ index: 0 }, "one", '{"t":"one"'),
      call({ index: 1 }, "two", '{"t":"two"'),
      call({ ...A, index: 0 }, undefined, "}"),
      call({ ...B, index: 1 }, undefined, "}"),
    ),
    TWO,
  ],
  "names behind the arguments": [
    apart(
      call({ ...A, index: 0 }, undefined, '{"t":'),
      call({ ...B, index: 1 }, undefined, '{"t":'),
      call({ index: 1 }, "two", '"two"}'),
      call({ index: 0 }, "one", '"one"}'),
    ),
    TWO,
  ],
  "names in parts, and in every fragment": [
    apart(
      call({ ...A, index: 0 }, "o", ""),
      call({ index: 0 }, "ne", '{"t":'),
      call({ index: 0 }, undefined, '"one"}'),
      call({ ...B, index: 1 }, "two", '{"t":'),
      call({ ...B, index: 1 }, "two", '"two"}'),
    ),
    TWO,
  ],
  "one call under two indexes": [
    apart(
      call({ ...A, index: 0 }, "one", ""),
      call({ ...A, index: 1 }, "one", '{"t":"one"}'),
      call({ ...A, index: 2 }, "one", '{"t":"one"}'),
      call({ ...B, index: 3 }, "two", '{"t":"two"}'),
    ),
    TWO,
  ],
  "no ids, by index": [
    apart(call({ index: 0 }, "one", '{"t":"one"}'), call({ index: 1 }, "two", '{"t":"two"}')),
    UNNAMED,
  ],
  "no ids, no index": [[{ tool_calls: [call({}, "one", '{"t":"one"}'), call({}, "two", '{"t":"two"}')] }], UNNAMED],
  "empty ids, one index, in fragments": [
    apart(
      call({ id: "", index: 0 }, "one", ""),
      call({ id: "", index: 0 }, "", '{"t":"one"}'),
      call({ id: "", index: 0 }, "two", ""),
      call({ id: "", index: 0 }, "", '{"t":"two"}'),
    ),
    UNNAMED,
  ],
  "one id for two calls": [
    apart(call({ ...A, index: 0 }, "one", '{"t":"one"}'), call({ ...A, index: 1 }, "two", '{"t":"two"}')),
    [TWO[0], UNNAMED[1]],
  ],
  "one id for two calls, in turns": [
    apart(
      call({ ...A, index: 0 }, "one", '{"t":'),
      call({ ...A, index: 1 }, "two", '{"t":'),
      call({ ...A, index: 0 }, undefined, '"one"}'),
      call({ index: 1 }, undefined, '"two"}'),
    ),
    [TWO[0], UNNAMED[1]],
  ],
  "one id and one name for two calls, in turns": [
    apart(
      call({ ...A, index: 0 }, "one", '{"t":'),
      call({ ...A, index: 1 }, "one", '{"t":'),
      call({ ...A, index: 0 }, undefined, '"one"}'),
      call({ index: 1 }, undefined, '"two"}'),
    ),
    [TWO[0], [MADE, "one", '{"t":"two"}']],
  ],
  "one id and one name for three calls, names first": [
    apart(
      call({ ...A, index: 0 }, "one", ""),
      call({ ...A, index: 1 }, "one", ""),
      call({ ...A, index: 2 }, "one", ""),
      call({ index: 0 }, undefined, '{"t":"one"}'),
      call({ index: 1 }, undefined, '{"t":'),
      call({ index: 2 }, undefined, '{"t":"three"}'),
      call({ index: 1 }, undefined, '"two"}'),
    ),
    [TWO[0], [MADE, "one", '{"t":"two"}'], [MADE, "one", '{"t":"three"}']],
  ],
  "one id and one name for three calls, the second without arguments": [
    apart(
      call({ ...A, index: 0 }, "one", ""),
      call({ ...A, index: 1 }, "one", ""),
      call({ ...A, index: 2 }, "one", ""),
      call({ index: 0 }, undefined, '{"t":"one"}'),
      call({ index: 2 }, undefined, '{"t":"three"}'),
    ),
    [TWO[0], [MADE, "one", '{"t":"three"}'], [MADE, "one", "{}"]],
  ],
  "one id and one name for three calls, one behind the other, two without arguments": [
    apart(
      call({ ...A, index: 0 }, "one", '{"t":'),
      call({ index: 0 }, undefined, '"one"}'),
      call({ ...A, index: 1 }, "one", ""),
      call({ ...A, index: 2 }, "one"),
    ),
    [TWO[0], [MADE, "one", "{}"], [MADE, "one", "{}"]],
  ],
  "one id for two calls by one name and one by another, the last without arguments": [
    apart(
      call({ ...A, index: 0 }, "one", ""),
      call({ ...A, index: 1 }, "two", '{"t":"two"}'),
      call({ ...A, index: 2 }, "one", ""),
      call({ index: 0 }, undefined, '{"t":"one"}'),
    ),
    [TWO[0], [MADE, "two", '{"t":"two"}'], [MADE, "one", "{}"]],
  ],
  "one id and the same arguments for two calls": [
    apart(call({ ...A, index: 0 }, "one", "{}"), call({ ...A, index: 0 }, "two", "{}")),
    [
      ["a", "one", "{}"],
      [MADE, "two", "{}"],
    ],
  ],
  "numbers as ids, no index": [
    apart(call({ id: 0 }, "one", '{"t":"one"}'), call({ id: 1 }, "two", '{"t":"two"}')),
    [
      ["0", "one", '{"t":"one"}'],
      ["1", "two", '{"t":"two"}'],
    ],
  ],
  "numbers as ids, one index and one name": [
    apart(
      call({ id: 7, index: 0 }, "one", ""),
      call({ id: 8, index: 0 }, "one", ""),
      call({ index: 0 }, undefined, '{"t":"one"}'),
    ),
    [
      ["7", "one", "{}"],
      ["8", "one", '{"t":"one"}'],
    ],
  ],
  "no arguments": [
    apart(
      call({ ...A, index: 0 }, "one", ""),
      call({ ...B, index: 1 }, "two"),
      call({ id: "c", index: 2 }, "weather", null),
      call({ id: "d", index: 3 }, "one", "null"),
    ),
    [
      ["a", "one", "{}"],
      ["b", "two", "{}"],
      ["c", "weather", "{}"],
      ["d", "one", "{}"],
    ],
  ],
  "arguments that are an object": [
    apart(call({ ...A, index: 0 }, "one", { t: "one" }), call({ ...B, index: 1 }, "two", { t: "two" })),
    TWO,
  ],
  "text and thoughts between fragments": [
    [
      { reasoning_content: "Hm." },
      ...apart(call({ ...A, index: 0 }, "one", '{"t":')),
      { content: "Wait. " },
      ...apart(call({ ...B, index: 1 }, "two", '{"t":"two"}'), call({ index: 0 }, undefined, '"one"}')),
      { content: "So." },
    ],
    TWO,
  ],
  "OpenAI's older form": [
    [{ function_call: { name: "one", arguments: "" } }, { function_call: { arguments: '{"t":"one"}' } }],
    [UNNAMED[0]],
  ],
  "fragments of nothing": [
    [{ tool_calls: [] }, { tool_calls: null }, { tool_calls: [null, {}, call({ id: "", index: 0 }, "", "")] }],
    [],
  ],
};

describe("the tool calls of a streamed chat completion", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource([]), upstream: engine });
  const chunks = (deltas: readonly object[]) =>
    [{ role: "assistant", content: "" }, ...deltas, {}].map((delta, at) => ({
      id: "chatcmpl-1",
      model: "stub-1",
      choices: [{ index: 0, delta, finish_reason: at === deltas.length + 1 ? "tool_calls" : null }],
    }));
  const streams = (deltas: readonly object[]) =>
    engine.behave(({ url }, response) =>
      url === "/v1/chat/completions" ? sendEvents(response, chunks(deltas)) : sendJson(response, 404, {}),
    );

  it.each(["messages", "responses"] as const)("come out whole, once, each with its id: %s", async (door) => {
    for (const [form, [deltas, calls]] of Object.entries(STREAMS)) {
      streams(deltas);
      for (const tools of [[], ["one", "two", "weather"], ["other"]]) {
        const turn = await turnAt(app.base, door, true, tools);
        expect([form, turn.calls.map(({ id, name, json }) => [id, name, json])]).toEqual([form, calls]);
        expect(new Set(turn.calls.map(({ id }) => id)).size).toBe(calls.length);
        expect(turn.said).toBe(form.startsWith("text and") ? "Wait. So." : "");
      }
    }
    expect(app.faults).toEqual([]);
  });

  it("are passed to clients of chat completions byte by byte", async () => {
    for (const [deltas] of Object.values(STREAMS)) {
      streams(deltas);
      const { text } = await app.send("POST", "/v1/chat/completions", {
        user: "ada",
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: "user", content: "Go." }],
      });
      expect(text).toBe(
        `${chunks(deltas)
          .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
          .join("")}data: [DONE]\n\n`,
      );
    }
  });
});

const use = (index: unknown, id: unknown, name: string, input: unknown = {}) => ({
  type: "content_block_start",
  index,
  content_block: { type: "tool_use", id, name, input },
});
const json = (index: unknown, partial_json: string) => ({
  type: "content_block_delta",
  index,
  delta: { type: "input_json_delta", partial_json },
});
const stop = (index: unknown) => ({ type: "content_block_stop", index });

/** The events of a message's blocks, with calls as in {@link TWO}. */
const MESSAGES: Readonly<Record<string, readonly object[]>> = {
  "one behind the other": [
    ...[use(0, "a", "one"), json(0, '{"t":'), json(0, '"one"}'), stop(0)],
    ...[use(1, "b", "two"), json(1, '{"t":"two"}'), stop(1)],
  ],
  "in turns": [
    ...[use(0, "a", "one"), json(0, '{"t":'), use(1, "b", "two"), json(1, '{"t":')],
    ...[json(0, '"one"}'), json(1, '"two"}'), stop(0), stop(1)],
  ],
  "in turns, the second ends first": [
    ...[use(0, "a", "one"), use(1, "b", "two"), json(1, '{"t":"two"}'), stop(1), json(0, '{"t":"one"}'), stop(0)],
  ],
  "one index for all": [
    ...[use(0, "a", "one"), json(0, '{"t":"one"}'), stop(0), use(0, "b", "two"), json(0, '{"t":"two"}'), stop(0)],
  ],
  "one index for all, no ends": [
    use(0, "a", "one"),
    json(0, '{"t":"one"}'),
    use(0, "b", "two"),
    json(0, '{"t":"two"}'),
  ],
  "no index": [
    use(undefined, "a", "one"),
    json(undefined, '{"t":"one"}'),
    stop(undefined),
    use(undefined, "b", "two"),
    json(undefined, '{"t":"two"}'),
    stop(undefined),
  ],
  "indexes as texts": [
    ...[use("0", "a", "one"), use("1", "b", "two"), json("0", '{"t":"one"}'), json("1", '{"t":"two"}')],
    ...[stop("0"), stop("1")],
  ],
  "whole at their beginning, no ends": [use(0, "a", "one", { t: "one" }), use(1, "b", "two", { t: "two" })],
  "JSON at their beginning": [
    ...[use(0, "a", "one", '{"t":"one"}'), stop(0), use(1, "b", "two", null), json(1, '{"t":"two"}'), stop(1)],
  ],
};

/** A block whole where it begins, as some servers stream them, and a call's arguments as an object. */
const WHOLE_BLOCKS = [
  { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "Hm.", signature: "sig+/=" } },
  stop(0),
  { type: "content_block_start", index: 1, content_block: { type: "text", text: "I look." } },
  stop(1),
  use(2, "a", "one"),
  { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: { t: "one" } } },
  stop(2),
];

/** What Anthropic's own API would not give for ids, and which of them come out. */
const UNCLEAR_IDS: readonly (readonly [ids: readonly unknown[], given: readonly unknown[]])[] = [
  [
    [undefined, undefined],
    [MADE, MADE],
  ],
  [
    ["", null],
    [MADE, MADE],
  ],
  [
    ["a", "a"],
    ["a", MADE],
  ],
  [
    ["a", ""],
    ["a", MADE],
  ],
  [
    ["", "a"],
    [MADE, "a"],
  ],
  [
    [0, 1],
    ["0", "1"],
  ],
];

describe("the tool calls of a streamed message", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    source: () => answeringSource([]),
    upstream: anthropic,
    environment: { MEMPREFIX_UPSTREAM_API: "anthropic" },
  });

  it.each(["chat/completions", "responses"] as const)("come out whole, once, each with its id: %s", async (door) => {
    for (const [form, events] of Object.entries(MESSAGES)) {
      anthropic.behave((response) =>
        streamAnthropic(response, [
          { type: "message_start", message: { type: "message", id: "msg_1", model: "claude", usage: {} } },
          ...events,
          { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: {} },
          { type: "message_stop" },
        ]),
      );
      const { calls } = await turnAt(app.base, door, true);
      expect([form, calls.map(({ id, name, json: given }) => [id, name, given])]).toEqual([form, TWO]);
    }
    expect(app.faults).toEqual([]);
  });

  it("come out whole, as thoughts and texts do, where blocks are whole at their beginning", async () => {
    anthropic.behave((response) =>
      streamAnthropic(response, [
        { type: "message_start", message: { type: "message", id: "msg_1", model: "claude", usage: {} } },
        ...WHOLE_BLOCKS,
        { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: {} },
        { type: "message_stop" },
      ]),
    );
    for (const door of ["chat/completions", "responses"] as const) {
      const { calls, said } = await turnAt(app.base, door, true);
      expect([said, calls]).toEqual(["I look.", [{ id: "a", name: "one", json: '{"t":"one"}' }]]);
    }
    const { text } = await app.send("POST", "/users/ada/v1/chat/completions", {
      stream: true,
      messages: [{ role: "user", content: "Go." }],
    });
    expect(text).toContain('"reasoning_content":"Hm."');
    expect(text).toContain('"signature":"sig+/="');
  });

  it.each(["chat/completions", "responses"] as const)("have ids, each its own, streamed and not: %s", async (door) => {
    const head = { type: "message", id: "msg_1", role: "assistant", model: "claude", usage: {} };
    for (const [ids, given] of UNCLEAR_IDS)
      for (const stream of [true, false]) {
        const uses = ids.map((id, at) => use(at, id, "one", { t: at }));
        const content = uses.map(({ content_block }) => content_block);
        anthropic.behave((response) =>
          stream
            ? streamAnthropic(response, [
                { type: "message_start", message: head },
                ...uses.flatMap((begin) => [begin, stop(begin.index)]),
                { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: {} },
                { type: "message_stop" },
              ])
            : sendAnthropic(response, 200, { ...head, content, stop_reason: "tool_use" }),
        );
        const { calls } = await turnAt(app.base, door, stream);
        expect([ids, calls.map(({ id }) => id)]).toEqual([ids, given]);
        expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
      }
  });
});
