import { type Attributes, context, propagation, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";

/*
 * OpenTelemetry spans, with the tracer that the process registered; no-ops where there is none. Attributes are durations, numbers and
 * memstem's own names: never a user, a question or a memory's text.
 */

/** Runs the work for a request within its caller's trace, which its headers name (`traceparent`). */
export function inCallersTrace<T>(headers: Readonly<Record<string, unknown>>, work: () => T): T {
  return context.with(propagation.extract(context.active(), headers), work);
}

/** Runs work in a span of its own. An error's name becomes the span's status. */
export function inSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return traced(name, SpanKind.INTERNAL, attributes, work);
}

/** The same for a call of another service: a span of kind client. */
export function inClientSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return traced(name, SpanKind.CLIENT, attributes, work);
}

function traced<T>(name: string, kind: SpanKind, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  // Looked up per span: an application may register its tracer after it made a service.
  return trace.getTracer("memstem").startActiveSpan(name, { kind, attributes }, async (span) => {
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
