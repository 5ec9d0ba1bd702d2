import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { localServer } from "../local-server.js";

/** A request as it arrived. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

/** A running server. */
export interface WireServer {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  close(): Promise<void>;
}

/** What to answer; `body` undefined is an empty one. */
export interface WireAnswer {
  readonly status: number;
  readonly body?: unknown;
}

interface Row {
  readonly id: string;
  readonly memory: string;
  readonly user_id: string;
  readonly agent_id: string | null;
  readonly metadata: unknown;
}

const searchBody = z.object({
  query: z.string(),
  filters: z.object({ user_id: z.string(), agent_id: z.string().optional() }),
  top_k: z.int(),
  threshold: z.number().optional(),
});

const addBody = z.object({
  messages: z.tuple([z.object({ role: z.literal("user"), content: z.string() })]),
  user_id: z.string(),
  agent_id: z.string().optional(),
  infer: z.literal(false),
  metadata: z.unknown().optional(),
});

/** An exchange to take memories out of, as a program that talks to Mem0 itself adds it. */
const exchangeBody = z.object({
  messages: z.tuple([
    z.object({ role: z.literal("user"), content: z.string() }),
    z.object({ role: z.literal("assistant"), content: z.string() }),
  ]),
  user_id: z.string(),
  agent_id: z.string().optional(),
  infer: z.literal(true).optional(),
  metadata: z.unknown().optional(),
});

/** Answers every request with the same JSON. */
export function json(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}) {
  return (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}

/**
 * Mem0's self-hosted REST server as its documentation and source describe it. Deliberately as careless with ids as Mem0 is: it trims
 * them, and takes `*` for any. `apiKey` is what it asks for in `X-API-Key`.
 */
export async function startRestServer(apiKey: string): Promise<WireServer> {
  const rows: Row[] = [];
  return await startMem0((request, url) => {
    if (request.headers["x-api-key"] !== apiKey) return { status: 401, body: { detail: `Invalid API key ${apiKey}` } };
    const id = idIn(url, /^\/memories\/([^/]+)$/);
    const route = `${request.method} ${id === null ? url.pathname : "/memories/{id}"}`;
    switch (route) {
      case "POST /search": {
        const { query, filters, top_k } = searchBody.parse(request.body);
        const mine = rows.filter((row) => named(row.user_id, filters.user_id) && named(row.agent_id, filters.agent_id));
        return { status: 200, body: { results: ranked(mine, query).slice(0, top_k) } };
      }
      case "POST /memories": {
        const row = added(rows, request.body);
        return { status: 200, body: { results: [{ id: row.id, memory: row.memory, event: "ADD", role: "user" }] } };
      }
      case "GET /memories/{id}":
        return { status: 200, body: rows.find((row) => row.id === id) ?? null };
      case "DELETE /memories/{id}":
        remove(rows, (row) => row.id === id);
        return { status: 200, body: { message: "Memory deleted successfully" } };
      case "DELETE /memories": {
        const user = url.searchParams.get("user_id");
        if (user === null) return { status: 400, body: { detail: "At least one identifier is required." } };
        remove(rows, (row) => named(row.user_id, user));
        return { status: 200, body: { message: "All relevant memories deleted" } };
      }
      default:
        return { status: 404, body: { detail: "Not Found" } };
    }
  });
}

/**
 * Mem0's hosted platform, v3, as its documentation describes it: adding is queued (here: done at once), and an id that a search does not
 * give stands for "none". As careless with ids as {@link startRestServer}. `apiKey` is what it asks for in `Authorization: Token`.
 */
export async function startPlatformServer(apiKey: string): Promise<WireServer> {
  const rows: Row[] = [];
  return await startMem0((request, url) => {
    if (request.headers.authorization !== `Token ${apiKey}`) {
      return { status: 401, body: { detail: `Token ${apiKey} is not valid` } };
    }
    const id = idIn(url, /^\/v1\/memories\/([^/]+)\/$/);
    const user = idIn(url, /^\/v2\/entities\/user\/([^/]+)\/$/);
    const pattern = id !== null ? "/v1/memories/{id}/" : user !== null ? "/v2/entities/user/{id}/" : url.pathname;
    switch (`${request.method} ${pattern}`) {
      case "POST /v3/memories/search/": {
        const { query, filters, top_k } = searchBody.parse(request.body);
        const mine = rows.filter(
          (row) => named(row.user_id, filters.user_id) && row.agent_id === (filters.agent_id?.trim() ?? null),
        );
        return { status: 200, body: { results: ranked(mine, query).slice(0, top_k) } };
      }
      case "POST /v3/memories/add/": {
        added(rows, request.body);
        const message = "Memory processing has been queued for background execution";
        return { status: 200, body: { message, status: "PENDING", event_id: randomUUID() } };
      }
      case "GET /v1/memories/{id}/": {
        const row = rows.find((candidate) => candidate.id === id);
        return row === undefined
          ? { status: 404, body: { error: "Memory not found!" } }
          : { status: 200, body: { ...row, hash: "0", created_at: "2025-01-01T00:00:00Z" } };
      }
      case "DELETE /v1/memories/{id}/":
        remove(rows, (row) => row.id === id);
        return { status: 200, body: { message: "Memory deleted successfully!" } };
      case "DELETE /v2/entities/user/{id}/":
        return remove(rows, (row) => named(row.user_id, user ?? ""))
          ? { status: 204 }
          : { status: 404, body: { detail: "Entity not found" } };
      default:
        return { status: 404, body: { detail: "Not Found" } };
    }
  });
}

async function startMem0(answer: (request: ReceivedRequest, url: URL) => WireAnswer): Promise<WireServer> {
  const requests: ReceivedRequest[] = [];
  const server = await localServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const request: ReceivedRequest = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
    requests.push(request);
    const { status, body } = answerOrError(() => answer(request, new URL(request.path, "http://localhost")));
    response.writeHead(status, { "content-type": "application/json" });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  });
  return { ...server, requests };
}

/** A body that is not what Mem0 documents is answered like FastAPI does, so that a test that sends one fails. */
function answerOrError(answer: () => WireAnswer): WireAnswer {
  try {
    return answer();
  } catch (error) {
    return { status: 422, body: { detail: String(error) } };
  }
}

function idIn(url: URL, path: RegExp): string | null {
  const segment = path.exec(url.pathname)?.[1];
  return segment === undefined ? null : decodeURIComponent(segment);
}

function named(value: string | null, filter: string | undefined): boolean {
  return filter === undefined || filter === "*" || value === filter.trim();
}

function added(rows: Row[], body: unknown): Row {
  const { messages, user_id, agent_id, metadata } = z.union([addBody, exchangeBody]).parse(body);
  const row: Row = {
    id: randomUUID(),
    memory: messages[0].content,
    user_id: user_id.trim(),
    agent_id: agent_id?.trim() ?? null,
    metadata: metadata ?? null,
  };
  rows.push(row);
  return row;
}

function remove(rows: Row[], doomed: (row: Row) => boolean): boolean {
  const kept = rows.filter((row) => !doomed(row));
  return rows.splice(0, rows.length, ...kept).length > kept.length;
}

/** Most words in common first; all rows, because a threshold is not what these tests are about. */
function ranked(rows: readonly Row[], query: string): readonly (Row & { readonly score: number })[] {
  const asked = new Set(query.toLowerCase().match(/\w+/g));
  return rows
    .map((row) => ({
      ...row,
      score: (row.memory.toLowerCase().match(/\w+/g) ?? []).filter((w) => asked.has(w)).length,
    }))
    .toSorted((a, b) => b.score - a.score);
}
