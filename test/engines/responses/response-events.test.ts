import { describe, expect, it } from "vitest";
import { fromChatCompletion, ResponseEvents } from "../../../src/engines/responses/responses-answer.js";

describe("a streamed answer's tool calls", () => {
  it("are items of their own, each with its fragments", () => {
    const events = new ResponseEvents({ id: "1", created: 0, asked: {} });
    const call = (index: number, fields: object, given: string) =>
      events.take({
        choices: [
          { index: 0, delta: { tool_calls: [{ index, ...fields, function: { ...fields, arguments: given } }] } },
        ],
      });
    call(0, { id: "a", name: "one" }, '{"x":');
    call(0, {}, "1}");
    call(1, { id: "b", name: "two" }, "{}");
    const response = events.end().at(-1)?.["response"];
    expect(response).toMatchObject({
      output: [
        { type: "function_call", name: "one", arguments: '{"x":1}' },
        { type: "function_call", name: "two", arguments: "{}" },
      ],
    });
  });

  it.each([
    ['{"x":', "length", "incomplete", "incomplete"],
    ['{"x":1}', "length", "completed", "incomplete"],
    ['{"x":1}', "stop", "completed", "completed"],
  ])("are whole or not, each for itself: %s, %s", (given, finish_reason, ofItem, ofResponse) => {
    const call = { id: "a", type: "function", function: { name: "one", arguments: given } };
    const head = { id: "1", created: 0, asked: {} };
    const whole = fromChatCompletion({ choices: [{ message: { tool_calls: [call] }, finish_reason }] }, head);
    const events = new ResponseEvents(head);
    events.take({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason }] });
    expect(events.end().at(-1)?.["response"]).toEqual(whole);
    expect(whole).toMatchObject({ status: ofResponse, output: [{ status: ofItem, arguments: given }] });
  });
});
