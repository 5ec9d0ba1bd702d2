import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Scope } from "../../core/index.js";
import type { MemorySource } from "../../memory/memory-source.js";
import { checked, EvaluationError, readJson, writeWhole } from "../base/run-files.js";
import type { Ingest } from "../base/run-record.js";
import type { LocomoConversation } from "./locomo-data.js";

/** Memories that an earlier run ingested; null where it did not finish. Throws {@link EvaluationError} for a broken list. */
export function findKeptMemories(directory: string, conversation: string): KeptMemories | null {
  const path = pathOf(directory, conversation);
  if (!existsSync(path)) return null;
  return checked(keptMemories, readJson(path), `cannot read ${path}`);
}

/**
 * Adds a conversation to Mem0, as a user of its own, and records the memories that Mem0 then holds. An interrupted ingestion starts over.
 * Rejects with a `MemorySourceError`, or with an {@link EvaluationError} where Mem0 holds nothing.
 */
export async function ingest(
  source: MemorySource,
  scope: Scope,
  { conversation, how, directory }: { conversation: LocomoConversation; how: Ingest; directory: string },
  signal: AbortSignal,
  onStep: () => void,
): Promise<KeptMemories> {
  await source.deleteUser(scope, signal);
  const kept: KeptMemories = [];
  for (const { text: given, evidence, time } of givenMemories(conversation, how)) {
    signal.throwIfAborted();
    const said = { evidence: [...evidence], ...(time === "" ? {} : { time }) };
    for (const { id, text } of await source.add(scope, [{ text: given }], signal)) kept.push({ id, text, ...said });
    onStep();
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

/** A conversation's memories in Mem0, in the order they were added; their positions are their numbers. */
export const keptMemories = z.array(
  z.strictObject({
    id: z.string(),
    text: z.string(),
    evidence: z.array(z.string()),
    /** When it was said, in LoCoMo's words; absent where the text has it. */
    time: z.string().optional(),
  }),
);
export type KeptMemories = z.output<typeof keptMemories>;

/**
 * The memories with their times in the text, as in Mem0's own evaluation. Times stay in LoCoMo's words, as its gold answers use them:
 * "1:56 pm on 8 May, 2023: Ana likes tea."
 */
export function timedMemories(memories: KeptMemories): KeptMemories {
  return memories.map((memory) => {
    const { text, time } = memory;
    return time === undefined ? memory : { ...memory, text: `${time}: ${text}` };
  });
}

export interface GivenMemory {
  readonly text: string;
  readonly evidence: readonly string[];
  /** The session's; empty: unknown, or in the text. */
  readonly time: string;
}

/** The texts to store unmodified, in the conversation's order. */
export function givenMemories(conversation: LocomoConversation, ingest: Ingest): GivenMemory[] {
  if (ingest === "observations")
    return conversation.observations.map(({ text, evidence, sessionTime }) => ({ text, evidence, time: sessionTime }));
  return conversation.turns
    .filter(({ text }) => text.trim() !== "")
    .map((turn) => ({ text: spoken(turn), evidence: [turn.id], time: "" }));
}

/** Adds the day: it answers "when", and the text lacks it. */
function spoken({ speaker, sessionTime, text }: LocomoConversation["turns"][number]): string {
  return `${speaker}${sessionTime === "" ? "" : ` (${sessionTime})`}: ${text}`;
}
