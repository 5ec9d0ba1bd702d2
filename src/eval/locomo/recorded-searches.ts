import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { MemoryId, Scope } from "../../core/index.js";
import { type MemorySource, MemorySourceError } from "../../memory/memory-source.js";
import { JsonLines, writeWhole } from "../base/run-files.js";
import type { KeptMemories } from "./ingesting.js";
import type { EvaluatedConversation } from "./locomo-data.js";

const place = { conversation: z.string(), question: z.int().min(0), k: z.int().min(1) };
const search = z.union([
  z.strictObject({
    ...place,
    searchMs: z.number().min(0),
    /** Numbers of the conversation's memories, best first. */
    retrieved: z.array(z.int().min(0)),
  }),
  /** A failed search: every arm records it, and no question is asked. */
  z.strictObject({ ...place, retrieved: z.null(), message: z.string() }),
]);

export type RecordedSearch = z.output<typeof search>;

/**
 * An evaluation's searches, stored in `searches.jsonl`: each is made once, so that every arm gets the same memories, also in a resumed run.
 * Each k is searched separately: Mem0 ranks more candidates for a larger k, so a smaller k's result is not always a prefix of it.
 */
export class RecordedSearches {
  readonly #lines: JsonLines<typeof search>;
  readonly #known = new Map<string, RecordedSearch>();

  constructor(directory: string) {
    this.#lines = new JsonLines(join(directory, "searches.jsonl"), search);
    for (const line of this.#lines.kept) this.#known.set(keyOf(line.conversation, line.question, line.k), line);
  }

  find(conversation: string, question: number, k: number): RecordedSearch | undefined {
    return this.#known.get(keyOf(conversation, question, k));
  }

  /** Makes the missing searches. Rejects where the signal aborts; a failed search is recorded. */
  async complete(
    source: MemorySource,
    scope: Scope,
    { id, asked }: EvaluatedConversation,
    { memories, ks }: { readonly memories: KeptMemories; readonly ks: readonly number[] },
    signal: AbortSignal,
    onStep: () => void,
  ): Promise<void> {
    const numbers = new Map(memories.map((memory, number) => [memory.id as MemoryId, number]));
    for (const { at, question } of asked) {
      for (const k of ks) {
        if (this.find(id, at, k) !== undefined) continue;
        const place = { conversation: id, question: at, k };
        const startedAt = performance.now();
        try {
          const found = await source.search({ scope, query: question.question, topK: k }, signal);
          const searchMs = performance.now() - startedAt;
          this.#add({ ...place, searchMs, retrieved: found.flatMap((memory) => numbers.get(memory.id) ?? []) });
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof MemorySourceError)) throw error;
          this.#add({ ...place, retrieved: null, message: error.message });
        }
        onStep();
      }
    }
  }

  close(): void {
    this.#lines.close();
  }

  #add(line: RecordedSearch): void {
    this.#lines.append(line);
    this.#known.set(keyOf(line.conversation, line.question, line.k), line);
  }
}

function keyOf(conversation: string, question: number, k: number): string {
  return JSON.stringify([conversation, question, k]);
}

/** Writes the searches as one trace per k, so that anybody can check the run's figures with `memprefix replay`. */
export function writeTraces(
  directory: string,
  { id, asked }: EvaluatedConversation,
  { memories, searches, ks }: { memories: KeptMemories; searches: RecordedSearches; ks: readonly number[] },
): void {
  mkdirSync(join(directory, "traces"), { recursive: true });
  for (const k of ks) {
    const questions = asked.flatMap(({ at, question: { question, answer, category, evidence } }) => {
      const retrieved = searches.find(id, at, k)?.retrieved ?? null;
      return retrieved === null ? [] : [{ question, answer, category, evidence, retrieved }];
    });
    const trace = {
      sample_id: id,
      memories: memories.map(({ text, evidence }) => ({ memory: text, evidence })),
      questions,
    };
    writeWhole(join(directory, "traces", `${encodeURIComponent(id)}-k${k}.json`), JSON.stringify(trace));
  }
}
