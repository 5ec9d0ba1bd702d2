import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { MemorySourceError } from "../../../src/memory/memory-source.js";
import { answeringSource } from "../../http/routes/answering-source.js";
import { ask, clientOf } from "../../http/routes/chat-client.js";
import { openAiEngine } from "../../http/routes/openai-engine.js";
import { servedApp } from "../../http/server/served-app.js";
import { ana, composeWith, memories, openService, searchingSource } from "../../service/compose/service-fixture.js";

const exporter = new InMemorySpanExporter();
const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
/** A client's trace, as its `traceparent` says. */
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
const traceparent = `00-${TRACE}-${CALLER}-01`;

describe("with OpenTelemetry's SDK", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource(["Ada drinks green tea"]), upstream: engine });
  const headers = { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" };
  const tracing = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  beforeAll(() => tracing.register());
  afterEach(() => exporter.reset());
  afterAll(async () => {
    for (const api of [trace, context, propagation]) api.disable();
    await tracing.shutdown();
  });

  it("a compose is a span, with what it came to, and so is its commit", async () => {
    const service = openService();
    const { plan } = await composeWith(service, {
      userId: ana,
      conversationId: "trip",
      messages: [{ role: "user", content: "Where to?" }],
      memories: memories({ m1: "Ana loves art." }),
    });
    const [compose] = named("memprefix.compose");
    expect(named("memprefix.commit").map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual([
      compose?.spanContext().spanId,
    ]);
    expect(compose?.attributes).toEqual({
      "memprefix.layout": "conversation",
      "memprefix.policy": "prefix-exact",
      "memprefix.retention": "keep",
      "memprefix.prompt_tokens": plan.totalTokens,
      "memprefix.expected_cached_tokens": plan.expectedCachedTokens,
    });
    await service.close();
  });

  it("so is a search, also one that fails", async () => {
    const search = () => Promise.reject(new MemorySourceError("test", { kind: "timeout", afterMs: 5 }));
    const service = openService({ source: searchingSource(search) });
    await composeWith(service, { userId: ana, query: "Which tea?" });
    expect(named("memprefix.search")).toMatchObject([
      {
        attributes: { "memprefix.source": "test", "memprefix.top_k": 20, "memprefix.found": 0 },
        status: { message: "timeout" },
      },
    ]);
    await service.close();
  });

  it.each([false, true])("an engine's call is one by the GenAI conventions, streamed: %s", async (stream) => {
    const chats = clientOf(app, headers).chat.completions;
    for (const question of ["Which tea?", "Which tea then?"]) {
      if (!stream) await chats.create(ask(question));
      else for await (const _ of await chats.create({ ...ask(question), stream: true }));
    }
    const spans = named("chat stub-1");
    expect(spans.map(({ kind }) => kind)).toEqual([SpanKind.CLIENT, SpanKind.CLIENT]);
    const { "gen_ai.usage.cache_read.input_tokens": cached, ...attributes } = spans[1]?.attributes ?? {};
    expect(cached).toBeGreaterThan(0);
    const { hostname, port } = new URL(engine.url);
    const server = { "server.address": hostname, "server.port": Number(port) };
    expect(attributes).toEqual({
      ...server,
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "stub-1",
      "gen_ai.request.stream": stream,
      "gen_ai.conversation.id": "trip",
      "gen_ai.response.id": expect.stringMatching(/^chatcmpl-/),
      "gen_ai.response.model": "stub-1",
      "gen_ai.usage.input_tokens": expect.any(Number),
      "gen_ai.usage.output_tokens": 2,
      "http.response.status_code": 200,
      ...(stream ? { "gen_ai.response.time_to_first_chunk": expect.any(Number) } : {}),
    });
    // None says who asked, what, or what is remembered.
    const said = exporter
      .getFinishedSpans()
      .map(({ name, attributes: own, status, events }) => [name, own, status, events]);
    expect(JSON.stringify(said)).not.toMatch(/ada|tea/i);
  });

  it("goes on with the client's trace, and the engine with memprefix's", async () => {
    const chats = clientOf(app, { ...headers, traceparent, tracestate: "vendor=1" }).chat.completions;
    await Promise.all(["Which tea?", "Which coffee?", "Which milk?"].map((question) => chats.create(ask(question))));
    const spans = exporter.getFinishedSpans();
    expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE]));
    expect(named("memprefix.compose").map(parentOf)).toEqual([CALLER, CALLER, CALLER]);
    const composes = named("memprefix.compose").map((span) => span.spanContext().spanId);
    // One user's requests wait for each other: each does its work in its own trace all the same.
    // What an engine reported is committed after the compose.
    for (const name of ["memprefix.search", "memprefix.commit"])
      expect(
        named(name)
          .map(parentOf)
          .filter((id) => id !== CALLER)
          .toSorted(),
      ).toEqual(composes.toSorted());
    const calls = named("chat stub-1").map((span) => `00-${TRACE}-${span.spanContext().spanId}-01`);
    const sent = engine.requests.map(({ headers: { traceparent: given, tracestate } }) => [given, tracestate]);
    expect(sent.toSorted()).toEqual(calls.toSorted().map((call) => [call, "vendor=1"]));
  });

  it("ends with the error's kind where the engine refuses, and where nobody answers", async () => {
    engine.behave((_, response) => void response.writeHead(503, { "content-type": "application/json" }).end("{}"));
    await expect(clientOf(app, headers).chat.completions.create(ask("Which tea?"))).rejects.toThrow();
    const ended = () => named("chat stub-1").map(({ attributes, status }) => [attributes["error.type"], status.code]);
    expect(ended()).toEqual([["503", SpanStatusCode.ERROR]]);
    exporter.reset();
    engine.behave((_, response) => void response.destroy());
    await expect(clientOf(app, headers).chat.completions.create(ask("Which tea?"))).rejects.toThrow();
    await vi.waitFor(() => expect(ended()).toEqual([["UpstreamError", SpanStatusCode.ERROR]]));
  });
});

const parentOf = ({ parentSpanContext }: ReadableSpan) => parentSpanContext?.spanId;

describe("without it", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });

  it("nothing is recorded, and a client's traceparent goes to the engine as it came", async () => {
    exporter.reset();
    await clientOf(app, { "x-memprefix-user": "ada", traceparent }).chat.completions.create(ask("Which tea?"));
    expect(engine.requests.map(({ headers }) => headers["traceparent"])).toEqual([traceparent]);
    expect(exporter.getFinishedSpans()).toEqual([]);
  });
});
