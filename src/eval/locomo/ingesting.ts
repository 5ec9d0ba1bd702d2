import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { RetrievedMemory, Scope } from "../../core/index.js";
import type { MemorySource } from "../../memory/memory-source.js";
import { checked, EvaluationError, readJson, writeWhole } from "../base/run-files.js";
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
  return checked(keptMemories, readJson(path), `cannot read ${path}`);
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

/** What is put into Mem0: extracted facts, what was said, or what Mem0's language model makes of what was said. */
export const INGESTS = ["observations", "turns", "extract"] as const;
export type Ingest = (typeof INGESTS)[number];

/** A conversation's memories as Mem0 holds them, in the order in which they were added; their places are their numbers. */
export const keptMemories = z.array(
  z.strictObject({
    id: z.string(),
    text: z.string(),
    evidence: z.array(z.string()),
    /** When it was said, in LoCoMo's words; absent where the text says it. */
    time: z.string().optional(),
  }),
);
export type KeptMemories = z.output<typeof keptMemories>;

/**
 * The memories as prompts give them where they have their times, as those of Mem0's own evaluation do. LoCoMo's words are kept, since its
 * answers are in the same: "1:56 pm on 8 May, 2023: Ana likes tea."
 */
export function timedMemories(memories: KeptMemories): KeptMemories {
  return memories.map((memory) => {
    const { text, time } = memory;
    return time === undefined ? memory : { ...memory, text: `${time}: ${text}` };
  });
}

/** A text to keep as a memory, with the dialogue turns that say it. */
export interface GivenMemory {
  readonly text: string;
  readonly evidence: readonly string[];
  /** The session's; empty: unknown, or in the text. */
  readonly time: string;
}

/** The texts to keep unmodified, in the conversation's order. */
export function givenMemories(conversation: LocomoConversation, ingest: "observations" | "turns"): GivenMemory[] {
  if (ingest === "observations")
    return conversation.observations.map(({ text, evidence, sessionTime }) => ({ text, evidence, time: sessionTime }));
  return conversation.turns
    .filter(({ text }) => text.trim() !== "")
    .map((turn) => ({ text: spoken(turn), evidence: [turn.id], time: "" }));
}

/** Turns that are given to Mem0's language model at once. */
const TURNS_AT_ONCE = 2;

/** A stretch of a conversation. What is extracted from it counts as evidenced by all of its turns. */
export interface DialoguePiece {
  readonly messages: readonly { readonly role: "user"; readonly content: string }[];
  readonly evidence: readonly string[];
  /** The session's; empty: unknown. */
  readonly time: string;
}

/** The conversation in pieces of two turns of the same session, as Mem0's own evaluation gives it. */
function dialoguePieces({ turns }: LocomoConversation): DialoguePiece[] {
  const pieces: DialoguePiece[] = [];
  for (const session of new Set(turns.map((turn) => turn.session))) {
    const said = turns.filter((turn) => turn.session === session && turn.text.trim() !== "");
    for (let at = 0; at < said.length; at += TURNS_AT_ONCE) {
      const piece = said.slice(at, at + TURNS_AT_ONCE);
      pieces.push({
        messages: piece.map((turn) => ({ role: "user", content: spoken(turn) })),
        evidence: piece.map(({ id }) => id),
        time: piece[0]?.sessionTime ?? "",
      });
    }
  }
  return pieces;
}

/** With the day, which answers "when" and is missing from the text. */
function spoken({ speaker, sessionTime, text }: LocomoConversation["turns"][number]): string {
  return `${speaker}${sessionTime === "" ? "" : ` (${sessionTime})`}: ${text}`;
}
