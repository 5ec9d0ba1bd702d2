/*
 * routes: one file per group of paths. A route reads its contract, calls the service once, and writes the result.
 * Enters: a request that passed the guards, with its tenant's service. Leaves: an answer by the contracts, or a typed error for `problems`.
 */

import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { z } from "zod";
import type { Api } from "../../apis/api/api.js";
import { editedJson, itemTexts, repeatedNames } from "../../apis/api/edited-json.js";
import { APIS } from "../../apis/apis.js";
import type { JsonObject } from "../../core/text/json.js";
import { UpstreamError } from "../../service/base/errors.js";
import { type LinkedSignal, linkedSignal } from "../../service/base/linked-signal.js";
import { holdsApiKey } from "../../service/base/tenant.js";
import {
  Chat,
  type ChatEngine,
  CREDENTIAL_HEADERS,
  type EngineAnswer,
  type HeaderPair,
  headerPairs,
  type ProxiedAnswer,
} from "../../service/chat/chat.js";
import { type ClientTools, DEFAULT_IDENTITY_SOURCES } from "../../service/chat/chat-request.js";
import type { NotComposedReason } from "../../service/chat/compose-with-timeout.js";
import * as wire from "../contracts/chat-contract.js";
import { CHAT_HEADERS, type OperationId, operation } from "../contracts/operations.js";
import { jsonBody } from "../guards/body.js";
import { answerProblem, notJson, problem } from "../problems/problem.js";
import { cutTarget, entryOf, type HttpEnvironment, identityIn } from "../requests/request.js";

export interface ChatRouteParts {
  /** Null: no engine is configured. */
  readonly chat: ChatEngine | null;
  /** Called with internal faults, and with errors after the answer's head was sent. */
  readonly onFault: (error: unknown) => void;
  /** Called when a chat goes to its engine unmodified. */
  readonly onNotComposed: (reason: NotComposedReason) => void;
  /** Called once for each path that the engine does not have. */
  readonly onAbsentRoute: (path: string) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

const NOT_COMPOSED = "not_composed";

/**
 * The proxy: a client changes its base URL and names the user. Its prompts are composed on the way to the engine's same path, and answers
 * are streamed back.
 */
export function addChatRoutes(app: OpenAPIHono<HttpEnvironment>, parts: ChatRouteParts): void {
  describeRoutes(app);
  const { onFault, onNotComposed, onAbsentRoute, clock } = parts;
  const chat = parts.chat && new Chat({ ...parts.chat, onFault, onNotComposed, onAbsentRoute, clock });
  for (const api of Object.values(APIS))
    app.post(`/v1/${api.path}`, async (c) => (chat === null ? noEngine(c) : complete(c, chat, parts, api)));
}

/** Fields that decide what a prompt is. If a body repeats one, it is unknown which of them the engine reads. */
const READ_ONCE = ["messages", "input", "system", "tools", "functions"];

async function complete(
  c: Context<HttpEnvironment>,
  chat: Chat,
  { onFault, chat: engine }: Pick<ChatRouteParts, "onFault" | "chat">,
  api: Api,
): Promise<Response> {
  const body = jsonBody(c, wire.MEMORIES_AT);
  if (body === null) return answerProblem(c, notJson());
  const { json, value: given } = body;
  const { headers } = c.req.raw;
  const sources = engine?.identity ?? DEFAULT_IDENTITY_SOURCES;
  const identity = identityIn(c.req.url, headersOfRequest(c), given, sources);
  // A caller with a key must name the user.
  const defaultUser = c.get("keyId") === null ? engine?.defaultUser : undefined;
  const read = wire.readChat(api, given, headers, identity, defaultUser);
  const repeated = repeatedNames(json);
  const isAmbiguous = READ_ONCE.some((name) => repeated.has(name));
  const request = {
    ...read,
    compose: isAmbiguous ? null : read.compose,
    tools: isAmbiguous ? null : toolsIn(api, json),
    written: (sent: JsonObject) => editedJson(json, given, sent),
    headers: headersToEngine(c, isOfReadBody),
    query: queryToEngine(c),
  };
  const client = linkedSignal(c.req.raw.signal);
  const answer = await chat.complete(c.get("memprefix").chats, request, client.signal);
  const { composed, notComposed } = answer;
  if (notComposed !== null) c.set("composed", { warnings: warningsWithout(notComposed), notComposed });
  if (composed !== null) c.set("composed", entryOf(composed));
  return responseOf(c, answer, headersOf(answer, ownHeaders(answer)), client, onFault);
}

function toolsIn({ toolFields }: Api, json: string): ClientTools | null {
  const lists = toolFields.map((field) => ({ field, texts: itemTexts(json, field) }));
  return lists.find(({ texts }) => texts.length > 0) ?? null;
}

/** The client's headers as the engine may see them. */
export function headersToEngine(
  c: Context<HttpEnvironment>,
  isSent: (header: HeaderPair) => boolean = () => true,
): HeaderPair[] {
  return withoutCredentials(headersOfRequest(c), admittedBy(c)).filter(isSent);
}

/** Whether a header is still right for a body that was read: it is decoded. */
export function isOfReadBody([name]: HeaderPair): boolean {
  return name !== "content-encoding";
}

function headersOfRequest(c: Context<HttpEnvironment>): HeaderPair[] {
  // Node's own list needs no `Headers` object.
  return headerPairs(c.env.incoming.rawHeaders);
}

/** The client's query as the engine may see it. */
export function queryToEngine(c: Context<HttpEnvironment>): string {
  return queryWithoutCredentials(cutTarget(c.req.url).query, admittedBy(c));
}

function admittedBy(c: Context<HttpEnvironment>): AdmittedBy {
  return { keyId: c.get("keyId"), configuredKey: c.get("configuredKey") };
}

/** An engine's answer without headers of memprefix. */
export function engineAnswer(
  c: Context<HttpEnvironment>,
  answer: EngineAnswer,
  client: LinkedSignal,
  onFault: (error: unknown) => void,
): Response {
  return responseOf(c, answer, headersOf(answer), client, onFault);
}

/** Statuses with which a `Response` must have no body. */
const BODILESS = new Set([204, 205, 304]);

function responseOf(
  { req, env }: Context<HttpEnvironment>,
  answer: EngineAnswer,
  headers: SentHeaders,
  client: LinkedSignal,
  onFault: (error: unknown) => void,
): Response {
  const { status } = answer;
  if (!BODILESS.has(status) && req.method !== "HEAD")
    return new Response(streamOf(answer, client, onFault, env.outgoing), { status, headers });
  // An unread body would keep the upstream connection open.
  client.abort();
  return new Response(null, { status, headers });
}

type SentHeaders = Record<string, string> | [string, string][];

function headersOf({ headers, status }: EngineAnswer, own: readonly HeaderPair[] = []): SentHeaders {
  const origin: HeaderPair[] = status >= 400 ? [["x-memprefix-error-origin", "upstream"]] : [];
  const sent = [...headers, ...own, ...origin];
  const record = Object.fromEntries(sent);
  // Node's server takes a record without conversion, but a record cannot repeat a name.
  return Object.keys(record).length === sent.length
    ? record
    : sent.map(([name, value]): [string, string] => [name, value]);
}

/** Warnings of a prompt that was not composed: none where that was requested. */
function warningsWithout(reason: NotComposedReason): string[] {
  return reason === "bypass" || reason === "side_call" ? [] : [NOT_COMPOSED];
}

/** The `x-memprefix-` headers of an engine's answer. */
function ownHeaders({ composed, notComposed, expectedTokens, usage }: ProxiedAnswer): HeaderPair[] {
  if (composed === null) {
    const reason = notComposed ?? "messages";
    const warnings = warningsWithout(reason).map((code): HeaderPair => ["x-memprefix-warnings", code]);
    return [...warnings, ["x-memprefix-not-composed", reason]];
  }
  const { requestId, plan, worker, warnings } = composed;
  const failed = warnings.find(({ code }) => code === "memory_source_failed");
  const headers: readonly (readonly [name: string, value: string | number | null | undefined])[] = [
    ["x-memprefix-request-id", requestId],
    ["x-memprefix-expected-cached-tokens", expectedTokens],
    ["x-memprefix-cached-tokens", usage?.cachedTokens],
    ["x-memprefix-depth", plan.depth && wire.depthHeader(plan.depth)],
    ["x-memprefix-worker", worker],
    ["x-memprefix-warnings", warnings.length === 0 ? null : warnings.map(({ code }) => code).join(",")],
    // A header cannot carry other characters.
    ["x-memprefix-source-failure", failed?.message.replace(/[^\x20-\x7e]/g, "?")],
  ];
  return headers.flatMap(([name, value]) => (value == null ? [] : [[name, String(value)] as const]));
}

/** An answer as a stream. A client that disconnects ends the upstream call. If the engine breaks off, so does the answer: nothing is added. */
function streamOf(
  { body }: EngineAnswer,
  client: LinkedSignal,
  onFault: (error: unknown) => void,
  outgoing: ServerResponse,
): ReadableStream<Uint8Array> {
  return streamed(body[Symbol.asyncIterator](), client, async (error) => {
    if (!(error instanceof UpstreamError)) onFault(error);
    await breakOff(outgoing);
  });
}

/** Closes a response's connection after the bytes so far. A stream error would drop them, and Node's adapter would log its stack. */
async function breakOff(outgoing: ServerResponse): Promise<void> {
  while (!outgoing.headersSent && !outgoing.closed) await setImmediate();
  // The adapter writes the bytes that it has read together with the head.
  await setImmediate();
  if (outgoing.socket === null) outgoing.destroy();
  else outgoing.socket.destroySoon();
}

/** Streams bytes; stops the source when the client stops reading. `onError` ends the stream. */
export function streamed(
  bytes: AsyncIterator<Uint8Array>,
  client: LinkedSignal,
  onError: (error: unknown, controller: ReadableStreamDefaultController<Uint8Array>) => void | Promise<void>,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await bytes.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        await onError(error, controller);
      }
    },
    async cancel() {
      client.abort();
      await bytes.return?.();
    },
  });
}

export function noEngine(c: Context): Response {
  return answerProblem(c, problem(501, "no engine is configured: set MEMPREFIX_UPSTREAM_URL"));
}

/** A route that takes a prompt. */
type PromptRoute = readonly [id: OperationId, api: Api, body: z.ZodType, answerId: string];

const PROMPT_ROUTES: readonly PromptRoute[] = [
  ["createChatCompletion", APIS.chat, wire.chatBody, "ChatAnswer"],
  ["createResponse", APIS.responses, wire.responsesBody, "ResponsesAnswer"],
  ["createMessage", APIS.messages, wire.messagesBody, "MessagesAnswer"],
];

function describeRoutes({ openAPIRegistry: registry }: OpenAPIHono<HttpEnvironment>): void {
  for (const [id, api, body, answerId] of PROMPT_ROUTES) {
    registry.registerPath(
      operation(id, {
        method: "post",
        path: `/v1/${api.path}`,
        headers: wire.chatHeaders,
        body,
        says: "The engine's answer, unmodified; server-sent events with `stream`. Engine errors pass through likewise.",
        answerHeaders: CHAT_HEADERS,
        answer: { "application/json": wire.engineAnswer(answerId), "text/event-stream": wire.engineEvents },
      }),
    );
  }
}

/** Query parameters in which clients and gateways put a key; the headers are {@link CREDENTIAL_HEADERS}. */
const CREDENTIAL_PARAMETERS: ReadonlySet<string> = new Set([
  "api_key",
  "api-key",
  "apikey",
  "key",
  "token",
  "access_token",
  "auth_token",
  "subscription-key",
]);

/** How a request was authenticated. */
export interface AdmittedBy {
  /** Null: no keys are in use. */
  readonly keyId: string | null;
  /** The key itself where it is the configured one, which may have any form. */
  readonly configuredKey?: string | undefined;
}

function holdsKey(text: string, { configuredKey }: AdmittedBy): boolean {
  return holdsApiKey(text) || (configuredKey !== undefined && text.includes(configuredKey));
}

/** Removes memprefix's keys; with keys in use, all of the client's credentials, wherever they are. Otherwise those are the engine's. */
function withoutCredentials(headers: readonly HeaderPair[], by: AdmittedBy): HeaderPair[] {
  return headers.filter(
    ([name, value]) => !holdsKey(value, by) && (by.keyId === null || !CREDENTIAL_HEADERS.has(name.toLowerCase())),
  );
}

/** Includes the `?`; the rest of the query keeps its bytes. */
function queryWithoutCredentials(query: string, by: AdmittedBy): string {
  if (query.length <= 1) return query;
  const kept = query
    .slice(1)
    .split("&")
    .filter((part) => {
      const [name, value] = [...new URLSearchParams(part)][0] ?? ["", ""];
      if (holdsKey(value, by) || holdsKey(name, by)) return false;
      return by.keyId === null || !CREDENTIAL_PARAMETERS.has(name.toLowerCase());
    });
  return kept.length === 0 ? "" : `?${kept.join("&")}`;
}
