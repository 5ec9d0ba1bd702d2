import { z } from "zod";
import { ENDED, type RetrievedMemory } from "../core/blocks/context-block.js";
import type { MemoryId } from "../core/text/ids.js";
import { readMem0Answer } from "./mem0-answer.js";
import { belongsTo, embeddedAgent, type Mem0Search } from "./mem0-identity.js";
import { type KeptMemory, MemorySourceError } from "./memory-source.js";

const MOST_ASKED = 1_000;
/** Factor of the second search, after results that do not count took places. */
const MORE = 4;

/**
 * Finds at most `topK` memories that hold, plus ended ones among them. If other items took places (open-source Mem0 finds memories of runs), searches
 * once more for more. Throws {@link MemorySourceError} `unreadable` for a bad answer.
 */
export async function searchMem0(
  source: string,
  search: Mem0Search,
  topK: number,
  ask: (topK: number) => Promise<unknown>,
): Promise<readonly RetrievedMemory[]> {
  const first = readMem0Found(source, await ask(topK), search);
  const holding = first.memories.filter(holds).length;
  const given = first.memories.length + first.skipped;
  const isDisplaced = holding < topK && holding < given && given >= topK;
  if (!isDisplaced || topK >= MOST_ASKED) return upTo(first.memories, topK);
  try {
    const more = readMem0Found(source, await ask(Math.min(MOST_ASKED, MORE * topK)), search);
    return upTo(more.memories, topK);
  } catch (error) {
    // A source may reject a larger number.
    if (error instanceof MemorySourceError) return upTo(first.memories, topK);
    throw error;
  }
}

function holds({ end }: RetrievedMemory): boolean {
  return end?.until !== ENDED;
}

function upTo(memories: readonly RetrievedMemory[], most: number): readonly RetrievedMemory[] {
  let holding = 0;
  return memories.filter((memory) => holding < most && (!holds(memory) || ++holding > 0));
}

function readMem0Found(source: string, answer: unknown, search: Mem0Search) {
  const read = readMem0Answer(answer, { root: "answer", belongs: belongsTo(search) });
  if (read.ok) return read;
  const cause = read.issues.map((issue) => `${issue.path} ${issue.message}`).join("; ");
  throw new MemorySourceError(source, { kind: "unreadable", cause });
}

const addedItem = z.looseObject({
  id: z.unknown(),
  event: z.string().optional(),
  memory: z.string().nullish(),
});

/** Events after which a memory exists; extraction, which some servers insist on, also answers DELETE and NONE. */
const KEPT_EVENTS = new Set(["ADD", "UPDATE"]);

/** Empty if the hosted platform only queued the text (`{ status: "PENDING", event_id }`). A memory named by id alone has the text that was sent, if it was one text. */
export function readMem0Added(answer: unknown, sentText?: string): readonly RetrievedMemory[] {
  const items = itemsOf(answer).flatMap((candidate) => {
    const parsed = addedItem.safeParse(candidate);
    if (!parsed.success || !KEPT_EVENTS.has(parsed.data.event ?? "ADD")) return [];
    const memory = parsed.data.memory ?? sentText;
    return memory === undefined ? [] : [{ id: parsed.data.id, memory }];
  });
  const read = readMem0Answer(items);
  return read.ok ? read.memories : [];
}

function itemsOf(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  const page = z.looseObject({ results: z.array(z.unknown()) }).safeParse(answer);
  return page.success ? page.data.results : [];
}

const kept = z.looseObject({
  results: z.array(
    z.looseObject({
      id: z.string(),
      memory: z.string(),
      user_id: z.string(),
      agent_id: z.string(),
      metadata: z.record(z.string(), z.unknown()).nullish(),
      createdAt: z.string().nullish(),
      updatedAt: z.string().nullish(),
    }),
  ),
});

/** Throws {@link MemorySourceError} `unreadable` for anything but the user's list. */
export function readMem0Kept(source: string, answer: unknown, userName: string): readonly KeptMemory[] {
  const read = kept.safeParse(answer);
  if (!read.success || read.data.results.some((item) => item.user_id !== userName))
    throw new MemorySourceError(source, { kind: "unreadable", cause: "it is no list of the user's memories" });
  return read.data.results.map((item) => ({
    id: item.id as MemoryId,
    text: item.memory,
    agentId: embeddedAgent(item.agent_id),
    metadata: item.metadata ?? {},
    createdAt: item.createdAt ?? null,
    updatedAt: item.updatedAt ?? null,
  }));
}
