import type { RetrievedMemory } from "../../src/core/blocks/context-block.js";
import { readMem0Answer } from "../../src/memory/mem0-answer.js";
import { type MemorySource, MemorySourceError } from "../../src/memory/memory-source.js";

const NAME = "recorded";

/**
 * A source that replays answers recorded before, by the query's exact text; an unknown query finds nothing. No I/O. The recording is of
 * searches, not of a store: it knows no users (whoever asks gets the recorded answer) and takes nothing in. For tests and evaluations.
 *
 * @param answers query → the answer in any of Mem0's shapes. Throws a `TypeError` that says where one is not.
 */
export function recordedMemories(answers: Readonly<Record<string, unknown>>): MemorySource {
  const recording = new Map<string, readonly RetrievedMemory[]>();
  for (const [query, answer] of Object.entries(answers)) {
    const read = readMem0Answer(answer, { root: JSON.stringify(query) });
    if (!read.ok || read.issues.length > 0)
      throw new TypeError(read.issues.map((issue) => `${issue.path}: ${issue.message}`).join("; "));
    recording.set(query, read.memories);
  }
  const proceed = (signal: AbortSignal) => {
    if (signal.aborted) throw new MemorySourceError(NAME, { kind: "aborted" });
  };
  const refuse = (operation: string, signal: AbortSignal): never => {
    proceed(signal);
    throw new MemorySourceError(NAME, { kind: "unsupported", operation });
  };

  return {
    name: NAME,
    owned: false,
    async search({ query, topK }, signal) {
      proceed(signal);
      return recording.get(query)?.slice(0, topK) ?? [];
    },
    add: async (_scope, _memories, signal) => refuse("keep memories", signal),
    delete: async (_scope, _id, signal) => refuse("delete memories", signal),
    deleteUser: async (_scope, signal) => refuse("delete a user", signal),
    async close() {},
  };
}
