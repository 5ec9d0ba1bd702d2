import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { METHOD_NAME_ALL } from "hono/router";
import { editedJson } from "../../apis/api/edited-json.js";
import { isRecord } from "../../core/text/json.js";
import { linkedSignal } from "../../service/base/linked-signal.js";
import type { ChatEngine, UpstreamCall } from "../../service/chat/chat.js";
import { jsonBody, receivedBody, uploadedBody } from "../guards/body.js";
import { answerProblem, notFound, notJson, problem } from "../problems/problem.js";
import { type HttpEnvironment, isOpenAiPath, isUpload, OPENAI_PATHS, pathAfterBase } from "../requests/request.js";
import { engineAnswer, headersToEngine, isOfReadBody, noEngine, queryToEngine } from "./chat-route.js";

export interface PassingParts {
  readonly onFault: (error: unknown) => void;
  /** Longest wait for an upload's next byte. */
  readonly silentMs: number;
}

const METHODS = ["GET", "POST", "DELETE"] as const;
type PassedCall = Pick<UpstreamCall, "method" | "path" | "isOnce">;
/** Engine paths that store nothing. The others may hold another tenant's data: files, batches, stored responses. */
const KEEPS_NOTHING = new RegExp(
  `^(?:POST (?:embeddings|completions|moderations|rerank|score|classify|tokenize|detokenize|pooling|${[
    "audio/(?:speech|transcriptions|translations)",
    "images/(?:generations|edits|variations)",
    ...["responses/input_tokens", "messages/count_tokens"],
  ].join("|")})|GET models(?:/.+)?)$`,
);

/**
 * Forwards a `/v1` request without a route of memprefix's, and its answer, both unmodified but for the tenant's salts and memprefix's own field;
 * uploads as they arrive. With API keys in use, only to paths that store nothing: the engine's credentials are then the operator's, and stored
 * data is every tenant's. Null: not to be forwarded.
 */
export function passToEngine(
  c: Context<HttpEnvironment>,
  engine: ChatEngine | null,
  parts: PassingParts,
): Promise<Response> | Response | null {
  const pathname = pathAfterBase(new URL(c.req.url).pathname);
  const path = pathname.slice(OPENAI_PATHS.length);
  const method = METHODS.find((name) => name === (c.req.method === "HEAD" ? "GET" : c.req.method));
  if (method === undefined || !isOpenAiPath(pathname) || !staysBelow(path)) return null;
  if (engine === null) return noEngine(c);
  const isKept = !KEEPS_NOTHING.test(`${method} ${path}`);
  if (isKept && c.get("keyId") != null) {
    const detail = `${method} ${pathname} is not passed to the engine while API keys are in use: what it keeps is not apart by tenant`;
    return answerProblem(c, problem(404, detail));
  }
  return send(c, engine, { method, path, isOnce: isKept }, parts);
}

/** Whether no server resolves a path to another one: it has no empty or dot segments, decoded or not. */
function staysBelow(path: string): boolean {
  if (!/^[\w.~:@+%/-]+$/.test(path)) return false;
  try {
    const decoded = decodeURIComponent(path);
    if (/[\\\p{Cc}]/u.test(decoded)) return false;
    return decoded.split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");
  } catch {
    return false;
  }
}

async function send(
  c: Context<HttpEnvironment>,
  { upstream }: ChatEngine,
  call: PassedCall,
  { onFault, silentMs }: PassingParts,
): Promise<Response> {
  const read = call.method === "GET" ? { body: null } : isUpload(c) ? uploaded(c, silentMs) : salted(c);
  if (read instanceof Response) return read;
  const client = linkedSignal(c.req.raw.signal);
  const sent = { ...call, query: queryToEngine(c), headers: headersToEngine(c), ...read };
  return engineAnswer(c, await upstream.send(sent, client.signal), client, onFault);
}

type PassedBody = Pick<UpstreamCall, "body"> & Partial<Pick<UpstreamCall, "headers" | "isOnce">>;

function uploaded(c: Context<HttpEnvironment>, silentMs: number): PassedBody {
  const length = c.req.header("content-length");
  if (length === undefined && c.req.header("transfer-encoding") === undefined) return { body: null };
  const chunks = uploadedBody(c, silentMs);
  return { body: { chunks, length: length === undefined ? null : Number(length) }, isOnce: true };
}

/** A prompt that is not composed, with the tenant's salts and without memprefix's field. */
function salted(c: Context<HttpEnvironment>): PassedBody | Response {
  if (receivedBody(c).length === 0) return { body: null };
  const given = jsonBody(c);
  if (given === null) return answerProblem(c, notJson());
  const { json, value } = given;
  const headers = headersToEngine(c, isOfReadBody);
  if (!isRecord(value)) return { body: json, headers };
  const { memprefix: _settings, ...own } = value;
  return { body: editedJson(json, value, c.get("memprefix").chats.composer.salted(own)), headers };
}

/** Paths below `/v1` of a client whose base URL lacks `/v1`, or has it twice. */
const WITHOUT_V1 =
  /^((?:\/plain|\/users\/[^/]+(?:\/agents\/[^/]+)?(?:\/conversations\/[^/]+)?)?)\/((?:chat\/completions|responses|models|embeddings|completions)(?:\/.*)?)$/;
const WITH_TWO = /^\/v1\/v1\/(.+)$/;

/** Answers a request without a route: 405 with `Allow` for another method (RFC 9110 §15.5.6), else `passed`, else 404 with a hint. */
export function answerUnrouted(
  app: OpenAPIHono<HttpEnvironment>,
  c: Context<HttpEnvironment>,
  passed: () => Promise<Response> | Response | null,
): Promise<Response> | Response {
  const { method, path } = c.req;
  const allowed = methodsOf(app, path);
  if (allowed.length === 0) {
    const [, base = "", below] = WITHOUT_V1.exec(path) ?? [];
    const meant = WITH_TWO.exec(path)?.[1] ?? below;
    if (meant !== undefined) {
      const detail = `there is no ${path}: use ${base}/v1/${meant}, with a base URL that ends with one /v1`;
      return answerProblem(c, problem(404, detail));
    }
    return passed() ?? answerProblem(c, notFound(c));
  }
  const allow = allowed.join(", ");
  return answerProblem(c, problem(405, `${path} takes ${allow}, not ${method}`), { headers: { allow } });
}

/** The methods of a path, by the router: routes are declared in one place. */
function methodsOf({ routes, router }: OpenAPIHono<HttpEnvironment>, path: string): readonly string[] {
  // Entries for all methods are middleware, not routes.
  const known = new Set(routes.map(({ method }) => method).filter((method) => method !== METHOD_NAME_ALL));
  return [...known]
    .filter((method) => router.match(method, path)[0].some(([[, route]]) => route.method === method))
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
}
