import { z } from "zod";
import type { MemoryId } from "../core/text/ids.js";
import { embeddedAgent } from "./mem0-identity.js";
import { type KeptMemory, MemorySourceError } from "./memory-source.js";

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
