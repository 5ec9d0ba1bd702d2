import { expect } from "vitest";
import { listIn, record, text } from "../../src/core/text/json.js";

/** A turn as a client has it, whichever door it came through. */
export interface Turn {
  /** `stop_reason`, `finish_reason`, or the response's status with why it is not complete. */
  readonly end: unknown;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly json: string }[];
  readonly said: string;
}

type Json = Readonly<Record<string, unknown>>;

const TOOLS = ["one", "two", "weather"];
const PARAMETERS = { type: "object", properties: {} };
const QUESTION = [{ role: "user", content: "Go." }];

/** What each door is asked, with functions by these names. */
const BODIES = {
  messages: (names: readonly string[]) => ({
    max_tokens: 99,
    messages: QUESTION,
    tools: names.map((name) => ({ name, input_schema: PARAMETERS })),
  }),
  responses: (names: readonly string[]) => ({
    input: "Go.",
    tools: names.map((name) => ({ type: "function", name, parameters: PARAMETERS })),
  }),
  "chat/completions": (names: readonly string[]) => ({
    messages: QUESTION,
    tools: names.map((name) => ({ type: "function", function: { name, parameters: PARAMETERS } })),
  }),
};
export type Door = keyof typeof BODIES;

/** Asks at a door of a service; reads the answer as a client does that holds the API to its word. */
export async function turnAt(
  base: string,
  door: Door,
  stream: boolean,
  tools: readonly string[] = TOOLS,
): Promise<Turn> {
  const response = await fetch(`${base}/v1/${door}`, {
    method: "POST",
    headers: { connection: "close", "content-type": "application/json", "x-memprefix-user": "ada" },
    body: JSON.stringify({ model: "stub-1", stream, ...BODIES[door](tools) }),
  });
  const body = await response.text();
  expect(response.status, body).toBe(200);
  return stream ? STREAMED[door](eventsIn(body)) : WHOLE[door](JSON.parse(body) as Json);
}

const WHOLE: Readonly<Record<Door, (answer: Json) => Turn>> = {
  messages: messageTurn,
  responses: responseTurn,
  "chat/completions": ({ choices }) => {
    const { message, finish_reason } = record(listIn(choices)[0]);
    return chatTurn(record(message), finish_reason);
  },
};

const STREAMED: Readonly<Record<Door, (events: readonly Json[]) => Turn>> = {
  messages: (events) => messageTurn(streamedMessage(events)),
  responses: (events) => {
    const deltas = new Map<unknown, string>();
    for (const { type, output_index: at, delta, arguments: whole } of events) {
      if (type === "response.function_call_arguments.delta") deltas.set(at, (deltas.get(at) ?? "") + text(delta));
      if (type === "response.function_call_arguments.done") expect(deltas.get(at)).toBe(whole);
    }
    const last = record(events.at(-1)?.["response"]);
    const items = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
    expect(last["output"]).toEqual(items);
    return responseTurn(last);
  },
  "chat/completions": (events) => {
    const calls = new Map<number, { id: string; type: string; function: { name: string; arguments: string } }>();
    let content = "";
    let end: unknown = null;
    for (const { choices } of events)
      for (const { delta, finish_reason } of listIn(choices).map(record)) {
        content += text(record(delta)["content"]);
        end = finish_reason ?? end;
        for (const { index, id, function: called } of listIn(record(delta)["tool_calls"]).map(record)) {
          const { name, arguments: more } = record(called);
          const call = calls.get(Number(index)) ?? { id: "", type: "function", function: { name: "", arguments: "" } };
          calls.set(Number(index), call);
          call.id ||= text(id);
          call.function.name += text(name);
          call.function.arguments += text(more);
        }
      }
    return chatTurn({ content, tool_calls: [...calls.values()] }, end);
  },
};

/** A message of its events: one block at a time, each begun and ended once. */
export function streamedMessage(events: readonly Json[]): Json {
  const content: (Json & { json?: string })[] = [];
  let open = -1;
  let message: Json = {};
  for (const { type, index, content_block: block, delta, message: begun } of events) {
    if (type === "message_start") message = record(begun);
    if (type === "content_block_start") {
      expect([open, index]).toEqual([-1, content.length]);
      open = content.push({ ...record(block) }) - 1;
    }
    if (type === "content_block_delta") {
      expect(index).toBe(open);
      const { text: said, partial_json: json, thinking } = record(delta);
      const { text: before, json: jsonBefore, thinking: thought, ...same } = content[open] ?? {};
      content[open] = {
        ...same,
        ...(before === undefined ? {} : { text: text(before) + text(said) }),
        ...(thought === undefined ? {} : { thinking: text(thought) + text(thinking) }),
        ...(same["type"] === "tool_use" ? { json: text(jsonBefore) + text(json) } : {}),
      };
    }
    if (type === "content_block_stop") {
      expect(index).toBe(open);
      open = -1;
    }
    if (type === "message_delta") message = { ...message, ...record(delta) };
  }
  expect([open, events.at(-1)?.["type"]]).toEqual([-1, "message_stop"]);
  return { ...message, content };
}

function messageTurn({ content, stop_reason }: Json): Turn {
  const blocks = listIn(content).map(record);
  return {
    end: stop_reason,
    calls: blocks
      .filter(({ type }) => type === "tool_use")
      .map(({ id, name, input, json }) => ({
        id: text(id),
        name: text(name),
        json: text(json) || JSON.stringify(input),
      })),
    said: blocks.map((block) => text(block["text"])).join(""),
  };
}

function responseTurn({ status, incomplete_details, output }: Json): Turn {
  const items = listIn(output).map(record);
  const parts = items.filter(({ type }) => type === "message").flatMap(({ content }) => listIn(content).map(record));
  return {
    end: [status, record(incomplete_details)["reason"]].filter((each) => each !== undefined).join(" "),
    calls: items
      .filter(({ type }) => type === "function_call")
      .map(({ call_id: id, name, arguments: json }) => ({ id: text(id), name: text(name), json: text(json) })),
    said: parts.map(({ text: said, refusal }) => text(said) || text(refusal)).join(""),
  };
}

function chatTurn({ content, tool_calls: calls }: Json, end: unknown): Turn {
  return {
    end,
    calls: listIn(calls).map((call) => {
      const { id, function: called } = record(call);
      return { id: text(id), name: text(record(called)["name"]), json: text(record(called)["arguments"]) };
    }),
    said: text(content),
  };
}

function eventsIn(body: string): readonly Json[] {
  return body
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)) as Json);
}
