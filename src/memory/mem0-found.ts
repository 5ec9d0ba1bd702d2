import type { RetrievedMemory } from "../core/blocks/context-block.js";
import { readMem0Answer } from "./mem0-answer.js";
import { belongsTo, type Mem0Scope } from "./mem0-scope.js";
import { MemorySourceError } from "./memory-source.js";

/**
 * Reads what a provider answered to a search: at most `topK` memories of the scope, bad items and other users' left out. Throws
 * {@link MemorySourceError} `unreadable` where it is no answer at all.
 */
export function readMem0Found(
  source: string,
  answer: unknown,
  scope: Mem0Scope,
  topK: number,
): readonly RetrievedMemory[] {
  const read = readMem0Answer(answer, { root: "answer", badItems: "skip", belongs: belongsTo(scope) });
  if (read.ok) return read.memories.slice(0, topK);
  const cause = read.issues.map((issue) => `${issue.path} ${issue.message}`).join("; ");
  throw new MemorySourceError(source, { kind: "unreadable", cause });
}
