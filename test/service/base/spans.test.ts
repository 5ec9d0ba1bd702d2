import { type Attributes, type Span, type SpanOptions, type SpanStatus, trace } from "@opentelemetry/api";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemorySourceError } from "../../../src/memory/memory-source.js";
import { answeringSource } from "../../http/routes/answering-source.js";
import { ask, clientOf } from "../../http/routes/chat-client.js";
import { openAiEngine } from "../../http/routes/openai-engine.js";
import { servedApp } from "../../http/server/served-app.js";
import { ana, composeWith, memories, openService, searchingSource } from "../compose/service-fixture.js";

interface Recorded {
  readonly name: string;
  readonly kind: number | undefined;
  readonly attributes: Attributes;
  status: SpanStatus | null;
  hasEnded: boolean;
}

const recorded: Recorded[] = [];

/** What an application's tracer is to us: the part of OpenTelemetry's interface that spans are made by. */
function recording(name: string, { kind, attributes = {} }: SpanOptions): Span {
  const entry: Recorded = { name, kind, attributes: { ...attributes }, status: null, hasEnded: false };
  recorded.push(entry);
  const span = {
    setAttribute: (key: string, value: string | number) => {
      entry.attributes[key] = value;
      return span;
    },
    setAttributes: (more: Attributes) => {
      Object.assign(entry.attributes, more);
      return span;
    },
    setStatus: (status: SpanStatus) => {
      entry.status = status;
      return span;
    },
    end: () => {
      entry.hasEnded = true;
    },
  };
  return span as unknown as Span;
}

const named = (name: string) => recorded.filter((span) => span.name === name);

describe("a tracer that the application has registered", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource(["Ada drinks green tea"]), upstream: engine });
  beforeAll(() => {
    const startActiveSpan = (name: string, options: SpanOptions, work: (span: Span) => unknown) =>
      work(recording(name, options));
    trace.setGlobalTracerProvider({ getTracer: () => ({ startActiveSpan, startSpan: recording }) as never });
  });
  afterAll(() => trace.disable());

  it("gets a span for a compose, with what it came to, and for its commit", async () => {
    recorded.length = 0;
    const service = openService();
    const { plan } = await composeWith(service, {
      userId: ana,
      conversationId: "trip",
      messages: [{ role: "user", content: "Where to?" }],
      memories: memories({ m1: "Ana loves art." }),
    });
    expect(recorded.map(({ name, hasEnded }) => [name, hasEnded])).toEqual([
      ["memstem.compose", true],
      ["memstem.commit", true],
    ]);
    expect(recorded[0]?.attributes).toEqual({
      "memstem.layout": "conversation",
      "memstem.policy": "prefix-exact",
      "memstem.retention": "keep",
      "memstem.prompt_tokens": plan.totalTokens,
      "memstem.expected_cached_tokens": plan.expectedCachedTokens,
    });
    await service.close();
  });

  it("gets a span for a search, also for one that fails", async () => {
    recorded.length = 0;
    const search = () => Promise.reject(new MemorySourceError("test", { kind: "timeout", afterMs: 5 }));
    const service = openService({ source: searchingSource(search) });
    await composeWith(service, { userId: ana, query: "Which tea?" });
    expect(named("memstem.search")).toMatchObject([
      {
        attributes: { "memstem.source": "test", "memstem.top_k": 20, "memstem.found": 0 },
        status: { message: "timeout" },
      },
    ]);
    await service.close();
  });

  it("gets a span for the engine's call, and none says who asked, what, or what is remembered", async () => {
    recorded.length = 0;
    await clientOf(app).chat.completions.create(ask("Which tea?"));
    expect(named("memstem.engine")).toMatchObject([
      { kind: 2, attributes: { "memstem.streamed": false, "http.response.status_code": 200 }, hasEnded: true },
    ]);
    expect(JSON.stringify(recorded)).not.toMatch(/ada|tea/i);
  });
});

describe("without a tracer", () => {
  it("everything is as it was", async () => {
    recorded.length = 0;
    const service = openService();
    await composeWith(service, { userId: ana, query: "Which tea?", memories: [] });
    expect(recorded).toEqual([]);
    await service.close();
  });
});
