import { type MemorySource, MemorySourceError, wrappedSource } from "../../memory/memory-source.js";
import type { DegradedParts, PartName } from "../base/degraded-parts.js";

/** Statuses with which a service refuses one request, and would take another. */
const OF_REQUEST: ReadonlySet<number> = new Set([400, 404, 405, 409, 413, 414, 422]);

/** A source whose failures are reported: of searches, and of whatever changes its memories. */
export function watchedSource(source: MemorySource, parts: DegradedParts): MemorySource {
  return wrappedSource(source, async ({ name }, signal, make) => {
    const isRead = name === "search" || name === "current" || name === "list";
    const part = isRead ? "memory_search" : "memory_writes";
    try {
      const result = await make(signal);
      parts.worked(part);
      return result;
    } catch (error) {
      if (error instanceof MemorySourceError) report(parts, part, error);
      throw error;
    }
  });
}

function report(parts: DegradedParts, part: PartName, { failure, message, unquoted }: MemorySourceError): void {
  if (failure.kind === "aborted") return;
  const isOfRequest = failure.kind === "unsupported" || (failure.kind === "refused" && OF_REQUEST.has(failure.status));
  if (isOfRequest) parts.refused(part, message);
  else parts.failed(part, unquoted, message);
}
