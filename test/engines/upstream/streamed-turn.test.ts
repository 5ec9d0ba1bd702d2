import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { listIn, record } from "../../../src/core/text/json.js";
import { MessageStream } from "../../../src/engines/anthropic/messages-answer.js";
import { ResponseEvents } from "../../../src/engines/responses/responses-answer.js";
import { StreamedTurn } from "../../../src/engines/turns/streamed-turn.js";
import { streamedMessage } from "../../hostile/doors.js";
import { anyFragments, type MeantCall, TOOL_NAMES } from "./streamed-fragments.js";

type Call = Pick<MeantCall, "id" | "name" | "json">;

const chunksOf = (deltas: readonly object[]) => [
  ...deltas.map((delta) => ({ id: "c", choices: [{ index: 0, delta, finish_reason: null }] })),
  { id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
];

/** The calls and the text of chunks, as a client of Messages gets them. */
function asMessage(deltas: readonly object[], tools: readonly string[]) {
  const stream = new MessageStream(new Set(tools), "own");
  const events = chunksOf(deltas).flatMap((chunk) => [...stream.take(chunk)]);
  const { content, stop_reason } = streamedMessage([...events, ...stream.end()]);
  const blocks = listIn(content).map(record);
  const calls = blocks.filter(({ type }) => type === "tool_use") as unknown as readonly Call[];
  return { calls, text: blocks.map(({ text = "" }) => text).join(""), end: stop_reason };
}

/** … and as a client of Responses does. */
function asResponse(deltas: readonly object[], tools: readonly string[]) {
  const stream = new ResponseEvents({ id: "own", created: 0, asked: { tools: tools.map((name) => ({ name })) } });
  const events = chunksOf(deltas).flatMap((chunk) => [...stream.take(chunk)]);
  const response = record([...events, ...stream.end()].at(-1)?.["response"]);
  const items = listIn(response["output"]).map(record);
  const calls = items
    .filter(({ type }) => type === "function_call")
    .map(({ call_id, name, arguments: json }) => ({ id: call_id, name, json }) as Call);
  const parts = items.flatMap(({ content }) => listIn(content).map(record));
  return { calls, text: parts.map(({ text = "" }) => text).join(""), end: response["status"] };
}

/** Names and arguments; sorted under one id, where one call is told from another by what comes later. */
function told(calls: readonly Pick<Call, "name" | "json">[], haveOneId: boolean) {
  const all = calls.map(({ name, json }) => [name, json || "{}"]);
  return haveOneId ? all.map(String).sort() : all;
}

describe.each([
  ["Messages", asMessage, "tool_use"],
  ["Responses", asResponse, "completed"],
])("the calls of a streamed chat completion, as %s", (_api, convert, end) => {
  it("come out whole, once, with id, name and arguments, in whatever order their fragments come", () => {
    fc.assert(
      fc.property(anyFragments, ({ calls, deltas, text, hasIds, haveOneId }) => {
        const got = convert(deltas, TOOL_NAMES);
        expect(told(got.calls, haveOneId)).toEqual(told(calls, haveOneId));
        if (hasIds) expect(got.calls.map(({ id }) => id)).toEqual(calls.map(({ id }) => id));
        const ids = got.calls.map(({ id }) => id);
        expect([new Set(ids).size, ids.includes("")]).toEqual([calls.length, false]);
        expect([got.text, got.end]).toEqual([text, end]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("come out whole where the request does not name their functions, but for names in parts", () => {
    fc.assert(
      fc.property(
        anyFragments,
        fc.constantFrom([], ["other"]),
        ({ calls, deltas, hasWholeNames, haveOneId }, tools) => {
          fc.pre(hasWholeNames);
          expect(told(convert(deltas, tools).calls, haveOneId)).toEqual(told(calls, haveOneId));
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("what waits for a call that does not end", () => {
  it("is given once it is long, and the call's later fragments are not", () => {
    const turn = new StreamedTurn(new Set(["w"]), "own");
    const take = (delta: object) => turn.take([{ index: 0, delta }]);
    const call = (given: string) => ({
      tool_calls: [{ index: 0, id: "a", function: { name: "w", arguments: given } }],
    });
    expect(take(call('{"t":')).map(({ type }) => type)).toEqual(["begun", "more"]);
    expect(take({ content: "a".repeat(1_000_000) })).toEqual([]);
    expect(take({ content: "b" }).map((event) => [event.type, "item" in event && event.item.kind])).toEqual([
      ["ended", "call"],
      ["begun", "text"],
      ["more", "text"],
    ]);
    expect(take(call("1}"))).toEqual([]);
    expect(turn.end().map(({ type }) => type)).toEqual(["ended"]);
  });
});
