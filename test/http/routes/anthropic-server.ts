import { once } from "node:events";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { afterEach, beforeEach, expect } from "vitest";
import { markProblem } from "../../engines/adapters/published-marks.js";
import { streamFixture, usageFixture } from "../../engines/upstream/fixture.js";
import { standIn } from "../../stand-in.js";
import { isLimitRequest } from "./openai-engine.js";

/** A body of Anthropic's Messages API. */
export interface AnthropicRequest {
  readonly system?: unknown;
  readonly messages: readonly {
    readonly role: string;
    readonly content: string | readonly Readonly<Record<string, unknown>>[];
  }[];
  readonly [field: string]: unknown;
}

/** A request as it reached Anthropic. */
export interface AnthropicCall {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: AnthropicRequest;
  /** Resolves when the connection went away before the answer's end. */
  readonly abandoned: Promise<void>;
}

/**
 * Anthropic's API on a socket of its own, with the answers of its documentation; a fresh one for every test. It refuses cache marks that the
 * documentation forbids, also of warm-ups, whose refusal nobody sees; a test that did not look at the refusals fails at its end.
 */
export interface AnthropicServer {
  readonly url: string;
  readonly calls: AnthropicCall[];
  /** The bodies of calls, as they came. */
  readonly raws: string[];
  /** What was refused for its cache marks: why. To be emptied by tests that send such marks themselves. */
  readonly refusals: string[];
  behave(behaviour: (response: ServerResponse, call: AnthropicCall) => void): void;
}

const JSON_HEADERS = { "content-type": "application/json", "request-id": "req_018EeWyXxfu5pfWkrYcMdjWG" };

/** The list of models as its reference has it. Source: https://platform.claude.com/docs/en/api/models-list */
const ANTHROPIC_MODELS = {
  data: [
    {
      type: "model",
      id: "claude-opus-4-8",
      display_name: "Claude Opus 4.8",
      created_at: "2025-02-19T00:00:00Z",
    },
  ],
  has_more: false,
  first_id: "claude-opus-4-8",
  last_id: "claude-opus-4-8",
};

export function anthropicServer(): AnthropicServer {
  const calls: AnthropicCall[] = [];
  const raws: string[] = [];
  const refusals: string[] = [];
  let behaviour: Parameters<AnthropicServer["behave"]>[0] | null = null;
  let address = "";

  beforeEach(async () => {
    address = await standIn(async (incoming, response) => {
      const raw = Buffer.concat(await incoming.toArray()).toString("utf8");
      const { method = "", url = "", headers } = incoming;
      const abandoned = once(response, "close").then(() => {
        if (response.writableFinished) return new Promise<void>(() => {});
        return undefined;
      });
      const call = { method, url, headers, body: (raw === "" ? {} : JSON.parse(raw)) as AnthropicRequest, abandoned };
      if (isLimitRequest(headers)) return sendAnthropic(response, 200, ANTHROPIC_MODELS);
      calls.push(call);
      raws.push(raw);
      const problem = markProblem(call.body);
      if (problem !== null) {
        refusals.push(problem);
        const error = { type: "invalid_request_error", message: problem };
        return sendAnthropic(response, 400, { type: "error", error });
      }
      if (behaviour !== null) return behaviour(response, call);
      if (method === "GET") return sendAnthropic(response, 200, ANTHROPIC_MODELS);
      if (call.body["stream"] === true) return streamAnthropic(response, streamFixture("anthropic-stream").events);
      return sendAnthropic(response, 200, usageFixture("anthropic-message").answer);
    });
  });
  afterEach(() => {
    calls.length = 0;
    raws.length = 0;
    behaviour = null;
    expect(refusals.splice(0)).toEqual([]);
  });

  return {
    get url() {
      return `${address}/v1`;
    },
    calls,
    raws,
    refusals,
    behave: (wanted) => {
      behaviour = wanted;
    },
  };
}

export function sendAnthropic(response: ServerResponse, status: number, body: unknown, headers: object = {}): void {
  response.writeHead(status, { ...JSON_HEADERS, ...headers }).end(JSON.stringify(body));
}

/** Events as the API sends them, named and with a ping between; without `end` the stream stays open. */
export function streamAnthropic(response: ServerResponse, events: readonly unknown[], end = true): void {
  response.writeHead(200, { ...JSON_HEADERS, "content-type": "text/event-stream; charset=utf-8" });
  for (const event of events) {
    const { type } = event as { readonly type: string };
    response.write(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
    if (type === "message_start") response.write('event: ping\ndata: {"type": "ping"}\n\n');
  }
  if (end) response.end();
}
