import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RetrievedMemory, Scope } from "../../core/index.js";
import type { MemorySource } from "../../memory/memory-source.js";
import { writeWhole } from "../base/durable-files.js";
import { EvaluationError } from "../base/evaluation-error.js";
import {
  type DialoguePiece,
  dialoguePieces,
  type GivenMemory,
  givenMemories,
  type Ingest,
  type KeptMemories,
  keptMemories,
} from "./conversation-memories.js";
import type { LocomoConversation } from "./locomo-data.js";

/** Has Mem0's language model make memories of what was said. Rejects with a `MemorySourceError`. */
export type Extract = (scope: Scope, piece: DialoguePiece, signal: AbortSignal) => Promise<readonly RetrievedMemory[]>;

/** How many steps putting a conversation into Mem0 takes. */
export function ingestSteps(conversation: LocomoConversation, ingest: Ingest): number {
  return ingest === "extract" ? dialoguePieces(conversation).length : givenMemories(conversation, ingest).length;
}

/** What an earlier run ingested; null where it did not finish. Throws {@link EvaluationError} where the list is broken. */
export function findKeptMemories(directory: string, conversation: string): KeptMemories | null {
  const path = pathOf(directory, conversation);
  if (!existsSync(path)) return null;
  try {
    return keptMemories.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    throw new EvaluationError(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * Puts a conversation into Mem0, for a user of its own, and writes down what it holds then. An interrupted ingestion starts
 * over. Rejects with a `MemorySourceError`, or with an {@link EvaluationError} where nothing came of it.
 */
export async function ingest(
  source: MemorySource,
  scope: Scope,
  { conversation, how, directory }: { conversation: LocomoConversation; how: Ingest; directory: string },
  extract: Extract | null,
  signal: AbortSignal,
  onStep: () => void,
): Promise<KeptMemories> {
  await source.deleteUser(scope, signal);
  const kept: KeptMemories = [];
  const keep = (memories: readonly RetrievedMemory[], { evidence, time }: Omit<GivenMemory, "text">) => {
    const said = { evidence: [...evidence], ...(time === "" ? {} : { time }) };
    for (const { id, text } of memories) kept.push({ id, text, ...said });
    onStep();
  };
  if (how === "extract") {
    if (extract === null) throw new EvaluationError("--ingest extract needs a language model");
    for (const piece of dialoguePieces(conversation)) {
      signal.throwIfAborted();
      keep(await extract(scope, piece, signal), piece);
    }
  } else {
    for (const { text, ...said } of givenMemories(conversation, how)) {
      signal.throwIfAborted();
      keep(await source.add(scope, [{ text }], signal), said);
    }
  }
  signal.throwIfAborted();
  if (kept.length === 0) {
    throw new EvaluationError(
      `conversation ${conversation.id}: nothing came of --ingest ${how}, so there is nothing to search`,
    );
  }
  mkdirSync(join(directory, "memories"), { recursive: true });
  writeWhole(pathOf(directory, conversation.id), JSON.stringify(kept));
  return kept;
}

function pathOf(directory: string, conversation: string): string {
  return join(directory, "memories", `${encodeURIComponent(conversation)}.json`);
}
