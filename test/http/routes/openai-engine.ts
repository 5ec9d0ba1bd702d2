import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach } from "vitest";
import { z } from "zod";
import { encodeO200k } from "../../../src/cli/o200k.js";
import { type CacheLimits, type PrefixCache, SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import type { ChatMessage } from "../../../src/core/index.js";
import { chatTokenizer } from "../../../src/eval/base/chat-tokens.js";

/** What the simulated cache can make tokens of; of the rest it makes none. */
const isMessage = (value: unknown) =>
  z
    .looseObject({ role: z.string(), content: z.union([z.string(), z.null(), z.array(z.looseObject({}))]) })
    .safeParse(value).success;

const asked = z.looseObject({
  model: z.string().optional().catch(undefined),
  messages: z.array(z.custom<ChatMessage>(isMessage)).catch([]),
  stream: z.boolean().nullish().catch(null),
  logprobs: z.boolean().nullish().catch(null),
  stream_options: z.object({ include_usage: z.boolean() }).nullish().catch(null),
});

/** A request as it reached the engine. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly raw: string;
  readonly body: z.output<typeof asked>;
  /** Resolves when the connection went away before the answer's end. */
  readonly abandoned: Promise<void>;
}

/** How the engine answers, instead of as an engine should. */
export type Behaviour = (request: Received, response: ServerResponse, usage: Usage) => void | Promise<void>;

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
}

const NONE: Usage = {
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  prompt_tokens_details: { cached_tokens: 0 },
};

/** Whether memprefix asks for itself what the engine's limits are, which it does once an hour, after any chat. */
export function isLimitRequest(headers: IncomingHttpHeaders): boolean {
  return headers["user-agent"] === "memprefix";
}

/** An OpenAI-compatible engine on a socket of its own, with a simulated prefix cache; a fresh one for every test. */
export interface OpenAiEngine {
  readonly url: string;
  readonly requests: Received[];
  /** The requests for its list of models that memprefix made for itself, which are not among the others. */
  readonly limitRequests: Received[];
  /** How many tokens of each prompt it computed, in order; nothing where it {@link behave}s. */
  readonly computed: number[];
  /** What it answers to the next questions, in turn; else "Indeed." */
  readonly answers: string[];
  /** Log probabilities of the likeliest first tokens, for the next requests that ask for them, in turn; else it gives none. */
  readonly firstTokens: (readonly number[])[];
  behave(behaviour: Behaviour): void;
  /** How it answers requests for its list of models, instead of with {@link MODELS}. */
  list(behaviour: Behaviour): void;
  close(): Promise<void>;
}

/** @param limits of its cache; default: endless */
export function openAiEngine(limits: CacheLimits = {}): OpenAiEngine {
  const requests: Received[] = [];
  const limitRequests: Received[] = [];
  const computed: number[] = [];
  const answers: string[] = [];
  const firstTokens: (readonly number[])[] = [];
  let behaviour: Behaviour | null = null;
  let listing: Behaviour | null = null;
  let server: Server;
  let cache: PrefixCache;
  let tokens: ReturnType<typeof chatTokenizer>;
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((done) => server.close(done));
  };

  beforeEach(async () => {
    cache = new SimulatedCache("radix", limits);
    tokens = chatTokenizer(encodeO200k);
    server = createServer(async (incoming, response) => {
      const raw = Buffer.concat(await incoming.toArray()).toString("utf8");
      const { method = "", url = "", headers } = incoming;
      // Some routes are passed whatever it is.
      const body = asked.safeParse(raw === "" ? {} : JSON.parse(raw)).data ?? asked.parse({});
      const abandoned = once(response, "close").then(() => {
        if (response.writableFinished) return new Promise<void>(() => {});
        return undefined;
      });
      const request: Received = { method, url, headers, raw, body, abandoned };
      if (isLimitRequest(headers)) limitRequests.push(request);
      else requests.push(request);
      if (method === "GET")
        return listing === null ? sendJson(response, 200, MODELS) : listing(request, response, NONE);
      const prompt = tokens(body.messages);
      const cachedTokens = behaviour === null ? cache.serve(prompt) : 0;
      if (behaviour === null) computed.push(prompt.length - cachedTokens);
      const text = answers.shift() ?? "Indeed.";
      const usage: Usage = {
        prompt_tokens: prompt.length,
        completion_tokens: 2,
        total_tokens: prompt.length + 2,
        prompt_tokens_details: { cached_tokens: cachedTokens },
      };
      if (behaviour !== null) return behaviour(request, response, usage);
      if (body.stream)
        return sendEvents(response, streamedAnswer(text, body.stream_options?.include_usage ? usage : null));
      const logprobs = body.logprobs ? firstTokens.shift() : undefined;
      return sendJson(response, 200, wholeAnswer(text, usage, {}, logprobs && { logprobs: likeliest(logprobs) }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    await close();
    requests.length = 0;
    limitRequests.length = 0;
    computed.length = 0;
    answers.length = 0;
    firstTokens.length = 0;
    behaviour = null;
    listing = null;
  });

  return {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    },
    requests,
    limitRequests,
    computed,
    answers,
    firstTokens,
    behave: (wanted) => {
      behaviour = wanted;
    },
    list: (wanted) => {
      listing = wanted;
    },
    close,
  };
}

/** OpenAI's log probabilities of an answer of one token. */
export function likeliest(logProbabilities: readonly number[], token = "Indeed") {
  const listed = logProbabilities.map((logprob, at) => ({ token: at === 0 ? token : `t${at}`, logprob, bytes: null }));
  return { content: [{ ...listed[0], top_logprobs: listed }], refusal: null };
}

/** OpenAI's list of models, as its reference has it. */
export const MODELS = {
  object: "list",
  data: [{ id: "stub-1", object: "model", created: 1_686_935_002, owned_by: "organization-owner" }],
};

/** OpenAI's answer, as its reference has it, with a field of the engine's own. */
export function wholeAnswer(content: string, usage: Usage, message: object = {}, choice: object = {}) {
  return {
    id: "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    object: "chat.completion",
    created: 1_741_569_952,
    model: "stub-1",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content, refusal: null, annotations: [], ...message },
        logprobs: null,
        finish_reason: "stop",
        ...choice,
      },
    ],
    usage,
    service_tier: "default",
    kv_transfer_params: { engine: "its own" },
  };
}

/** OpenAI's chunks, as its reference has them; with `include_usage` all but the last say that the usage is null. */
export function streamedAnswer(text: string, usage: Usage | null): object[] {
  const chunk = (choices: readonly object[]) => ({
    id: "chatcmpl-123",
    object: "chat.completion.chunk",
    created: 1_694_268_190,
    model: "stub-1",
    system_fingerprint: "fp_44709d6fcb",
    choices,
    ...(usage === null ? {} : { usage: null }),
  });
  const delta = (given: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta: given, logprobs: null, finish_reason }]);
  return [
    delta({ role: "assistant", content: "" }),
    ...(text.match(/\s*\S+/g) ?? []).map((content) => delta({ content })),
    delta({}, "stop"),
    ...(usage === null ? [] : [{ ...chunk([]), usage }]),
  ];
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) {
  response.writeHead(status, { "content-type": "application/json", "x-request-id": "req_engine", ...headers });
  response.end(JSON.stringify(body));
}

export function eventOf(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

export function openEvents(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "x-request-id": "req_engine" });
}

export function sendEvents(response: ServerResponse, chunks: readonly object[]): void {
  openEvents(response);
  for (const chunk of chunks) response.write(eventOf(chunk));
  response.end("data: [DONE]\n\n");
}
