import { type Attributes, context, propagation, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { EngineUsage } from "../../apis/api/usage.js";
import { record } from "../../core/text/json.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import { type HeaderPair, withAdded } from "../../engines/upstream/upstream.js";

/* Spans by the process's tracer, if any. Attributes are durations, numbers and memprefix's own names: never a user, a question or a memory. */

/** Continues the caller's trace, which its headers name (`traceparent`). */
export function inCallersTrace<T>(headers: Readonly<Record<string, unknown>>, work: () => T): T {
  return context.with(propagation.extract(context.active(), headers), work);
}

/** An error's name becomes the span's status. */
export function inSpan<T>(
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<T>,
  kind = SpanKind.INTERNAL,
): Promise<T> {
  // Looked up per span: an application may register its tracer after it created a service.
  return trace.getTracer("memprefix").startActiveSpan(name, { kind, attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      // The name only: a message may quote the question.
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : "unknown" });
      throw error;
    } finally {
      span.end();
    }
  });
}

/* Calls to the engine by the conventions of `@opentelemetry/semantic-conventions` 1.45, `gen_ai.*`, without texts, which are optional there. */

/** Values of `gen_ai.provider.name`: the conventions' own where one exists. */
const PROVIDERS: Readonly<Record<EngineName, string>> = {
  generic: "openai",
  mistral: "mistral_ai",
  vllm: "vllm",
  sglang: "sglang",
  llamacpp: "llama.cpp",
  openai: "openai",
  "openai-breakpoints": "openai",
  anthropic: "anthropic",
};
const MOST_CHARACTERS = 200;

export interface InferenceCall {
  readonly engine: EngineName;
  readonly server: string;
  readonly model: unknown;
  readonly conversationId: string | null;
  readonly isStreamed: boolean;
  /** Headers of the client's own trace are replaced by the call's. */
  readonly headers: readonly HeaderPair[];
}

interface AnsweredInference {
  /** The answer, or its event with the usage: `id` and `model` are read. */
  readonly answer: unknown;
  readonly usage: EngineUsage | null;
  /** Milliseconds to the first token; null if it was not streamed. */
  readonly firstTokenMs: number | null;
}

/** For an answer whose body is passed on unread. */
export const UNREAD: AnsweredInference = { answer: null, usage: null, firstTokenMs: null };

/** The span of one call. Ends once, when the answer was read; later ends are ignored. */
export class InferenceSpan {
  readonly #span: Span;
  readonly #context;
  #isOver = false;

  constructor(private readonly call: InferenceCall) {
    const { engine, server, isStreamed, conversationId } = call;
    const model = named(call.model);
    const address = URL.canParse(server) ? new URL(server) : null;
    const attributes: Attributes = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": PROVIDERS[engine],
      ...(model === null ? {} : { "gen_ai.request.model": model }),
      ...(address && {
        "server.address": address.hostname,
        "server.port": Number(address.port || (address.protocol === "https:" ? 443 : 80)),
      }),
      "gen_ai.request.stream": isStreamed,
      ...(conversationId === null ? {} : { "gen_ai.conversation.id": conversationId }),
    };
    const name = model === null ? "chat" : `chat ${model}`;
    this.#span = trace.getTracer("memprefix").startSpan(name, { kind: SpanKind.CLIENT, attributes });
    this.#context = trace.setSpan(context.active(), this.#span);
  }

  /** The call's headers, by which the engine's own spans continue this one. */
  get headers(): readonly HeaderPair[] {
    const carrier: Record<string, string> = {};
    propagation.inject(this.#context, carrier);
    const own = this.call.headers.filter(([name]) => !Object.hasOwn(carrier, name.toLowerCase()));
    return withAdded(own, carrier);
  }

  /** Runs what sends the call. An error ends the span. */
  async during<T extends { readonly status: number }>(send: () => Promise<T>): Promise<T> {
    try {
      const answer = await context.with(this.#context, send);
      this.#span.setAttribute("http.response.status_code", answer.status);
      if (answer.status >= 300) this.fail(String(answer.status));
      return answer;
    } catch (error) {
      // The name only: a message may quote the question.
      this.fail(error instanceof Error ? error.name : "unknown");
      throw error;
    }
  }

  end({ answer, usage, firstTokenMs }: AnsweredInference): void {
    if (this.#isOver) return;
    const { promptTokens = null, completionTokens = null, cachedTokens = null, writtenTokens = null } = usage ?? {};
    // Anthropic's streams have them in `message`, those of the Responses API in `response`.
    const said = record(answer);
    const { id, model: answering } = { ...said, ...record(said["message"]), ...record(said["response"]) };
    const reported = {
      "gen_ai.response.id": named(id),
      "gen_ai.response.model": named(answering),
      "gen_ai.usage.input_tokens": promptTokens,
      "gen_ai.usage.output_tokens": completionTokens,
      "gen_ai.usage.cache_read.input_tokens": cachedTokens,
      "gen_ai.usage.cache_creation.input_tokens": writtenTokens,
      "gen_ai.response.time_to_first_chunk": firstTokenMs === null ? null : firstTokenMs / 1_000,
    };
    for (const [name, value] of Object.entries(reported)) if (value !== null) this.#span.setAttribute(name, value);
    this.#end();
  }

  /** @param kind `error.type`: a status, or an error's name */
  fail(kind: string): void {
    if (this.#isOver) return;
    this.#span.setAttribute("error.type", kind);
    this.#span.setStatus({ code: SpanStatusCode.ERROR, message: kind });
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#span.end();
  }
}

function named(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value.slice(0, MOST_CHARACTERS) : null;
}
