import { describe, expect, it } from "vitest";
import { APIS } from "../../../src/apis/apis.js";
import { eventsOf } from "../../../src/engines/upstream/answer-body.js";
import { servedApp } from "../server/served-app.js";
import { anthropicServer } from "./anthropic-server.js";
import { observedBy } from "./chat-client.js";
import {
  allCuts,
  chunksAt,
  everyEvent,
  kindsIn,
  MESSAGE_EVENTS,
  RESPONSE_EVENTS,
  type StreamedEvent,
} from "./every-event.js";
import { openAiEngine, openEvents } from "./openai-engine.js";

const RESPONSES = everyEvent("responses");
const MESSAGE = everyEvent("messages");
/** What no client and no version of memprefix knows. */
const UNKNOWN = [
  'event: of_tomorrow\ndata: {"type":"of_tomorrow","x":"\\u00e9 é 🍵"}',
  "event: without_json\ndata: no JSON",
  ": a comment",
  'id: 7\nretry: 3000\ndata: {"type":\ndata: "in two lines"}',
];

/** A stream as it is sent, with what nobody knows in its middle. */
function wireOf(events: readonly StreamedEvent[], lineEnd: string): Buffer {
  const sent = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}`);
  const middle = Math.floor(sent.length / 2);
  const all = [...sent.slice(0, middle), ...UNKNOWN, ...sent.slice(middle)];
  return Buffer.from(all.map((event) => `${event}\n\n`.replaceAll("\n", lineEnd)).join(""));
}

const STREAMS = [
  { api: APIS.responses, stream: RESPONSES, kinds: Object.keys(RESPONSE_EVENTS) },
  { api: APIS.messages, stream: MESSAGE, kinds: [...Object.keys(MESSAGE_EVENTS), "ping", "error"] },
];

describe.each(STREAMS)("a stream with every event of the API $api.name", ({ api, stream, kinds }) => {
  it("has them all", () => {
    expect([...kindsIn(stream)].sort()).toEqual([...kinds].sort());
  });

  it.each(["\n", "\r\n"])(
    "is the same, and read as the same, wherever it is cut (lines end with %j)",
    async (lineEnd) => {
      for (const end of [[], ...stream.otherEnds.map((event) => [event])]) {
        const events = end.length === 0 ? stream.events : [...stream.events.slice(0, -1), ...end];
        const wire = wireOf(events, lineEnd);
        const read = async (cuts: readonly number[]) => {
          const observed = api.answerReader();
          const passed: Uint8Array[] = [];
          for await (const { bytes, data } of eventsOf(chunksAt(wire, cuts))) {
            observed.take(data, 1);
            passed.push(bytes);
          }
          const { isOver, text, reported, firstTokenAt } = observed;
          return {
            isSame: Buffer.concat(passed).equals(wire),
            learned: JSON.stringify({ isOver, text, reported, firstTokenAt }),
          };
        };
        const { learned } = await read([]);
        for (const cuts of allCuts(wire.length)) expect(await read(cuts)).toEqual({ isSame: true, learned });
      }
    },
  );
});

describe("every event of the Responses API, a byte at a time", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });

  it("reaches the client as it was sent; its usage is learned", async () => {
    const wire = wireOf(RESPONSES.events, "\n");
    engine.behave(async (_request, response) => {
      openEvents(response);
      for (const byte of wire) {
        response.write(Buffer.of(byte));
        if (byte === 0x0a) await new Promise(setImmediate);
      }
      response.end();
    });
    const asked = { model: "m", input: "Which tea?", stream: true, user: "ada" };
    expect((await app.send("POST", "/v1/responses", asked)).text).toBe(wire.toString("utf8"));
    expect(await observedBy(app)).toMatchObject({ promptTokens: 90, cachedTokens: 64, ttftMs: expect.any(Number) });
    expect(app.faults).toEqual([]);
  });
});

describe("every event of the Messages API, a byte at a time", () => {
  const anthropic = anthropicServer();
  const app = servedApp({ upstream: anthropic, environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic" } });

  it("reaches the client as it was sent; its usage is learned", async () => {
    const wire = wireOf(MESSAGE.events, "\n");
    anthropic.behave(async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
      for (const byte of wire) {
        response.write(Buffer.of(byte));
        if (byte === 0x0a) await new Promise(setImmediate);
      }
      response.end();
    });
    const messages = [{ role: "user", content: "Which tea?" }];
    const asked = { model: "claude-opus-4-8", max_tokens: 9, messages, stream: true, metadata: { user_id: "ada" } };
    expect((await app.send("POST", "/v1/messages", asked)).text).toBe(wire.toString("utf8"));
    expect(await observedBy(app)).toMatchObject({ promptTokens: 2042, cachedTokens: 2000 });
    expect(app.faults).toEqual([]);
  });
});
