import { z } from "zod";
import { ENDED, type RetrievedMemory } from "../core/blocks/context-block.js";
import type { MemoryId } from "../core/text/ids.js";
import { readMem0Answer } from "./mem0-answer.js";
import { belongsTo, embeddedAgent, type Mem0Search } from "./mem0-identity.js";
import { type KeptMemory, MemorySourceError } from "./memory-source.js";

/** Most memories that Mem0 is asked for. */
const MOST_ASKED = 1_000;
/** How many times as many are asked for where some that a search is not for, or that do not hold, stand before those that it is for. */
const MORE = 4;

/**
 * Searches Mem0: at most `topK` memories that the search is for, bad items and others' left out; beside them those that have ceased to hold.
 * Where these took the place of some, as those of runs do in the open-source Mem0, it is asked once more for more of them. Throws
 * {@link MemorySourceError} `unreadable` where the answer is none.
 *
 * @param ask gives Mem0's answer with at most so many items
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
    // It may take no more than were asked for first.
    if (error instanceof MemorySourceError) return upTo(first.memories, topK);
    throw error;
  }
}

function holds({ end }: RetrievedMemory): boolean {
  return end?.until !== ENDED;
}

/** The first memories, of which so many hold. */
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

/** An item of an `add` answer: OSS and REST put the text in `memory`, the platform's older answer in `data.memory`. */
const addedItem = z.looseObject({
  id: z.unknown(),
  event: z.string().optional(),
  memory: z.string().nullish(),
  data: z.looseObject({ memory: z.string().nullish() }).nullish(),
});

/** What Mem0 calls the events that leave a memory in place; extraction, where a server insists on it, also answers DELETE and NONE. */
const KEPT_EVENTS = new Set(["ADD", "UPDATE"]);

/**
 * Reads what Mem0 answered to adding one text with `infer: false`. A memory that is named by id alone has the text that was sent. The
 * hosted platform may only queue the text (`{ status: "PENDING", event_id }`): then no id is known yet, and the list is empty.
 */
export function readMem0Added(answer: unknown, sentText: string): readonly RetrievedMemory[] {
  const items = itemsOf(answer).flatMap((candidate) => {
    const parsed = addedItem.safeParse(candidate);
    if (!parsed.success || !KEPT_EVENTS.has(parsed.data.event ?? "ADD")) return [];
    return [{ id: parsed.data.id, memory: parsed.data.memory ?? parsed.data.data?.memory ?? sentText }];
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

/** Reads what the embedded Mem0 lists of a user. Throws {@link MemorySourceError} `unreadable` for anything else. */
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
