import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { encodeO200k } from "../../src/cli/o200k.js";
import { SimulatedCache } from "../../src/core/cache/simulated-cache.js";
import { record } from "../../src/core/text/json.js";
import { isLimitRequest, likeliest, MODELS, openEvents, sendJson } from "../http/routes/openai-engine.js";
import { eventsText } from "../http/routes/responses-engine.js";
import { localServer } from "../local-server.js";
import { type Asked, type Counted, modelSays } from "./agent-model.js";
import { chatAnswer, chatChunks, readChatRequest } from "./chat-wire.js";
import { messageAnswer, messageStream, readMessagesRequest } from "./messages-wire.js";
import {
  type KeptItems,
  readResponsesRequest,
  responseAnswer,
  responseOutput,
  responseStream,
} from "./responses-wire.js";

/** One prompt that the engine answered. */
export interface ServedPrompt {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly asked: Asked;
  readonly counted: Counted;
  /** Whether it goes on with a response or conversation that the engine has. */
  readonly isContinued: boolean;
}

/** An engine for agents, which serves all three APIs, with a prefix cache that is exact to the token. */
export interface AgentEngine {
  readonly url: string;
  readonly served: readonly ServedPrompt[];
  /** What it could not read, as it was sent. */
  readonly refused: readonly string[];
  /** Empties its cache. */
  clear(): void;
  close(): Promise<void>;
}

/** What an engine says of its cache: all there is, `null` for what was cached (vLLM without its flag), or no usage at all. */
export const ENGINE_REPORTS = ["all", "null_details", "none"] as const;
export type EngineReports = (typeof ENGINE_REPORTS)[number];

/** An answer, or the chunks of one, with as much of its usage as the engine reports. */
function reported<T>(answer: T, reports: EngineReports): T {
  if (reports === "all") return answer;
  return JSON.parse(JSON.stringify(answer), (name, value: unknown) => {
    if (reports === "none" && name === "usage") return undefined;
    return /^(?:prompt|input)_tokens_details$/.test(name) ? null : value;
  }) as T;
}

export async function agentEngine(reports: EngineReports = "all"): Promise<AgentEngine> {
  const served: ServedPrompt[] = [];
  const refused: string[] = [];
  let count = countingCache();
  const responses = new Map<string, readonly Readonly<Record<string, unknown>>[]>();
  const items = new Map<string, Readonly<Record<string, unknown>>>();
  const kept: KeptItems = { responses, items };

  type Answer = (given: unknown, response: ServerResponse, serve: (asked: Asked) => Counted) => void;
  const chat: Answer = (given, response, serve) => {
    const asked = readChatRequest(given);
    const said = modelSays(asked);
    const counted = serve(asked);
    const { logprobs, stream_options: options } = record(given);
    const choice = logprobs === true ? { logprobs: likeliest([-0.1 * (counted.prompt % 30), -2]) } : {};
    if (!asked.stream)
      return sendJson(response, 200, reported(chatAnswer(said, served.length, counted, choice), reports));
    const chunks = chatChunks(said, served.length, record(options)["include_usage"] === true ? counted : null);
    const events = reported(chunks, reports).map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
    return stream(response, `${events.join("")}data: [DONE]\n\n`);
  };
  const respond: Answer = (given, response, serve) => {
    const { asked, items: before, isStored } = readResponsesRequest(given, kept);
    const counted = serve(asked);
    const turn = served.length;
    const output = responseOutput(modelSays(asked), turn);
    if (isStored) {
      responses.set(`resp_${turn}`, [...before, ...output]);
      for (const item of output) items.set(String(item["id"]), item);
    }
    const object = reported(responseAnswer(turn, output, counted, isStored), reports);
    if (!asked.stream) return sendJson(response, 200, object);
    return stream(response, eventsText(responseStream(object, output)));
  };
  const message: Answer = (given, response, serve) => {
    // As Anthropic's API says of a thread that expired: the client then sends the whole conversation.
    if (record(record(given)["thread"])["type"] === "continue") return sendJson(response, 404, NO_THREAD);
    const asked = readMessagesRequest(given);
    const said = modelSays(asked);
    const counted = serve(asked);
    if (!asked.stream) return sendJson(response, 200, messageAnswer(said, served.length, counted));
    return stream(response, eventsText(messageStream(said, served.length, counted)));
  };
  const ANSWERS: Readonly<Record<string, Answer>> = {
    "chat/completions": chat,
    responses: respond,
    messages: message,
  };

  const { url, close } = await localServer(async (incoming, response) => {
    const raw = Buffer.concat(await incoming.toArray()).toString("utf8");
    const { headers, method } = incoming;
    const path = (incoming.url ?? "").replace(/^\/v1\//, "").replace(/\?.*$/, "");
    if (method === "GET" || isLimitRequest(headers)) return sendJson(response, 200, MODELS);
    const answer = ANSWERS[path];
    if (answer === undefined) return sendJson(response, 404, { detail: "Not Found" });
    try {
      const given: unknown = JSON.parse(raw);
      answer(given, response, (asked) => {
        const counted = count(asked.prompt);
        served.push({ path, headers, asked, counted, isContinued: isContinued(given) });
        return counted;
      });
    } catch (error) {
      refused.push(`${path} ${raw}: ${String(error)}`);
      sendJson(response, 400, { error: { message: String(error), type: "invalid_request_error" } });
    }
  });
  const clear = () => {
    count = countingCache();
  };
  return { url: `${url}/v1`, served, refused, clear, close };
}

const NO_THREAD = {
  type: "error",
  error: { type: "not_found_error", message: "Thread not found", details: { error_code: "thread_not_found" } },
};

function isContinued(given: unknown): boolean {
  const { previous_response_id: response, conversation } = record(given);
  return response != null || conversation != null;
}

/** Sends a stream in pieces that end where no event does. */
function stream(response: ServerResponse, text: string): void {
  openEvents(response);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 97) response.write(bytes.subarray(at, at + 97));
  response.end();
}

/** Counts the tokens of prompts, and how many of them a radix cache of all prompts before has. */
function countingCache(): (prompt: readonly string[]) => Counted {
  const cache = new SimulatedCache("radix");
  return (prompt) => {
    const tokens = prompt.flatMap((part) => [...encodeO200k(part), END]);
    const cachedTokens = cache.serve(tokens);
    return { prompt: tokens.length, cached: cachedTokens };
  };
}

/** Behind every part of a prompt; no text has it. */
const END = -1;
