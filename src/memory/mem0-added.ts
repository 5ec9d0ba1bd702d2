import { z } from "zod";
import type { RetrievedMemory } from "../core/blocks/context-block.js";
import { readMem0Answer } from "./mem0-answer.js";

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
  const read = readMem0Answer(items, { badItems: "skip" });
  return read.ok ? read.memories : [];
}

function itemsOf(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  const page = z.looseObject({ results: z.array(z.unknown()) }).safeParse(answer);
  return page.success ? page.data.results : [];
}
