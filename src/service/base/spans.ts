import { type Attributes, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";

/*
 * OpenTelemetry's spans: of the tracer that the process has registered, and nothing at all where it has none. They say how long what took,
 * and numbers and names of memstem's own; never whose it is, what was asked, or what a memory says.
 */

/** Looked up with every span: an application may register its tracer after it has made a service. */
const tracer = () => trace.getTracer("memstem");

/** Does work in a span of its own, which ends with it; what the work throws is its status, by name. */
export function inSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return traced(name, SpanKind.INTERNAL, attributes, work);
}

/** The same for a call of another service. */
export function inCallSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return traced(name, SpanKind.CLIENT, attributes, work);
}

function traced<T>(name: string, kind: SpanKind, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return tracer().startActiveSpan(name, { kind, attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      // A message may quote what was asked.
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : "unknown" });
      throw error;
    } finally {
      span.end();
    }
  });
}
