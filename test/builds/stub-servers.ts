import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the engine says next: a text, or a call of the tool `weather`. */
export interface StubTurn {
  readonly text: string;
  readonly call: { readonly id: string; readonly json: string } | null;
}

/** A memory as Mem0 has it. */
export interface StubMemory {
  readonly id: string;
  readonly memory: string;
  readonly [field: string]: unknown;
}

/** A request that reached a server, its body as parsed JSON. */
export interface StubRequest {
  readonly server: string;
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: Json;
  readonly body: Json;
}

/** An engine and a Mem0 whose answers follow from the requests and from what they are set to. */
export interface StubServers {
  readonly engineUrl: string;
  readonly mem0Url: string;
  turn: StubTurn;
  found: readonly StubMemory[];
  /** Requests that came, oldest first; to be emptied. */
  readonly received: StubRequest[];
  close(): void;
}

type Json = Readonly<Record<string, unknown>>;

/** Prompts with which a new one may share a prefix, which then counts as cached. */
const CACHED_PROMPTS = 200;
/** Names under which builds ask for themselves. */
const OWN_NAMES: ReadonlySet<unknown> = new Set(["memprefix", "memstem"]);
/** Headers that HTTP itself needs. */
const OF_HTTP = new Set(["host", "connection", "content-length", "transfer-encoding"]);

export async function stubServers(): Promise<StubServers> {
  const received: StubRequest[] = [];
  const state = { turn: { text: "Indeed.", call: null } as StubTurn, found: [] as readonly StubMemory[] };
  const listen = async (
    name: string,
    answer: (request: IncomingMessage, body: Json, response: ServerResponse) => void,
  ) => {
    const server = createServer(async (request, response) => {
      const body = JSON.parse(Buffer.concat(await request.toArray()).toString("utf8") || "{}") as Json;
      // What a service asks for itself, once an hour, comes beside any request.
      if (!OWN_NAMES.has(request.headers["user-agent"])) {
        const headers = Object.fromEntries(Object.entries(request.headers).filter(([header]) => !OF_HTTP.has(header)));
        received.push({ server: name, method: request.method, url: request.url, headers, body });
      }
      answer(request, body, response);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return server;
  };
  const engine = await listen("engine", engineOf(state));
  const mem0 = await listen("mem0", mem0Of(state));
  const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(state, {
    engineUrl: `${urlOf(engine)}/v1`,
    mem0Url: urlOf(mem0),
    received,
    close() {
      for (const server of [engine, mem0]) {
        server.closeAllConnections();
        server.close();
      }
    },
  });
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json", "x-request-id": "req_engine" });
  response.end(JSON.stringify(body));
}

function stream(response: ServerResponse, events: readonly Json[], end = ""): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "x-request-id": "req_engine" });
  const lines = events.map((event) => {
    const name = event["type"] === undefined ? "" : `event: ${String(event["type"])}\n`;
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  response.end(lines.join("") + end);
}

/** All three APIs; four characters are a token, and what a prompt shares with an earlier one is cached in blocks of 16. */
function engineOf(state: { readonly turn: StubTurn }) {
  const cached: string[] = [];
  let responses = 0;
  return ({ method, url = "" }: IncomingMessage, body: Json, response: ServerResponse) => {
    const id = "stub-1";
    if (method === "GET")
      return send(response, 200, { object: "list", data: [{ id, object: "model", owned_by: "us" }] });
    const prompt = JSON.stringify([body["system"] ?? body["instructions"], body["messages"] ?? body["input"]]);
    const tokens = Math.ceil(prompt.length / 4);
    const cached_tokens = Math.floor(Math.max(0, ...cached.map((other) => sharedStart(prompt, other))) / 64) * 16;
    if (!url.includes("count_tokens")) cached.unshift(prompt);
    cached.length = Math.min(cached.length, CACHED_PROMPTS);
    const { text, call } = state.turn;
    const isStreamed = body["stream"] === true;
    const answer = (whole: Json, events: readonly Json[], end = "") =>
      isStreamed ? stream(response, events, end) : send(response, 200, whole);

    if (url.startsWith("/v1/chat/completions")) {
      const usage = {
        prompt_tokens: tokens,
        completion_tokens: 2,
        total_tokens: tokens + 2,
        prompt_tokens_details: { cached_tokens },
      };
      const tool_calls = call && [
        { index: 0, id: call.id, type: "function", function: { name: "weather", arguments: call.json } },
      ];
      const said = tool_calls === null ? { content: text } : { content: null, tool_calls };
      const finish_reason = call ? "tool_calls" : "stop";
      const of = { id: "chatcmpl-1", created: 1_741_569_952, model: id };
      const top = [
        { token: "In", logprob: -0.1 * (tokens % 30) },
        { token: "No", logprob: -2 },
      ];
      const logprobs = body["logprobs"] ? { content: [{ ...top[0], top_logprobs: top }] } : null;
      const chunk = (choices: readonly Json[]) => ({ ...of, object: "chat.completion.chunk", choices });
      const wantsUsage = (body["stream_options"] as Json | undefined)?.["include_usage"] === true;
      const message = { role: "assistant", ...said };
      return answer(
        { ...of, object: "chat.completion", choices: [{ index: 0, message, logprobs, finish_reason }], usage },
        [
          chunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
          chunk([{ index: 0, delta: said, finish_reason: null }]),
          chunk([{ index: 0, delta: {}, finish_reason }]),
          ...(wantsUsage ? [{ ...chunk([]), usage }] : []),
        ],
        "data: [DONE]\n\n",
      );
    }
    if (url.startsWith("/v1/responses")) {
      const part = { type: "output_text", annotations: [], text };
      const item = call
        ? { type: "function_call", id: `fc_${call.id}`, call_id: call.id, name: "weather", arguments: call.json }
        : { type: "message", id: `msg_${responses}`, role: "assistant", status: "completed", content: [part] };
      const usage = {
        input_tokens: tokens,
        input_tokens_details: { cached_tokens },
        output_tokens: 2,
        total_tokens: tokens + 2,
      };
      const store = body["store"] !== false;
      const whole = {
        id: `resp_${responses++}`,
        object: "response",
        status: "completed",
        model: id,
        store,
        output: [item],
        usage,
      };
      const at = { item_id: item.id, output_index: 0, content_index: 0 };
      return answer(whole, [
        { type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } },
        { type: "response.output_item.added", output_index: 0, item },
        ...(call ? [] : [{ type: "response.output_text.delta", ...at, delta: text }]),
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response: whole },
      ]);
    }
    if (url.includes("count_tokens")) return send(response, 200, { input_tokens: tokens });
    if (!url.startsWith("/v1/messages"))
      return send(response, 404, { error: { message: "Not Found", type: "invalid_request_error" } });
    const input: unknown = call && JSON.parse(call.json);
    const block = call ? { type: "tool_use", id: call.id, name: "weather", input } : { type: "text", text };
    const stop_reason = call ? "tool_use" : "end_turn";
    const usage = {
      input_tokens: tokens - cached_tokens,
      cache_read_input_tokens: cached_tokens,
      cache_creation_input_tokens: 0,
      output_tokens: 2,
    };
    const whole = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: id,
      content: [block],
      stop_reason,
      stop_sequence: null,
      usage,
    };
    const delta = call ? { type: "input_json_delta", partial_json: call.json } : { type: "text_delta", text };
    return answer(whole, [
      { type: "message_start", message: { ...whole, content: [], stop_reason: null } },
      {
        type: "content_block_start",
        index: 0,
        content_block: call ? { ...block, input: {} } : { type: "text", text: "" },
      },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    ]);
  };
}

/** Mem0's REST server: it finds what it is set to find, and keeps what it found. */
function mem0Of(state: { readonly found: readonly StubMemory[] }) {
  const kept = new Map<string, StubMemory>();
  return ({ method, url = "" }: IncomingMessage, body: Json, response: ServerResponse) => {
    for (const memory of state.found) kept.set(memory.id, memory);
    if (url === "/search") {
      const { user_id } = body["filters"] as Json;
      const results = state.found.slice(0, Number(body["top_k"])).map((memory) => ({ ...memory, user_id }));
      return send(response, 200, { results });
    }
    const id = decodeURIComponent(/^\/memories\/([^/?]+)/.exec(url)?.[1] ?? "");
    if (method === "GET") return send(response, 200, kept.get(id) ?? null);
    if (method === "DELETE") kept.delete(id);
    const said = String((body["messages"] as readonly Json[] | undefined)?.[0]?.["content"]);
    const added = createHash("sha256").update(said).digest("hex").slice(0, 9);
    return send(response, 200, { results: [{ id: `added-${added}`, memory: said, event: "ADD" }] });
  };
}

/** Characters that two texts begin with alike. */
function sharedStart(text: string, other: string): number {
  const most = Math.min(text.length, other.length);
  let at = 0;
  while (at < most && text.charCodeAt(at) === other.charCodeAt(at)) at++;
  return at;
}
