import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { UpstreamError } from "../../service/base/errors.js";
import { type LinkedSignal, linkedSignal } from "../../service/base/linked-signal.js";
import {
  Chat,
  type ChatAnswer,
  type ChatEngine,
  type EngineAnswer,
  type HeaderPair,
  headerPairs,
} from "../../service/chat/chat.js";
import type { NotComposedReason } from "../../service/chat/composing-in-time.js";
import * as wire from "../contracts/chat-contract.js";
import { depthHeader } from "../contracts/depth-contract.js";
import { refusalsWith } from "../contracts/openapi-access.js";
import { type AdmittedBy, queryWithoutCredentials, withoutCredentials } from "../guards/credentials.js";
import { parseSafely } from "../guards/safe-json.js";
import { answerProblem, openAiErrorOf, openAiProblemSchema } from "../problems/openai-problem.js";
import { notJson, problem, problemOf } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { cutTarget } from "../requests/paths.js";
import { utf8Text } from "../requests/utf8.js";

/** What the routes need. */
export interface ChatRouteParts {
  /** Null: no engine is configured. */
  readonly chat: ChatEngine | null;
  /** Called with what went wrong and is nobody's mistake but ours, or went wrong after the client had its answer. */
  readonly onFault: (error: unknown) => void;
  /** Whether there is too much to do to compose the chat of one of Node's requests. */
  readonly isShed: (incoming: object) => boolean;
  /** Called with why a chat went to its engine as it came. */
  readonly onNotComposed: (reason: NotComposedReason) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

const PATHS = { chat: wire.CHAT_PATH, models: "/v1/models" } as const;
const NOT_COMPOSED = "not_composed";

/**
 * The OpenAI-compatible proxy: a client changes its base URL, names the user, and its prompts are composed on their way to the engine.
 * Answers go back as they come.
 */
export function addChatRoutes(app: OpenAPIHono<HttpEnvironment>, parts: ChatRouteParts): void {
  describeRoutes(app);
  const { onFault, onNotComposed, clock } = parts;
  const chat = parts.chat === null ? null : new Chat({ ...parts.chat, onFault, onNotComposed, clock });
  app.post(PATHS.chat, async (c) => (chat === null ? noEngine(c) : complete(c, chat, parts)));
  app.get(PATHS.models, async (c) => {
    if (chat === null) return noEngine(c);
    const client = linkedSignal(c.req.raw.signal);
    const answer = await chat.models(queryToEngine(c), headersToEngine(c), client.signal);
    return responseOf(c, answer, headersOf(answer), client, onFault);
  });
}

async function complete(
  c: Context<HttpEnvironment>,
  chat: Chat,
  { isShed, onFault }: Pick<ChatRouteParts, "isShed" | "onFault">,
): Promise<Response> {
  const given = await readJson(c.req.raw);
  if (given === undefined) return answerProblem(c, notJson());
  const read = wire.readChat(given, c.req.raw.headers);
  const request = {
    ...read,
    headers: headersToEngine(c),
    query: queryToEngine(c),
    isShed: c.env?.incoming !== undefined && isShed(c.env.incoming),
  };
  const client = linkedSignal(c.req.raw.signal);
  const answer = await chat.complete(c.get("memstem"), request, client.signal);
  const { composed, notComposed } = answer;
  if (notComposed !== null) c.set("composed", { warnings: [NOT_COMPOSED], notComposed });
  if (composed !== null) {
    c.set("composed", {
      requestId: composed.requestId,
      totalTokens: composed.plan.totalTokens,
      expectedCachedTokens: composed.plan.expectedCachedTokens,
      warnings: composed.warnings.map(({ code }) => code),
    });
  }
  return responseOf(c, answer, headersOf(answer, ownHeaders(answer)), client, onFault);
}

/** The client's headers as the engine may see them. */
function headersToEngine(c: Context<HttpEnvironment>): HeaderPair[] {
  // Node's own list is at hand; a `Headers` would be built first.
  const raw = c.env?.incoming?.rawHeaders;
  return withoutCredentials(raw === undefined ? [...c.req.raw.headers] : headerPairs(raw), admittedBy(c));
}

/** The client's query as the engine may see it. */
function queryToEngine(c: Context<HttpEnvironment>): string {
  return queryWithoutCredentials(cutTarget(c.req.url).query, admittedBy(c));
}

function admittedBy(c: Context<HttpEnvironment>): AdmittedBy {
  return { keyId: c.get("keyId"), configuredKey: c.get("configuredKey") };
}

/** Statuses that a `Response` must have no body for. */
const BODILESS = new Set([204, 205, 304]);

function responseOf(
  { req }: Context<HttpEnvironment>,
  answer: EngineAnswer,
  headers: SentHeaders,
  client: LinkedSignal,
  onFault: (error: unknown) => void,
): Response {
  const { status } = answer;
  if (!BODILESS.has(status) && req.method !== "HEAD")
    return new Response(streamOf(answer, client, onFault), { status, headers });
  // What nobody will read would keep its connection open.
  client.abort();
  return new Response(null, { status, headers });
}

/** A body's JSON; undefined where it is none. */
async function readJson(request: Request): Promise<unknown> {
  try {
    return parseSafely(utf8Text(await request.arrayBuffer()));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

type SentHeaders = Record<string, string> | [string, string][];

/** An engine's headers and our own, which have names of their own. */
function headersOf({ headers, status }: EngineAnswer, own: readonly HeaderPair[] = []): SentHeaders {
  const origin: HeaderPair[] = status >= 400 ? [["x-memstem-error-origin", "upstream"]] : [];
  const sent = [...headers, ...own, ...origin];
  const record = Object.fromEntries(sent);
  // A record goes to Node's server as it is. It holds a name once only.
  return Object.keys(record).length === sent.length
    ? record
    : sent.map(([name, value]): [string, string] => [name, value]);
}

/** What memstem says beside the engine's answer. */
function ownHeaders({ composed, notComposed, usage }: ChatAnswer): HeaderPair[] {
  if (composed === null) {
    return [
      ["x-memstem-warnings", NOT_COMPOSED],
      ["x-memstem-not-composed", notComposed ?? "messages"],
    ];
  }
  const warnings = composed.warnings.map(({ code }) => code).join(",");
  return [
    ["x-memstem-request-id", composed.requestId],
    ["x-memstem-expected-cached-tokens", String(composed.plan.expectedCachedTokens)],
    ...(usage === null || usage.cachedTokens === null
      ? []
      : [["x-memstem-cached-tokens", String(usage.cachedTokens)] satisfies HeaderPair]),
    ...(composed.plan.depth === undefined
      ? []
      : [["x-memstem-depth", depthHeader(composed.plan.depth)] satisfies HeaderPair]),
    ...(warnings === "" ? [] : [["x-memstem-warnings", warnings] satisfies HeaderPair]),
  ];
}

/**
 * An answer on its way; a client that goes away ends the upstream call. Where the engine breaks off a stream of events, its last one says
 * so: clients take the mere end of one for the end of the answer.
 */
function streamOf(
  { body, headers }: EngineAnswer,
  client: LinkedSignal,
  onFault: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const areEvents = headers.some(([name, value]) => name === "content-type" && value.startsWith("text/event-stream"));
  const bytes = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await bytes.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        if (!(error instanceof UpstreamError)) onFault(error);
        if (!areEvents) return controller.error(error);
        controller.enqueue(brokenOff(error));
        controller.close();
      }
    },
    async cancel() {
      client.abort();
      await bytes.return?.();
    },
  });
}

/** An event that OpenAI's clients raise as an error; the blank line before it ends the one that was broken off. */
function brokenOff(error: unknown): Uint8Array {
  return new TextEncoder().encode(`\n\ndata: ${JSON.stringify(openAiErrorOf(problemOf(error), error))}\n\n`);
}

function noEngine(c: Context): Response {
  return answerProblem(c, problem(501, "no engine is configured: set MEMSTEM_UPSTREAM_URL"));
}

function describeRoutes(app: OpenAPIHono<HttpEnvironment>): void {
  const failure = {
    description: "A problem; or the engine's own error, as it said it",
    content: { "application/problem+json": { schema: openAiProblemSchema } },
  };
  const refusals = refusalsWith("application/problem+json", openAiProblemSchema);
  app.openAPIRegistry.registerPath({
    method: "post",
    path: PATHS.chat,
    summary: "OpenAI's chat completions, with the user's memories",
    request: {
      headers: wire.chatHeaders,
      body: { required: true, content: { "application/json": { schema: wire.chatBody } } },
    },
    responses: {
      200: {
        description: "The engine's answer, untouched; as events where the request has `stream`",
        content: { "application/json": { schema: wire.chatResult }, "text/event-stream": { schema: wire.chatEvents } },
      },
      ...refusals,
      default: failure,
    },
  });
  app.openAPIRegistry.registerPath({
    method: "get",
    path: PATHS.models,
    summary: "The engine's models",
    responses: {
      200: { description: "As the engine lists them", content: { "application/json": { schema: wire.modelsResult } } },
      ...refusals,
      default: failure,
    },
  });
}
