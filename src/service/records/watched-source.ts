import { type MemorySource, MemorySourceError } from "../../memory/memory-source.js";
import type { DegradedParts, PartName } from "../base/degraded-parts.js";

/** Statuses with which a service refuses one request, and would take another. */
const OF_REQUEST: ReadonlySet<number> = new Set([400, 404, 405, 409, 413, 414, 422]);

/** A source whose failures are told of: searches, and whatever changes its memories. */
export function watchedSource(source: MemorySource, parts: DegradedParts): MemorySource {
  const watch = async <T>(part: PartName, call: () => Promise<T>): Promise<T> => {
    try {
      const result = await call();
      parts.worked(part);
      return result;
    } catch (error) {
      if (error instanceof MemorySourceError) tell(parts, part, error);
      throw error;
    }
  };
  const list = source.list?.bind(source);
  const current = source.current?.bind(source);
  return {
    name: source.name,
    owned: source.owned,
    ...(source.load && { load: source.load.bind(source) }),
    ...(source.sourceUserId && { sourceUserId: source.sourceUserId.bind(source) }),
    search: (query, signal) => watch("memory_search", () => source.search(query, signal)),
    add: (scope, memories, signal) => watch("memory_writes", () => source.add(scope, memories, signal)),
    delete: (scope, id, signal) => watch("memory_writes", () => source.delete(scope, id, signal)),
    deleteUser: (scope, signal) => watch("memory_writes", () => source.deleteUser(scope, signal)),
    ...(current && {
      current: (scope, ids, signal) => watch("memory_search", () => current(scope, ids, signal)),
    }),
    ...(list && { list: (scope, signal) => watch("memory_search", () => list(scope, signal)) }),
    close: () => source.close(),
  };
}

function tell(parts: DegradedParts, part: PartName, { failure, message, unquoted }: MemorySourceError): void {
  if (failure.kind === "aborted") return;
  const isOfRequest = failure.kind === "unsupported" || (failure.kind === "refused" && OF_REQUEST.has(failure.status));
  if (isOfRequest) parts.refused(part, message);
  else parts.failed(part, unquoted, message);
}
