import type { MemoryId, RetrievedMemory } from "../../../src/core/index.js";
import type { MemoryQuery, MemorySource, NewMemory } from "../../../src/memory/memory-source.js";

/** A memory source that finds what a test says and keeps what it is given. */
export interface AnsweringSource extends MemorySource {
  /** What it finds, whatever it is asked. */
  found: readonly string[];
  readonly queries: MemoryQuery[];
  readonly added: NewMemory[];
  /** What searches and additions fail with; null: nothing. */
  failure: Error | null;
}

export function answeringSource(found: readonly string[]): AnsweringSource {
  const queries: MemoryQuery[] = [];
  const added: NewMemory[] = [];
  const source: AnsweringSource = {
    name: "answering",
    owned: false,
    found,
    queries,
    added,
    failure: null,
    search: async (query) => {
      queries.push(query);
      if (source.failure !== null) throw source.failure;
      return source.found.map((text): RetrievedMemory => ({ id: `m-${text}` as MemoryId, text }));
    },
    add: async (_scope, memories) => {
      if (source.failure !== null) throw source.failure;
      added.push(...memories);
      return [];
    },
    delete: async () => false,
    deleteUser: async () => {},
    close: async () => {},
  };
  return source;
}

/** One whose searches wait until they are let go, whatever their signal says. */
export interface HeldSource extends AnsweringSource {
  letGo(): void;
}

export function heldSource(found: readonly string[] = []): HeldSource {
  const waiting: (() => void)[] = [];
  const source = answeringSource(found);
  const { search } = source;
  return Object.assign(source, {
    search: async (query: MemoryQuery, signal: AbortSignal) => {
      const memories = search(query, signal);
      await new Promise<void>((go) => waiting.push(go));
      return memories;
    },
    letGo: () => {
      for (const go of waiting.splice(0)) go();
    },
  });
}
